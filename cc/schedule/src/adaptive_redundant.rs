//! Adaptive redundancy: a path with a small window or a small share of the bandwidth sends copies. The other paths
//! share the data.
//!
//! Path i of N carries the oldest unacknowledged packet that it has not carried yet, while
//!
//! ```text
//! window_i <= 4,  or  alpha_i < RTT_i / (N * (RTT_i + min RTT))
//! alpha_i = (4 beta_i - 1) / 3,  beta_i = BW_i * max BW / sum of BW^2
//! ```
//!
//! and new data otherwise. BW_i is the bandwidth of path i: its maximum delivery rate in the latest ten rounds. alpha_i
//! is the share of BW_i that Coupled BBR leaves to path i between probes. Here it is computed from the bandwidths, so
//! that any congestion control can be used. With a window of at most 4 packets, only a timeout detects a loss. The
//! second condition selects slow, long paths.
//!
//! Source: Han, Xue, Xing, Hong, Wei, SIGCOMM 2019 posters, section 3.2 (alpha: 3.1). It leaves these points open:
//! - `min RTT` is the minimum smoothed RTT over the paths, RTT_i the smoothed RTT of path i;
//! - N, minimum, maximum and sum are over the usable paths (active, and no idle backups). With 1/N, equal paths are
//!   redundant from N = 3 on: alpha is then 1/9, and the threshold 1/6;
//! - the copied packet is the oldest outstanding one, as in `redundant`; a path that has repeated everything continues
//!   with new data;
//! - the normal scheduling is round robin, with which the poster compares, or minrtt; the path is chosen first, then
//!   the packet that it carries;
//! - a path without a bandwidth sample is redundant only if its window is small.

use crate::min_rtt::fastest;
use crate::{
    Constructor, Fill, Needs, PacketChoice, PathView, Pick, RoundRobin, Scheduler, SchedulerEntry, SchedulerView,
};
use params::{ParamKind, Parameter};
use units::{PathId, Rate, Span};

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "adaptive-redundant",
    aliases: &["dynamic-redundancy"],
    title: "paths with a small window or share send copies",
    source: "Han et al., SIGCOMM 2019 posters, section 3.2",
    code_version: None,
    needs: Needs::Measurements,
    fill: Fill::Cwnd,
    parameters: &[
        Parameter {
            name: "normal",
            description: "rule for choosing the path",
            kind: ParamKind::Choice(&["roundrobin", "minrtt"]),
        },
        Parameter {
            name: "window",
            description: "a path whose window has at most this many packets is redundant",
            kind: ParamKind::Number { default: 4.0, min: 0.0, max: 1e6 },
        },
    ],
    constructor: Constructor::Function(|setup| {
        let round_robin = (setup.params.choice("normal") == "roundrobin").then(|| RoundRobin::new(1, false));
        Box::new(AdaptiveRedundant::new(round_robin, setup.params.number("window") as u32))
    }),
};

/// State of adaptive redundancy.
#[derive(Clone, Debug)]
pub struct AdaptiveRedundant {
    /// `None`: paths are chosen by minimum RTT.
    round_robin: Option<RoundRobin>,
    small_cwnd: u32,
}

/// The share of a path's bandwidth that Coupled BBR leaves to it between probes; at most 1, negative for a slow path.
fn alpha(own_rate: Rate, rates: impl Iterator<Item = Rate>) -> f64 {
    let (max, sum_of_squares) = rates
        .map(|rate| rate.0 as f64)
        .fold((0.0_f64, 0.0), |(max, sum_of_squares), rate| (max.max(rate), sum_of_squares + rate * rate));
    (4.0 * own_rate.0 as f64 * max / sum_of_squares - 1.0) / 3.0
}

/// The alpha below which a path is redundant.
fn threshold(rtt: Span, min_rtt: Span, paths: usize) -> f64 {
    rtt.0 as f64 / (paths as f64 * (rtt.0 + min_rtt.0) as f64)
}

impl AdaptiveRedundant {
    /// Paths are chosen by `round_robin`, or by minimum RTT. A path with a window of at most `small_cwnd` packets is
    /// redundant.
    #[must_use]
    pub fn new(round_robin: Option<RoundRobin>, small_cwnd: u32) -> Self {
        Self { round_robin, small_cwnd }
    }

    fn is_redundant(&self, view: &SchedulerView<'_>, path: &PathView) -> bool {
        let has_small_share = || {
            let min_rtt = view.usable_paths().map(|(_, path)| path.srtt).min().unwrap_or_default();
            let alpha_of_path = alpha(path.delivery_rate, view.usable_paths().map(|(_, path)| path.delivery_rate));
            alpha_of_path < threshold(path.srtt, min_rtt, view.usable_paths().count())
        };
        path.cwnd <= self.small_cwnd || path.delivery_rate.0 > 0 && has_small_share()
    }

    fn choose_path(&mut self, view: &SchedulerView<'_>) -> Option<PathId> {
        match &mut self.round_robin {
            Some(round_robin) => round_robin.next_path(view),
            None => fastest(view.paths_with_room()).map(|(path, _)| path),
        }
    }
}

impl Scheduler for AdaptiveRedundant {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        if view.sendable_packets() == 0 {
            let (path, _) = view.paths_with_room().find(|(_, path)| self.is_redundant(view, path))?;
            return Some(Pick { path, packet: PacketChoice::OldestUnacked });
        }
        let path = self.choose_path(view)?;
        let is_redundant = self.is_redundant(view, &view.paths[path.index()]);
        Some(Pick { path, packet: if is_redundant { PacketChoice::OldestUnacked } else { PacketChoice::Next } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{VIEW, path, pick_all};

    fn alphas<const N: usize>(mbit: [u64; N]) -> [f64; N] {
        let rates = mbit.map(Rate::from_mbit);
        rates.map(|own_rate| (alpha(own_rate, rates.into_iter()) * 1e4).round() / 1e4)
    }

    #[test]
    fn the_shares_of_coupled_bbr() {
        assert_eq!(alphas([100, 100]), [0.3333; 2]);
        assert_eq!(alphas([100, 50]), [0.7333, 0.2]);
        assert_eq!(alphas([100, 30]), [0.8899, 0.0336]);
        assert_eq!(alphas([100, 20]), [0.9487, -0.0769]);
        assert_eq!(alphas([100; 3]), [0.1111; 3]);
        assert_eq!(alphas([100]), [1.0]);
    }

    #[test]
    fn thresholds_for_long_and_short_paths() {
        let threshold_ms = |rtt, min_rtt, paths| threshold(Span::from_millis(rtt), Span::from_millis(min_rtt), paths);
        assert_eq!([threshold_ms(60, 20, 2), threshold_ms(20, 20, 2)], [0.375, 0.25]);
        assert_eq!(threshold_ms(40, 40, 3), 1.0 / 6.0);
    }

    /// Whether each path is redundant, of paths with these RTTs in ms, bandwidths in Mbit/s and windows.
    fn is_redundant<const N: usize>(paths: [(u64, u64, u32); N]) -> [bool; N] {
        let paths =
            paths.map(|(rtt, mbit, window)| PathView { delivery_rate: Rate::from_mbit(mbit), ..path(rtt, window, 0) });
        let view = SchedulerView { paths: &paths, ..VIEW };
        paths.each_ref().map(|path| AdaptiveRedundant::new(None, 4).is_redundant(&view, path))
    }

    #[test]
    fn a_path_is_redundant_by_its_window_or_by_its_share() {
        assert_eq!(
            is_redundant([(60, 100, 99), (20, 100, 99)]),
            [true, false],
            "1/3 is below 0.375, and not below 0.25"
        );
        assert_eq!(is_redundant([(20, 100, 99), (20, 100, 4)]), [false, true]);
        assert_eq!(is_redundant([(20, 100, 99), (20, 100, 5)]), [false, false]);
        assert_eq!(is_redundant([(20, 100, 99), (20, 30, 99)]), [false, true], "0.0336 is below 0.25");
        assert_eq!(is_redundant([(20, 100, 99); 3]), [true; 3], "1/9 is below 1/6");
        assert_eq!(is_redundant([(20, 100, 99)]), [false]);
        assert_eq!(is_redundant([(20, 100, 99), (60, 0, 10)]), [false, false], "not judged without a sample");
    }

    #[test]
    fn the_bad_path_takes_its_turns_with_copies() {
        let redundant_path = path(20, 3, 0);
        let picks = pick_all(
            &mut AdaptiveRedundant::new(Some(RoundRobin::new(1, false)), 4),
            6,
            &mut [path(20, 9, 0), redundant_path],
        );
        let oldest = Pick { path: PathId(1), packet: PacketChoice::OldestUnacked };
        assert_eq!(picks, [Pick::next(PathId(0)), oldest].repeat(3));
    }

    #[test]
    fn copies_leave_although_there_are_no_new_data() {
        let paths = [path(20, 9, 0), path(60, 3, 0)];
        let pick = AdaptiveRedundant::new(None, 4).pick(&SchedulerView { unsent_packets: 0, paths: &paths, ..VIEW });
        assert_eq!(pick, Some(Pick { path: PathId(1), packet: PacketChoice::OldestUnacked }));
    }
}
