//! A group of peers, such as several servers, any one of which can carry the packets of their networks.
//!
//! All members keep their sessions and probe their paths, so that the others are known to work when the active one does
//! not. The active member stays active as long as any of its paths works. When none does, the first other working
//! member, in the order of their priorities, replaces it at once. A member of a higher priority becomes active again
//! when it has worked without interruption for [`RETURN_TIME`]; one of the same priority does not. So an unstable
//! server does not cause repeated moves.

use seal::PeerId;
use units::{Instant, Span};

/// Time for which a preferred member must have worked without interruption before it becomes active again.
pub const RETURN_TIME: Span = Span::from_secs(60);

/// A peer of a group.
#[derive(Clone, Copy, Debug)]
struct Member {
    id: PeerId,
    /// The priority; smaller values are preferred.
    priority: u32,
    /// Since when a path to it has worked without interruption; `None` if none does.
    working_since: Option<Instant>,
}

/// The members of a group, and which of them is active.
#[derive(Clone, Debug)]
pub struct PeerGroup {
    /// In the order of their priorities.
    members: Vec<Member>,
    active: PeerId,
}

impl PeerGroup {
    /// A group of peers with their priorities. The smallest value is preferred, among equal ones the first. The active
    /// member of `previous`, an earlier group, stays active if it is still a member.
    ///
    /// # Panics
    /// Without members.
    #[must_use]
    pub fn new(mut peers: Vec<(PeerId, u32)>, previous: Option<&Self>) -> Self {
        peers.sort_by_key(|(_, priority)| *priority);
        let earlier = |id: PeerId| previous?.members.iter().find(|member| member.id == id)?.working_since;
        let members: Vec<Member> =
            peers.into_iter().map(|(id, priority)| Member { id, priority, working_since: earlier(id) }).collect();
        let kept = previous.map(|group| group.active).filter(|id| members.iter().any(|member| member.id == *id));
        let active = kept.unwrap_or(members[0].id);
        Self { members, active }
    }

    /// The member that carries the packets.
    #[must_use]
    pub fn active(&self) -> PeerId {
        self.active
    }

    /// Whether a peer is a member: packets are accepted from all of them.
    #[must_use]
    pub fn contains(&self, id: PeerId) -> bool {
        self.members.iter().any(|member| member.id == id)
    }

    /// Updates the state of the members, for which `works` is called; returns the active member if it has changed. To
    /// be called after each change, and at the [`deadline`](Self::deadline).
    pub fn update(&mut self, now: Instant, works: impl Fn(PeerId) -> bool) -> Option<PeerId> {
        for member in &mut self.members {
            member.working_since = works(member.id).then(|| member.working_since.unwrap_or(now));
        }
        let active = self.members.iter().find(|member| member.id == self.active).copied()?;
        let is_stable = |member: &&Member| member.working_since.is_some_and(|since| now.since(since) >= RETURN_TIME);
        let next = match active.working_since {
            Some(_) => self.members.iter().filter(|member| member.priority < active.priority).find(is_stable),
            None => self.members.iter().find(|member| member.working_since.is_some()),
        };
        let next = next?.id;
        self.active = next;
        Some(next)
    }

    /// When a preferred member will have worked long enough.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let active_priority = self.members.iter().find(|member| member.id == self.active).map(|member| member.priority);
        let preferred = self.members.iter().filter(|member| Some(member.priority) < active_priority);
        preferred.filter_map(|member| Some(member.working_since? + RETURN_TIME)).min().unwrap_or(Instant::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PeerId = PeerId(3);
    const B: PeerId = PeerId(1);
    const C: PeerId = PeerId(2);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn the_active_member_stays_while_it_works_and_the_preferred_one_returns_after_a_minute() {
        let mut group = PeerGroup::new(vec![(B, 2), (A, 1), (C, 2)], None);
        assert_eq!((group.active(), group.deadline()), (A, Instant::NEVER));
        assert_eq!(group.update(at(0), |_| false), None, "none works yet");
        assert_eq!(group.update(at(1), |_| true), None);
        assert_eq!(group.update(at(100), |id| id != A), Some(B));
        assert_eq!(group.update(at(101), |id| id == C), Some(C));
        assert_eq!(group.update(at(102), |_| false), None, "it stays: there is no better one");
        assert_eq!(group.update(at(103), |id| id == B), Some(B));
        assert_eq!(group.update(at(110), |_| true), None);
        assert_eq!(group.deadline(), at(170));
        assert_eq!(group.update(at(169), |_| true), None);
        assert_eq!(group.update(at(170), |_| true), Some(A));
        assert_eq!(group.deadline(), Instant::NEVER);
    }

    #[test]
    fn a_preferred_member_that_comes_and_goes_moves_nothing() {
        let mut group = PeerGroup::new(vec![(A, 1), (B, 2)], None);
        assert_eq!(group.update(at(0), |id| id == B), Some(B));
        for second in 1..1000 {
            let preferred_works = second % 50 != 0;
            assert_eq!(group.update(at(second), |id| id == B || preferred_works), None, "second {second}");
        }
    }

    #[test]
    fn a_member_of_the_same_priority_takes_nothing_back_and_a_changed_group_keeps_its_active_one() {
        let mut group = PeerGroup::new(vec![(A, 1), (B, 1)], None);
        assert_eq!(group.update(at(0), |id| id == B), Some(B));
        assert_eq!(group.update(at(1000), |_| true), None);
        let mut changed = PeerGroup::new(vec![(C, 0), (A, 1), (B, 1)], Some(&group));
        assert_eq!(changed.active(), B);
        assert_eq!(changed.update(at(1000), |_| true), None);
        assert_eq!(changed.update(at(1060), |_| true), Some(C));
        assert_eq!(PeerGroup::new(vec![(A, 1)], Some(&group)).active(), A);
    }
}
