//! ECF, earliest completion first: a slow path is left idle if the unsent packets would be delivered sooner without it.
//!
//! The fastest path F (minimum smoothed RTT) is used whenever it has room. Otherwise S is the fastest of the paths with
//! room, k the number of unsent packets, and delta the larger of the two RTT deviations. Data wait for F under two
//! conditions: F would have sent them all before a packet on S is acknowledged, and S would need longer than two RTTs
//! of F:
//!
//! ```text
//! rtt_F * (max(k, window_F) + window_F) < window_F * (1 + waiting * beta) * (rtt_S + delta)
//! rtt_S * max(k, window_S)              >= window_S * (2 rtt_F + delta)
//! ```
//!
//! `waiting` is 1 from a decision to wait until the first inequality no longer holds: a hysteresis of `beta`.
//!
//! Source: Lim, Nahum, Towsley, Gibbens, CoNEXT 2017; `mptcp_ecf.c` of the out-of-tree kernel.

use crate::min_rtt::fastest;
use crate::{Constructor, Fill, Needs, PathView, Pick, Scheduler, SchedulerEntry, SchedulerView};
use params::{ParamKind, Parameter};

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "ecf",
    aliases: &[],
    title: "minrtt, but leaves a slow path idle if waiting for the fast one completes sooner",
    source: "Lim et al., CoNEXT 2017; out-of-tree MPTCP kernel, mptcp_ecf.c",
    code_version: None,
    needs: Needs::Measurements,
    fill: Fill::Cwnd,
    parameters: &[Parameter {
        name: "beta",
        description: "hysteresis: tolerance by which waiting continues after it has begun",
        kind: ParamKind::Number { default: 0.25, min: 0.0, max: 100.0 },
    }],
    constructor: Constructor::Function(|setup| Box::new(Ecf::new(setup.params.number("beta")))),
};

/// State of ECF.
#[derive(Clone, Copy, Debug)]
pub struct Ecf {
    beta: f64,
    waiting: bool,
}

impl Ecf {
    /// `beta`: the hysteresis, as a fraction.
    #[must_use]
    pub fn new(beta: f64) -> Self {
        Self { beta, waiting: false }
    }

    /// Whether the unsent packets will be delivered sooner if they wait for the fast path.
    fn should_wait(&mut self, unsent_packets: u64, fast: &PathView, slow: &PathView) -> bool {
        let rtt = |path: &PathView| path.srtt.0 as f64;
        let window = |path: &PathView| f64::from(path.cwnd);
        let packets = |path: &PathView| (unsent_packets as f64).max(window(path));
        let delta = fast.rttvar.max(slow.rttvar).0 as f64;
        let hysteresis = if self.waiting { 1.0 + self.beta } else { 1.0 };
        let fast_time = rtt(fast) * (packets(fast) + window(fast));
        if fast_time >= window(fast) * hysteresis * (rtt(slow) + delta) {
            self.waiting = false;
            return false;
        }
        let slow_is_later = rtt(slow) * packets(slow) >= window(slow) * (2.0 * rtt(fast) + delta);
        self.waiting |= slow_is_later;
        slow_is_later
    }
}

impl Scheduler for Ecf {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        if view.sendable_packets() == 0 {
            return None;
        }
        let (fast, fast_path) = fastest(view.usable_paths())?;
        if fast_path.has_room {
            return Some(Pick::next(fast));
        }
        let (slow, slow_path) = fastest(view.paths_with_room())?;
        (!self.should_wait(view.unsent_packets, fast_path, slow_path)).then(|| Pick::next(slow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{VIEW, path};
    use units::{PathId, Span};

    fn pick(scheduler: &mut Ecf, unsent_packets: u64, slow_rtt: u64) -> Option<u16> {
        let deviation = Span::from_millis(5);
        let paths = [PathView { rttvar: deviation, ..path(20, 10, 10) }, path(slow_rtt, 10, 0)];
        scheduler.pick(&SchedulerView { unsent_packets, paths: &paths, ..VIEW }).map(|pick| pick.path.0)
    }

    #[test]
    fn up_to_42_packets_wait_for_the_fast_path() {
        let max_waiting =
            (1..100).take_while(|unsent_packets| pick(&mut Ecf::new(0.25), *unsent_packets, 100).is_none()).last();
        assert_eq!(max_waiting, Some(42), "20 * 52 < 1050 <= 20 * 53");
    }

    #[test]
    fn once_waiting_up_to_55_go_on_to_wait() {
        let mut scheduler = Ecf::new(0.25);
        let should_wait: Vec<_> =
            [42, 55, 56, 55].map(|unsent_packets| pick(&mut scheduler, unsent_packets, 100).is_none()).into();
        assert_eq!(should_wait, [true, true, false, false], "20 * 65 < 1312.5 <= 20 * 66, and then it no longer waits");
    }

    #[test]
    fn a_path_that_is_hardly_slower_is_used_at_once() {
        assert_eq!(pick(&mut Ecf::new(0.25), 1, 44), Some(1), "44 < 2 * 20 + 5");
        assert_eq!(pick(&mut Ecf::new(0.25), 1, 45), None);
    }

    #[test]
    fn the_fast_path_is_used_when_it_is_open_and_not_waited_for_when_it_is_dead() {
        let dead = PathView { active: false, ..path(20, 10, 10) };
        let pick_with =
            |fast| Ecf::new(0.25).pick(&SchedulerView { unsent_packets: 1, paths: &[fast, path(100, 10, 0)], ..VIEW });
        assert_eq!([pick_with(path(20, 10, 9)), pick_with(dead)], [0, 1].map(|path| Some(Pick::next(PathId(path)))));
    }
}
