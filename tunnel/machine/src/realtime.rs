//! The real-time class: packets that must not wait for bulk traffic, and that are copied over a second path while their
//! own is unsteady.
//!
//! The class contains the packets of sparse flows (RFC 8290: flows that build no queue), which have at most
//! [`MAX_SPARSE_PACKETS`] and [`MAX_SPARSE_BYTES`] in [`SPARSE_WINDOW`]. It also contains the packets of streams from
//! [`FIRST_REALTIME_STREAM`] on, which the driver has marked. This file has the class's state: its path, its budgets
//! and the fragments that may be copied.

use super::config::RealtimeOptions;
use super::packet::{FIRST_REALTIME_STREAM, REALTIME_END};
use super::path::PathRole;
use std::collections::VecDeque;
use units::{Instant, PathId, Rate, Span};

/// Maximum number of packets of a sparse flow in a [`SPARSE_WINDOW`]: calls have 50 or 100 per second, games up to 128.
const MAX_SPARSE_PACKETS: u32 = 20;
/// Maximum number of bytes of a sparse flow in a [`SPARSE_WINDOW`]: 480 kbit/s.
const MAX_SPARSE_BYTES: u64 = 6000;
/// The time in which a flow's packets are counted.
const SPARSE_WINDOW: Span = Span::from_millis(100);
/// Minimum time from one move of the class to the next, unless its path fails.
const MIN_MOVE_INTERVAL: Span = Span::from_secs(5);
/// Time for which another path must be better before the class moves to it.
const MOVE_DELAY: Span = Span::from_millis(400);
/// Maximum number of fragments that are remembered until they are acknowledged, and of waiting copies.
const MAX_REMEMBERED: usize = 512;
/// The burst of a token bucket, as the time in which its rate fills it.
const BURST_TIME: Span = Span::from_millis(250);
/// Minimum burst of a token bucket, bytes.
const MIN_BURST: u64 = 12_000;

/// Whether a stream is of marked packets.
pub(super) fn is_marked(stream: u8) -> bool {
    (FIRST_REALTIME_STREAM..REALTIME_END).contains(&stream)
}

/// A token bucket (RFC 2697, without a second bucket) whose rate changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenBucket {
    /// The share of the capacity that the bucket lets pass, in 1000ths.
    permille: u32,
    /// Thousandths of a byte.
    tokens: u64,
    updated: Instant,
}

impl TokenBucket {
    /// A full bucket.
    pub(super) fn new(permille: u32) -> Self {
        let tokens = if permille == 0 { 0 } else { MIN_BURST * 1000 };
        Self { permille, tokens, updated: Instant::ZERO }
    }

    /// Adds tokens for the share of `capacity` since the latest call.
    pub(super) fn refill(&mut self, now: Instant, capacity: Rate) {
        let permille = u64::from(self.permille);
        let burst = (capacity.bytes_in(BURST_TIME).saturating_mul(permille)).max(MIN_BURST * 1000);
        let time = now.since(self.updated).min(BURST_TIME);
        let added = u128::from(capacity.as_bits()) * u128::from(time.0) * u128::from(permille) / 8_000_000_000;
        if permille > 0 {
            self.tokens = self.tokens.saturating_add(added as u64).min(burst);
        }
        self.updated = now;
    }

    /// Takes `bytes`, if the bucket has them.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        let has_tokens = self.tokens >= bytes.saturating_mul(1000) && self.permille > 0;
        if has_tokens {
            self.tokens -= bytes * 1000;
        }
        has_tokens
    }

    /// Whether it has `bytes`.
    pub(super) fn has(&self, bytes: u64) -> bool {
        self.permille > 0 && self.tokens >= bytes.saturating_mul(1000)
    }
}

/// A fragment of the class that is not yet acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentRealtime {
    pub(super) number: u64,
    pub(super) path: PathId,
    pub(super) sent: Instant,
}

/// The traffic of one flow in the current window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowRate {
    since: Instant,
    packets: u32,
    bytes: u64,
}

impl FlowRate {
    /// A packet arrived.
    pub(super) fn count(&mut self, now: Instant, bytes: u64) {
        if now.since(self.since) >= SPARSE_WINDOW {
            *self = Self { since: now, packets: 0, bytes: 0 };
        }
        (self.packets, self.bytes) = (self.packets + 1, self.bytes + bytes);
    }

    /// Whether the flow is sparse.
    pub(super) fn is_sparse(&self) -> bool {
        self.packets <= MAX_SPARSE_PACKETS && self.bytes <= MAX_SPARSE_BYTES
    }
}

/// The state of the class.
#[derive(Debug)]
pub(super) struct RealtimeClass {
    pub(super) options: RealtimeOptions,
    /// The budget of copies.
    pub(super) copy_budget: TokenBucket,
    /// The budget of packets that go ahead of bulk traffic.
    pub(super) share: TokenBucket,
    /// The path of the class.
    path: Option<PathId>,
    /// When the class moved last.
    moved: Option<Instant>,
    /// The role that the path had at the latest packet.
    role: PathRole,
    /// The path that is better than the current one, and since when.
    better: Option<(PathId, Instant)>,
    /// Fragments to be copied, by their numbers.
    pub(super) copies: VecDeque<u64>,
    /// Fragments that may be copied later, oldest first.
    pub(super) sent: VecDeque<SentRealtime>,
}

impl RealtimeClass {
    pub(super) fn new(options: RealtimeOptions) -> Self {
        Self {
            options,
            copy_budget: TokenBucket::new(options.copy_permille),
            share: TokenBucket::new(options.share_permille),
            path: None,
            moved: None,
            role: PathRole::Regular,
            better: None,
            copies: VecDeque::new(),
            sent: VecDeque::new(),
        }
    }

    /// Remembers a fragment that was sent.
    pub(super) fn remember(&mut self, sent: SentRealtime) {
        if self.sent.len() == MAX_REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back(sent);
    }

    /// Queues a copy of a fragment.
    pub(super) fn queue_copy(&mut self, number: u64) {
        if self.copies.len() < MAX_REMEMBERED {
            self.copies.push_back(number);
        }
    }

    /// The path of the class, and whether the class has moved to it. It leaves at once a path that is unhealthy, or that an
    /// end has made a secondary one or a backup. Otherwise it
    /// moves to a path that has been better by the margin for [`MOVE_DELAY`], at most once per [`MIN_MOVE_INTERVAL`].
    pub(super) fn update_path(&mut self, now: Instant, candidates: &[PathCost]) -> Option<(PathId, bool)> {
        let best = candidates.iter().min_by_key(|candidate| (!candidate.is_healthy, candidate.cost))?;
        let present = self.path.and_then(|path| candidates.iter().find(|candidate| candidate.path == path));
        let keeps_role = |present: &PathCost| present.role <= self.role || present.role <= best.role;
        let stays = |present: &&PathCost| (present.is_healthy || !best.is_healthy) && keeps_role(present);
        let present = present.filter(stays);
        self.role = present.unwrap_or(best).role;
        let Some(present) = present else {
            let has_moved = self.path.replace(best.path).is_some_and(|path| path != best.path);
            if has_moved {
                self.moved = Some(now);
            }
            self.better = None;
            return Some((best.path, has_moved));
        };
        if best.path == present.path || best.cost + present.margin >= present.cost {
            self.better = None;
            return Some((present.path, false));
        }
        let since = self.better.filter(|(path, _)| *path == best.path).map_or(now, |(_, since)| since);
        self.better = Some((best.path, since));
        let may_move = self.moved.is_none_or(|moved| now.since(moved) >= MIN_MOVE_INTERVAL);
        if now.since(since) < MOVE_DELAY || !may_move {
            return Some((present.path, false));
        }
        (self.path, self.moved, self.better, self.role) = (Some(best.path), Some(now), None, best.role);
        Some((best.path, true))
    }
}

/// The costs of a path, by which the class chooses its path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathCost {
    pub(super) path: PathId,
    pub(super) is_healthy: bool,
    pub(super) role: PathRole,
    /// Whether it is a backup first, then its delay, microseconds.
    pub(super) cost: i64,
    /// Margin by which another path must be better, microseconds.
    pub(super) margin: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    fn path(path: u16, is_healthy: bool, cost: i64) -> PathCost {
        PathCost { path: PathId(path), is_healthy, role: PathRole::Regular, cost, margin: 10_000 }
    }

    #[test]
    fn the_class_moves_once_in_five_seconds_to_what_stays_better_and_at_once_from_what_fails() {
        let mut class = RealtimeClass::new(RealtimeOptions::default());
        let mut update = |ms, costs: [(bool, i64); 2]| {
            let paths = [path(0, costs[0].0, costs[0].1), path(1, costs[1].0, costs[1].1)];
            let (id, has_moved) = class.update_path(at(ms), &paths).expect("there are paths");
            (id.0, has_moved)
        };
        let (first, second, gone) = ([(true, 0), (true, 30_000)], [(true, 30_000), (true, 0)], [(false, 0), (true, 0)]);
        assert_eq!(update(0, first), (0, false));
        assert_eq!([update(100, second), update(400, second)], [(0, false), (0, false)]);
        assert_eq!(update(450, first), (0, false), "it was better for 350 ms only");
        assert_eq!([update(500, second), update(900, second)], [(0, false), (1, true)]);
        assert_eq!([update(1000, first), update(5800, first)], [(1, false), (1, false)]);
        assert_eq!(update(5900, first), (0, true), "five seconds later");
        assert_eq!(update(5920, gone), (1, true), "its path fails");
        assert_eq!(update(5940, [(true, 25_000), (true, 30_000)]), (1, false), "less than the margin");
    }

    #[test]
    fn the_class_leaves_a_path_at_once_that_becomes_a_backup_and_does_not_return_at_once() {
        let mut class = RealtimeClass::new(RealtimeOptions::default());
        let mut update = |ms, roles: [PathRole; 2]| {
            let paths = [0, 1].map(|id| PathCost {
                role: roles[id],
                ..path(id as u16, true, ((roles[id] as i64) << 40) + 30_000 * id as i64)
            });
            let (id, has_moved) = class.update_path(at(ms), &paths).expect("there are paths");
            (id.0, has_moved)
        };
        let (regular, backup) = ([PathRole::Regular; 2], [PathRole::Backup, PathRole::Regular]);
        assert_eq!(update(0, regular), (0, false));
        assert_eq!(update(10, backup), (1, true));
        assert_eq!(update(20, backup), (1, false));
        assert_eq!([update(30, regular), update(500, regular)], [(1, false), (1, false)], "not within five seconds");
    }

    #[test]
    fn a_flow_is_sparse_with_up_to_twenty_packets_in_100_ms() {
        let mut rate = FlowRate::default();
        let mut is_sparse = |ms, bytes| {
            rate.count(at(ms), bytes);
            rate.is_sparse()
        };
        assert!((1..=20).all(|ms| is_sparse(ms, 200)));
        assert_eq!([is_sparse(21, 40), is_sparse(99, 40), is_sparse(101, 40)], [false, false, true]);
        assert_eq!([is_sparse(102, 5960), is_sparse(103, 1)], [true, false], "6000 bytes");
    }

    proptest::proptest! {
        /// A bucket lets pass at most its share of the capacity, plus the largest burst.
        #[test]
        fn a_budget_is_never_exceeded(
            permille in 0..=1000_u32,
            steps in proptest::collection::vec((0..400_u64, 0..1_000_000_000_u64, 0..3000_u64), 1..300),
        ) {
            let mut bucket = TokenBucket::new(permille);
            let (mut now, mut brought, mut burst, mut passed) = (Instant::ZERO, 0.0, MIN_BURST as f64, 0_u64);
            for (ms, rate, bytes) in steps {
                now += Span::from_millis(ms);
                bucket.refill(now, Rate(rate));
                brought += rate as f64 / 8.0 * ms as f64 / 1e3;
                burst = burst.max(rate as f64 / 8.0 * BURST_TIME.as_secs_f64());
                passed += if bucket.take(bytes) { bytes } else { 0 };
                let share = f64::from(permille) / 1e3;
                let allowed = if permille == 0 { 0.0 } else { brought * share + burst.max(MIN_BURST as f64) };
                proptest::prop_assert!(passed as f64 <= allowed + 1.0, "{passed} of {allowed}");
            }
        }
    }
}
