//! Redundant: every path carries all data, and the first copy to arrive counts.
//!
//! Paths with room take turns. Each carries the oldest unacknowledged packet that it has not carried itself. Packets
//! that other paths have delivered are skipped, so that a slow path stays near the head. The throughput is at most that
//! of the best path. A loss or a delay on one path costs nothing while another path delivers.
//!
//! Source: `mptcp_redundant.c` of the out-of-tree kernel, as of v0.90 (v0.89 instead copied each packet at once).

use crate::{Constructor, Fill, Needs, PacketChoice, Pick, Scheduler, SchedulerEntry, SchedulerView};

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "redundant",
    aliases: &[],
    title: "every path carries all packets; the first copy counts",
    source: "out-of-tree MPTCP kernel v0.90, mptcp_redundant.c",
    code_version: None,
    needs: Needs::Measurements,
    fill: Fill::Cwnd,
    parameters: &[],
    constructor: Constructor::Function(|_| Box::new(Redundant::default())),
};

/// State of the scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub struct Redundant {
    next_path: u16,
}

impl Scheduler for Redundant {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        let next = view.paths_with_room().find(|(path, _)| path.0 >= self.next_path);
        let (path, _) = next.or_else(|| view.paths_with_room().next())?;
        self.next_path = path.0 + 1;
        Some(Pick { path, packet: PacketChoice::OldestUnacked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{path, pick, pick_all};

    #[test]
    fn paths_with_room_take_turns_with_the_oldest_packet_they_have_not_carried() {
        let mut paths = [path(20, 2, 0), path(60, 9, 0), path(40, 3, 0)];
        let picks = pick_all(&mut Redundant::default(), 9, &mut paths);
        assert!(picks.iter().all(|pick| pick.packet == PacketChoice::OldestUnacked));
        let order: Vec<_> = picks.iter().map(|pick| pick.path.0).collect();
        assert_eq!(order, [0, 1, 2, 0, 1, 2, 1, 2, 1]);
    }

    #[test]
    fn copies_leave_although_the_receive_window_is_full() {
        let paths = [path(20, 2, 0)];
        let view = SchedulerView { rwnd_left_packets: 0, unsent_packets: 0, paths: &paths, ..crate::view::tests::VIEW };
        assert!(Redundant::default().pick(&view).is_some());
        assert!(pick(&mut Redundant::default(), &[path(20, 2, 2)]).is_none());
    }
}
