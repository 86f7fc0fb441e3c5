//! Overflow: the fastest path carries as much as it can. A slower path carries the packets that would otherwise wait
//! for the fastest one longer than the difference of the delays.
//!
//! ```text
//! slow path used  if  backlog / (rates of the faster paths) >= difference   or   backlogged for >= difference
//!                 or  phantom queue of the faster paths >= difference, and difference <= srtt_fast
//! difference = (srtt_slow - srtt_fast) / 2
//! ```
//!
//! While the backlog is short, packets wait for the fast path. A packet on a slow path delays all later packets at a
//! receiver that restores the order. An inner TCP flow then sees its RTT jump to that of the slow path, and leaves slow
//! start. A large or lasting backlog shows that the fast path does not suffice. The slow path then stays in use for
//! some of its RTTs while the fast path is busy, whatever the backlog, because backlogs vary with the windows of the
//! inner flows. The exception is a slow path that is much slower than usual, because a queue has grown on it.
//!
//! A flow that paces itself (BBR) at the rate that it measured over the fast path builds no backlog, and would never
//! discover more capacity. Therefore a path is also full if its [phantom queue](crate::PathView::phantom_queue_delay)
//! is as long as a backlog would have to be, unless the difference of the delays is longer than the RTT of the fast
//! path. Further packets then go to a slower path with room, even if the fast one has room too. If no slower path has
//! room, the fast one carries them.
//!
//! Source: own rule. The idea of overflow instead of shares is from RFC 8157 (section 1.4), the comparison of delays
//! from earliest completion first (ECF; Lim et al., CoNEXT 2017), and the phantom queue from AVQ (Kunniyur and Srikant,
//! SIGCOMM 2001).

use crate::{Constructor, Fill, Needs, PathView, Pick, Scheduler, SchedulerEntry, SchedulerView};
use units::{Instant, PathId, Rate, Span};

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "overflow",
    aliases: &[],
    title: "slower paths carry packets that would wait longer for the fast one",
    source: "own rule, after RFC 8157 and ECF (CoNEXT 2017)",
    code_version: None,
    needs: Needs::Measurements,
    fill: Fill::Cwnd,
    parameters: &[],
    constructor: Constructor::Function(|_| Box::new(Overflow::default())),
};

/// RTTs of a slow path for which it stays in use: two of BBR's gain cycles.
const NEED_ROUND_TRIPS: u64 = 16;
/// More packets than this are a backlog.
const MIN_BACKLOG_PACKETS: u64 = 4;
/// A phantom queue shorter than this is a burst.
const MIN_BURST: Span = Span::from_millis(2);
/// A phantom queue longer than this is not a burst, whatever the difference of the delays.
const MAX_BURST: Span = Span::from_millis(50);
/// Time without a pick after which a backlog ends.
const BACKLOG_GAP: Span = Span::from_millis(5);

/// Tolerance of the delay difference of a slow path in use; a greater one shows that a queue has grown on it.
const SRTT_TOLERANCE: Span = Span::from_millis(5);

/// State of the scheduler.
#[derive(Clone, Debug, Default)]
pub struct Overflow {
    slow_paths: Vec<SlowPath>,
    /// Start of the backlog, and the time at which it was last seen.
    backlogged: Option<(Instant, Instant)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct SlowPath {
    /// Time until which the faster paths are assumed not to suffice.
    needed_until: Instant,
    /// The usual difference between its one-way delay and the fastest path's.
    usual_difference: Option<Span>,
}

impl Overflow {
    /// Whether `slow` should carry packets that the `faster` paths together cannot.
    fn overflows(&mut self, view: &SchedulerView<'_>, faster: &FasterPaths, slow: (PathId, &PathView)) -> bool {
        let (id, path) = slow;
        let difference = faster.delay_difference(path);
        let backlog = faster.rate.time_for(view.unsent_packets.saturating_mul(u64::from(view.packet_bytes)));
        if self.slow_paths.len() <= id.index() {
            self.slow_paths.resize(id.index() + 1, SlowPath::default());
        }
        let slow = &mut self.slow_paths[id.index()];
        // The minimum rises slowly, because path delays do change.
        let usual_difference = slow.usual_difference.map_or(difference, |usual_difference| {
            difference.min(usual_difference + usual_difference / 4096 + Span(100))
        });
        slow.usual_difference = Some(usual_difference);
        let is_needed =
            faster.are_busy() && view.now < slow.needed_until && difference <= usual_difference * 2 + SRTT_TOLERANCE;
        let backlog_age = self.backlogged.map_or(Span::ZERO, |(since, _)| view.now.since(since));
        // Hysteresis: half the backlog keeps the path in use.
        if backlog >= difference
            || faster.are_full(view, path)
            || backlog_age >= difference
            || is_needed && backlog >= difference / 2
        {
            slow.needed_until = view.now + path.srtt * NEED_ROUND_TRIPS;
            return true;
        }
        is_needed
    }

    fn update_backlog(&mut self, view: &SchedulerView<'_>) {
        let continued = |(since, last): (Instant, Instant)| (view.now.since(last) < BACKLOG_GAP).then_some(since);
        let since = self.backlogged.and_then(continued).unwrap_or(view.now);
        self.backlogged = (view.unsent_packets > MIN_BACKLOG_PACKETS).then_some((since, view.now));
    }
}

impl Scheduler for Overflow {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        if view.sendable_packets() == 0 {
            return None;
        }
        self.update_backlog(view);
        let (mut chosen, mut faster) = (None, None);
        // In the order of RTT, without sorting, because there are few paths.
        while let Some((id, path)) = next_slower(view, faster.as_ref().map(|faster: &FasterPaths| faster.last)) {
            let (is_used, are_full) = match &faster {
                None => (true, true),
                Some(faster) => (self.overflows(view, faster, (id, path)), faster.are_full(view, path)),
            };
            if path.has_room && is_used && (are_full || chosen.is_none()) {
                chosen = Some(Pick::next(id));
                if path.phantom_queue_delay.is_none_or(|delay| delay < MIN_BURST) {
                    break;
                }
            }
            faster = Some(FasterPaths::add_path(faster, id, path));
        }
        chosen
    }
}

/// The paths faster than the candidate.
struct FasterPaths {
    /// RTT of the fastest.
    srtt: Span,
    /// Rate of the faster paths together.
    rate: Rate,
    /// The shortest of their phantom queues, if all have one.
    phantom_queue_delay: Option<Span>,
    last: (Span, PathId),
}

impl FasterPaths {
    fn add_path(faster: Option<Self>, id: PathId, path: &PathView) -> Self {
        let prior = faster.unwrap_or(Self {
            srtt: path.srtt,
            rate: Rate(0),
            phantom_queue_delay: Some(Span::MAX),
            last: (path.srtt, id),
        });
        let rate = Rate(prior.rate.0.saturating_add(path.pacing_rate.0));
        let delay =
            prior.phantom_queue_delay.zip(path.phantom_queue_delay).map(|(shortest, delay)| shortest.min(delay));
        Self { rate, phantom_queue_delay: delay, last: (path.srtt, id), ..prior }
    }

    /// The one-way delay of this path minus that of the fastest.
    fn delay_difference(&self, path: &PathView) -> Span {
        path.srtt.saturating_sub(self.srtt) / 2
    }

    /// Whether the faster paths carry nearly as much as they can.
    fn are_busy(&self) -> bool {
        self.phantom_queue_delay.is_none_or(|delay| delay >= MIN_BURST)
    }

    /// Whether the phantom queues of the faster paths show that they are full, and the difference of the delays is at
    /// most their RTT. A flow that paces itself (BBR) has two bandwidth-delay products in flight. A larger difference
    /// would leave it short of packets in flight, and cost more than the slower path brings.
    fn are_full(&self, view: &SchedulerView<'_>, path: &PathView) -> bool {
        if self.delay_difference(path) > self.srtt {
            return false;
        }
        let burst = self.rate.time_for(MIN_BACKLOG_PACKETS * u64::from(view.packet_bytes)).max(MIN_BURST);
        self.phantom_queue_delay.is_some_and(|delay| delay >= self.delay_difference(path).min(MAX_BURST).max(burst))
    }
}

/// The next usable path after `last` in the order of RTT and index.
fn next_slower<'a>(view: &'a SchedulerView<'_>, last: Option<(Span, PathId)>) -> Option<(PathId, &'a PathView)> {
    let key = |(id, path): &(PathId, &PathView)| (path.srtt, *id);
    view.usable_paths().filter(|candidate| last.is_none_or(|last| key(candidate) > last)).min_by_key(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{VIEW, path};

    /// 12 Mbit/s: one packet of 1500 bytes per millisecond.
    const RATE: Rate = Rate(12_000_000);

    fn pick(scheduler: &mut Overflow, now_ms: u64, unsent_packets: u64, has_room: [bool; 2]) -> Option<u16> {
        let paths = [(100, has_room[0]), (20, has_room[1])].map(|(srtt, has_room)| PathView {
            pacing_rate: RATE,
            has_room,
            ..path(srtt, 10, 0)
        });
        let now = Instant::ZERO + Span::from_millis(now_ms);
        scheduler
            .pick(&SchedulerView { now, unsent_packets, packet_bytes: 1500, paths: &paths, ..VIEW })
            .map(|pick| pick.path.0)
    }

    #[test]
    fn the_fast_path_is_waited_for_until_the_backlog_is_worth_the_difference() {
        // One-way delays 50 and 10 ms: 40 packets wait 40 ms.
        let mut scheduler = Overflow::default();
        assert_eq!(pick(&mut scheduler, 0, 1000, [true, true]), Some(1), "it is free");
        assert_eq!(pick(&mut scheduler, 0, 39, [true, false]), None);
        assert_eq!(pick(&mut scheduler, 0, 40, [true, false]), Some(0));
    }

    #[test]
    fn a_small_backlog_counts_once_it_has_lasted_as_long() {
        let mut scheduler = Overflow::default();
        assert!((0..40).all(|now_ms| pick(&mut scheduler, now_ms, 5, [true, false]).is_none()));
        assert_eq!(pick(&mut scheduler, 40, 5, [true, false]), Some(0));
        let mut scheduler = Overflow::default();
        assert!((0..100).all(|now_ms| {
            let unsent_packets = if now_ms == 30 { 4 } else { 5 };
            pick(&mut scheduler, now_ms, unsent_packets, [true, false]).is_none() == (now_ms < 71)
        }));
    }

    #[test]
    fn once_needed_the_slow_path_stays_in_use_for_some_of_its_round_trips() {
        let mut scheduler = Overflow::default();
        assert_eq!(pick(&mut scheduler, 0, 40, [true, false]), Some(0));
        assert_eq!(pick(&mut scheduler, 1599, 1, [true, false]), Some(0));
        assert_eq!(pick(&mut scheduler, 1600, 1, [true, false]), None);
        pick(&mut scheduler, 1600, 40, [true, false]);
        assert_eq!(pick(&mut scheduler, 2000, 20, [true, false]), Some(0), "half the backlog is enough to go on");
        assert_eq!(pick(&mut scheduler, 3500, 1, [true, false]), Some(0));
    }

    #[test]
    fn a_path_of_equal_rtt_carries_what_the_other_has_no_room_for() {
        let mut scheduler = Overflow::default();
        let paths = [(20, false), (20, true)].map(|(srtt, has_room)| PathView {
            pacing_rate: RATE,
            has_room,
            ..path(srtt, 10, 0)
        });
        let view = SchedulerView { unsent_packets: 1, paths: &paths, ..VIEW };
        assert_eq!(scheduler.pick(&view), Some(Pick::next(PathId(1))));
    }

    /// The pick with a phantom queue of `delay` ms at the fast path, next to a slow path with an RTT of `slow_srtt` ms.
    fn pick_with_phantom_queue(
        scheduler: &mut Overflow,
        delay: u64,
        slow_srtt: u64,
        has_room: [bool; 2],
    ) -> Option<u16> {
        let mut paths = [(slow_srtt, has_room[0]), (20, has_room[1])].map(|(srtt, has_room)| PathView {
            pacing_rate: RATE,
            has_room,
            ..path(srtt, 10, 0)
        });
        paths[0].phantom_queue_delay = Some(Span::ZERO);
        paths[1].phantom_queue_delay = Some(Span::from_millis(delay));
        scheduler
            .pick(&SchedulerView { unsent_packets: 1, packet_bytes: 1500, paths: &paths, ..VIEW })
            .map(|pick| pick.path.0)
    }

    #[test]
    fn a_phantom_queue_as_long_as_the_difference_sends_packets_over_the_slow_path() {
        let mut scheduler = Overflow::default();
        assert_eq!(pick_with_phantom_queue(&mut scheduler, 19, 60, [true, true]), Some(1), "20 ms are the difference");
        assert_eq!(pick_with_phantom_queue(&mut scheduler, 19, 60, [true, false]), None);
        assert_eq!(pick_with_phantom_queue(&mut scheduler, 20, 60, [true, true]), Some(0));
        assert_eq!(
            pick_with_phantom_queue(&mut scheduler, 20, 60, [false, true]),
            Some(1),
            "the slow one has no room: the fast one takes it"
        );
    }

    #[test]
    fn a_delay_difference_longer_than_the_fast_paths_rtt_needs_a_backlog() {
        let mut scheduler = Overflow::default();
        assert_eq!(pick_with_phantom_queue(&mut scheduler, 1000, 61, [true, true]), Some(1));
    }

    #[test]
    fn a_path_that_was_needed_is_not_used_while_the_fast_one_is_idle() {
        let mut scheduler = Overflow::default();
        assert_eq!(pick_with_phantom_queue(&mut scheduler, 20, 60, [true, true]), Some(0));
        assert_eq!(pick_with_phantom_queue(&mut scheduler, 2, 60, [true, false]), Some(0), "busy, and closed");
        assert_eq!(pick_with_phantom_queue(&mut scheduler, 1, 60, [true, false]), None, "worth waiting for");
    }
}
