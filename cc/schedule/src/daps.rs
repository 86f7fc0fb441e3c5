//! DAPS, delay-aware packet scheduling: each path carries the packets that are next in order when they arrive.
//!
//! A plan takes one-way delays d_i = srtt_i / 2, rounded to a grain of 4 ms, and windows w_i as fixed. It spans the
//! least common multiple of the delays. In it path i sends a burst of w_i packets at 0, d_i, 2 d_i, ... Its burst k
//! arrives at (k + 1) d_i. Packets are given to the bursts in the order of arrival. The number of packets of path j
//! that precede burst k of path i is
//!
//! ```text
//! w_j * min(floor((k + 1) d_i / d_j), lcm / d_j)
//! ```
//!
//! Packets of other paths that have not been sent are skipped ([`PacketChoice::SkipAhead`]), so the plan needs no list.
//! Among the paths with room, the one whose burst arrives first is picked. A new plan is made if no path with room has
//! a burst left, or if the set of paths has changed. The w_i of a new plan is 7/8 of the previous one plus 1/8 of the
//! window.
//!
//! Source: Kuhn, Lochin, Mifdaoui, Sarwar, Mehani, Boreli, ICC 2014; grain and smoothing as in Ferlin's kernel module.
//! Interpretation and deviations: smoothing happens once per plan. A plan spans at most one second, because the common
//! multiple may be minutes. A path that has sent its part does not wait for the others. Until each path has an RTT, the
//! scheduler works as minrtt.

use crate::min_rtt::fastest;
use crate::packet_round_robin::gcd;
use crate::{Constructor, Fill, Needs, PacketChoice, PathView, Pick, Scheduler, SchedulerEntry, SchedulerView};
use params::{ParamKind, Parameter};
use units::{PathId, Span};

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "daps",
    aliases: &[],
    title: "each path carries, by a plan, the packets that are next in order when they arrive",
    source: "Kuhn et al., ICC 2014",
    code_version: None,
    needs: Needs::Measurements,
    fill: Fill::Cwnd,
    parameters: &[
        Parameter {
            name: "grain",
            description: "one-way delays are rounded to multiples of this many ms",
            kind: ParamKind::Number { default: 4.0, min: 0.001, max: 1000.0 },
        },
        Parameter {
            name: "horizon",
            description: "maximum length of a plan, ms",
            kind: ParamKind::Number { default: 1000.0, min: 1.0, max: 1e6 },
        },
    ],
    constructor: Constructor::Function(|setup| {
        let span = |name| Span::from_secs_f64(setup.params.number(name) / 1000.0);
        Box::new(Daps::new(span("grain"), span("horizon")))
    }),
};

/// Windows are smoothed in eighths of a packet.
const EIGHTHS: u64 = 8;

/// State of DAPS.
#[derive(Clone, Debug)]
pub struct Daps {
    time_unit: Span,
    horizon: Span,
    plans: Vec<PathPlan>,
}

/// The plan of one path.
#[derive(Clone, Copy, Debug, Default)]
struct PathPlan {
    /// One-way delay in time units; 0 if the path is not in the plan.
    one_way_delay: u64,
    /// Smoothed window, eighths of a packet.
    cwnd: u64,
    bursts: u64,
    /// Packets of the plan that have been sent.
    sent: u64,
}

impl PathPlan {
    /// Packets of a burst.
    fn burst(&self) -> u64 {
        (self.cwnd / EIGHTHS).max(1)
    }

    fn has_bursts_left(&self) -> bool {
        self.sent < self.bursts * self.burst()
    }

    /// Arrival time of the next packet, in time units from the start of the plan.
    fn arrival(&self) -> u64 {
        (self.sent / self.burst() + 1) * self.one_way_delay
    }

    /// Unsent packets of the plan that arrive by `time`, in time units from the start of the plan.
    fn due(&self, time: u64) -> u64 {
        let bursts = time.checked_div(self.one_way_delay).unwrap_or(0).min(self.bursts);
        (bursts * self.burst()).saturating_sub(self.sent)
    }
}

impl Daps {
    /// Delays are rounded to multiples of `time_unit`; a plan spans at most `horizon`.
    #[must_use]
    pub fn new(time_unit: Span, horizon: Span) -> Self {
        Self { time_unit, horizon, plans: Vec::new() }
    }

    /// One-way delay in time units, at least one.
    fn delay(&self, path: &PathView) -> u64 {
        ((path.srtt / 2 + self.time_unit / 2).0 / self.time_unit.0.max(1)).max(1)
    }

    /// Whether the plan covers exactly the paths that are usable now.
    fn covers_usable_paths(&self, view: &SchedulerView<'_>) -> bool {
        let planned = (0..).map(PathId).zip(&self.plans).filter(|(_, plan)| plan.one_way_delay > 0);
        planned.map(|(id, _)| id).eq(view.usable_paths().map(|(id, _)| id))
    }

    /// Makes a new plan, unless a path has no RTT.
    fn make_plan(&mut self, view: &SchedulerView<'_>) {
        self.plans.resize(view.paths.len(), PathPlan::default());
        self.plans.iter_mut().for_each(|plan| (plan.one_way_delay, plan.bursts, plan.sent) = (0, 0, 0));
        if view.usable_paths().any(|(_, path)| path.srtt == Span::ZERO) {
            return;
        }
        let max_span = (self.horizon.0 / self.time_unit.0.max(1)).max(1);
        let mut span = 1;
        for (id, path) in view.usable_paths() {
            let delay = self.delay(path);
            span = (span / gcd(span, delay)).saturating_mul(delay).min(max_span);
            let plan = &mut self.plans[id.index()];
            let cwnd = u64::from(path.cwnd) * EIGHTHS;
            let smoothed = if plan.cwnd == 0 { cwnd } else { plan.cwnd - plan.cwnd / 8 + cwnd / 8 };
            (plan.one_way_delay, plan.cwnd) = (delay, smoothed);
        }
        let planned = self.plans.iter_mut().filter(|plan| plan.one_way_delay > 0);
        planned.for_each(|plan| plan.bursts = (span / plan.one_way_delay).max(1));
    }

    /// Unsent packets that other paths send before this path's next one.
    fn skipped(&self, path: PathId) -> u64 {
        let arrival = self.plans[path.index()].arrival();
        // If bursts arrive together, those of the lower index go first.
        let latest_arrival = |other: usize| if other < path.index() { arrival } else { arrival - 1 };
        let other_plans = self.plans.iter().enumerate().filter(|(other, _)| *other != path.index());
        other_plans.map(|(other, plan)| plan.due(latest_arrival(other))).sum()
    }
}

impl Scheduler for Daps {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        if view.sendable_packets() == 0 {
            return None;
        }
        let has_bursts = |daps: &Self| view.paths_with_room().any(|(id, _)| daps.plans[id.index()].has_bursts_left());
        if !self.covers_usable_paths(view) || !has_bursts(self) {
            self.make_plan(view);
        }
        if !has_bursts(self) {
            return fastest(view.paths_with_room()).map(|(path, _)| Pick::next(path));
        }
        let candidates = view.paths_with_room().map(|(id, _)| id).filter(|id| self.plans[id.index()].has_bursts_left());
        let candidates = candidates.map(|id| (self.plans[id.index()].arrival(), id, self.skipped(id)));
        let (_, path, skipped) = candidates.filter(|(_, _, skipped)| *skipped < view.sendable_packets()).min()?;
        self.plans[path.index()].sent += 1;
        let skipped = u32::try_from(skipped).unwrap_or(u32::MAX);
        Some(Pick { path, packet: if skipped == 0 { PacketChoice::Next } else { PacketChoice::SkipAhead(skipped) } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{VIEW, path, pick, pick_all};

    fn daps() -> Daps {
        Daps::new(Span::from_millis(4), Span::from_secs(1))
    }

    #[test]
    fn delays_are_rounded_to_multiples_of_4_ms() {
        let rounded = [10, 21, 23, 50].map(|delay| daps().delay(&path(2 * delay, 1, 0)) * 4);
        assert_eq!(rounded, [12, 20, 24, 52]);
    }

    #[test]
    fn delays_of_12_and_52_ms_give_13_bursts_and_3() {
        let mut daps = daps();
        daps.make_plan(&SchedulerView { paths: &[path(24, 10, 0), path(104, 10, 0)], ..VIEW });
        assert_eq!([daps.plans[0].bursts, daps.plans[1].bursts], [13, 3], "156 ms");
    }

    #[test]
    fn the_slow_path_leaves_out_what_the_fast_one_delivers_before() {
        let mut daps = daps();
        let picks = pick_all(&mut daps, 20, &mut [path(24, 10, 0), path(104, 5, 0)]);
        let fast = Pick::next(PathId(0));
        // Four fast bursts arrive within 52 ms. The first has been sent, so that 30 packets are left out.
        let slow = Pick { path: PathId(1), packet: PacketChoice::SkipAhead(30) };
        assert_eq!(picks, [[fast; 10].as_slice(), &[slow; 5]].concat());
    }

    #[test]
    fn a_whole_plan_arrives_in_order() {
        // Both always have room: the plan is carried out in the order of arrival, and no packet is skipped.
        let paths = [path(24, 2, 0), path(104, 2, 0)];
        let mut daps = daps();
        let picks: Vec<_> = (0..32).filter_map(|_| pick(&mut daps, &paths)).collect();
        let order: String = picks.iter().map(|pick| if pick.path.0 == 0 { 'f' } else { 's' }).collect();
        assert_eq!(order, "ffffffffssffffffffssffffffffffss", "slow at 52, 104 and 156 ms");
        assert!(picks.iter().all(|pick| pick.packet == PacketChoice::Next));
    }

    #[test]
    fn a_path_that_dies_is_no_longer_waited_for() {
        let full_path = path(24, 10, 10);
        let pick_last =
            |fast| daps().pick(&SchedulerView { unsent_packets: 1, paths: &[fast, path(104, 10, 0)], ..VIEW });
        assert_eq!(pick_last(full_path), None, "the fast path delivers it sooner");
        assert_eq!(pick_last(PathView { active: false, ..full_path }), Some(Pick::next(PathId(1))));
    }

    #[test]
    fn windows_are_smoothed_from_plan_to_plan() {
        let mut daps = daps();
        for window in [80, 160] {
            daps.make_plan(&SchedulerView { paths: &[path(24, window, 0)], ..VIEW });
        }
        assert_eq!(daps.plans[0].burst(), 90);
    }
}
