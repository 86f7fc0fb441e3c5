//! BLEST: a slow path is left idle when its packet would block the fast path.
//!
//! The fastest path F (minimum smoothed RTT) is used whenever it has room. Otherwise S is the fastest of the paths with
//! room. A packet on S occupies the receive window until it is acknowledged, and in that time F could send
//!
//! ```text
//! linger  = min_S + (max_S - min_S) * buffered_S / window_S, at least srtt_S
//! rounds  = linger / rtt_F + 1                                        (whole)
//! packets = rounds * (W_F + (rounds - 1) / 2),  W_F = max(window_F, threshold_F + 1)
//!         = window_F * (2^rounds - 1)                                 in the first slow start, rounds <= 16
//! ```
//!
//! Data wait for F if `packets * lambda` does not fit into the receive window in addition to the packets of S,
//! including this one. `lambda` corrects the estimate. Once per RTT of S it grows by 0.04 if the receive window stalled
//! in that time ([`SchedulerView::rwnd_stalls`]), and otherwise falls by 0.01.
//!
//! Source: Ferlin, Alay, Mehani, Boreli, IFIP Networking 2016; constants and halves as in `mptcp_blest.c` of the
//! out-of-tree kernel. Interpretation: `min`, `max` are the extremes of the smoothed RTT at the picks so far, and
//! `rtt_F` is midway between those of F.

use crate::min_rtt::fastest;
use crate::{Constructor, Fill, Needs, PathView, Pick, Scheduler, SchedulerEntry, SchedulerView};
use params::{ParamKind, Parameter, Params};
use units::{INFINITE_SSTHRESH, Instant, PathId, Span};

pub(crate) const ENTRY: SchedulerEntry = SchedulerEntry {
    name: "blest",
    aliases: &[],
    title: "minrtt, but leaves a slow path idle if it would block the fast one",
    source: "Ferlin et al., IFIP Networking 2016; out-of-tree MPTCP kernel, mptcp_blest.c",
    code_version: None,
    needs: Needs::Measurements,
    fill: Fill::Cwnd,
    parameters: &[
        factor("lambda", "initial factor on the data that the fast path could send", 1.2),
        factor("min_lambda", "its lower bound", 1.0),
        factor("max_lambda", "its upper bound", 1.3),
        factor("raise", "added to it if the receive window stalled", 0.04),
        factor("lower", "subtracted from it if the receive window did not stall", 0.01),
    ],
    constructor: Constructor::Function(|setup| Box::new(Blest::new(setup.params))),
};

const fn factor(name: &'static str, description: &'static str, value: f64) -> Parameter {
    Parameter { name, description, kind: ParamKind::Number { default: value, min: 0.0, max: 100.0 } }
}

/// Maximum number of rounds of the first slow start that are estimated. The window doubles in each round.
const MAX_DOUBLINGS: u64 = 16;

/// State of BLEST. Factors are in thousandths.
#[derive(Clone, Debug)]
pub struct Blest {
    lambda: u64,
    min_lambda: u64,
    max_lambda: u64,
    raise: u64,
    lower: u64,
    last_adjusted: Instant,
    rwnd_stalls: u64,
    /// Minimum and maximum smoothed RTT of each path; (0, 0) before the first.
    rtt_ranges: Vec<(Span, Span)>,
}

impl Blest {
    fn new(params: &Params) -> Self {
        let [lambda, min, max, raise, lower] = ENTRY.parameters else { unreachable!("five parameters") };
        let thousandths = |parameter: &Parameter| (params.number(parameter.name) * 1000.0 + 0.5) as u64;
        let [lambda, min_lambda, max_lambda, raise, lower] = [lambda, min, max, raise, lower].map(thousandths);
        Self {
            lambda,
            min_lambda,
            max_lambda,
            raise,
            lower,
            last_adjusted: Instant::ZERO,
            rwnd_stalls: 0,
            rtt_ranges: Vec::new(),
        }
    }

    /// Extends the RTT range of each path.
    fn update_rtt_ranges(&mut self, paths: &[PathView]) {
        self.rtt_ranges.resize(paths.len(), (Span::ZERO, Span::ZERO));
        for ((min, max), path) in self.rtt_ranges.iter_mut().zip(paths) {
            let is_first = *min == Span::ZERO;
            *min = if is_first { path.srtt } else { path.srtt.min(*min) };
            *max = path.srtt.max(*max);
        }
    }

    /// Adjusts lambda, once per RTT of the slow path.
    fn update_lambda(&mut self, view: &SchedulerView<'_>, rtt: Span) {
        if view.now.since(self.last_adjusted) < rtt {
            return;
        }
        let stalled = view.rwnd_stalls > self.rwnd_stalls;
        let lambda = if stalled { self.lambda + self.raise } else { self.lambda.saturating_sub(self.lower) };
        self.lambda = lambda.min(self.max_lambda).max(self.min_lambda);
        (self.last_adjusted, self.rwnd_stalls) = (view.now, view.rwnd_stalls);
    }

    /// Time for which a packet on this path occupies the receive window.
    fn linger_time(&self, id: PathId, path: &PathView) -> Span {
        let (min, max) = self.rtt_ranges[id.index()];
        let queueing = (max.saturating_sub(min) * u64::from(path.buffered_packets())) / u64::from(path.cwnd.max(1));
        (min + queueing).max(path.srtt)
    }

    /// Packets that the fast path could send within a span.
    fn packets_within(&self, id: PathId, path: &PathView, span: Span) -> u64 {
        let (min, max) = self.rtt_ranges[id.index()];
        let rounds = span.0 / ((min + max) / 2).0.max(1) + 1;
        if path.ssthresh >= INFINITE_SSTHRESH {
            return u64::from(path.cwnd) * ((1 << rounds.min(MAX_DOUBLINGS)) - 1);
        }
        let window = u64::from(path.cwnd.max(path.ssthresh + 1));
        rounds.saturating_mul(window + (rounds - 1) / 2)
    }

    /// Bytes of receive window that the fast path needs while a packet is on the slow path.
    fn needed_bytes(&self, view: &SchedulerView<'_>, fast: (PathId, &PathView), slow: (PathId, &PathView)) -> u64 {
        let packets_within = self.packets_within(fast.0, fast.1, self.linger_time(slow.0, slow.1));
        packets_within.saturating_mul(u64::from(view.packet_bytes)).saturating_mul(self.lambda) / 1000
    }

    fn would_block(&self, view: &SchedulerView<'_>, fast: (PathId, &PathView), slow: (PathId, &PathView)) -> bool {
        let bytes = u64::from(view.packet_bytes);
        let rwnd =
            view.snd_nxt.saturating_sub(view.snd_una).saturating_add(view.rwnd_left_packets).saturating_mul(bytes);
        self.needed_bytes(view, fast, slow) > rwnd.saturating_sub((u64::from(slow.1.buffered_packets()) + 1) * bytes)
    }
}

impl Scheduler for Blest {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Option<Pick> {
        self.update_rtt_ranges(view.paths);
        if view.sendable_packets() == 0 {
            return None;
        }
        let fast = fastest(view.usable_paths())?;
        if fast.1.has_room {
            return Some(Pick::next(fast.0));
        }
        let slow = fastest(view.paths_with_room())?;
        self.update_lambda(view, slow.1.srtt);
        (!self.would_block(view, fast, slow)).then(|| Pick::next(slow.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::{VIEW, path};
    use std::collections::BTreeMap;

    fn blest() -> Blest {
        Blest::new(&Params::new(ENTRY.parameters, &BTreeMap::new()).expect("defaults"))
    }

    fn estimates(fast: PathView) -> (u64, u64) {
        let paths = [fast, path(100, 10, 0)];
        let mut scheduler = blest();
        scheduler.update_rtt_ranges(&paths);
        let view = SchedulerView { paths: &paths, ..VIEW };
        let [fast, slow] = [(PathId(0), &paths[0]), (PathId(1), &paths[1])];
        (
            scheduler.packets_within(fast.0, fast.1, scheduler.linger_time(slow.0, slow.1)),
            scheduler.needed_bytes(&view, fast, slow),
        )
    }

    #[test]
    fn what_the_fast_path_could_send_in_the_slow_ones_rtt() {
        assert_eq!(estimates(path(20, 10, 10)), (72, 125_107), "6 rounds of 10 + 2 packets, times 1448 times 1.2");
        let first_slow_start = PathView { ssthresh: INFINITE_SSTHRESH, ..path(20, 10, 10) };
        assert_eq!(estimates(first_slow_start).0, 630, "10 * (2^6 - 1)");
        assert_eq!(estimates(PathView { ssthresh: 19, ..path(20, 10, 10) }).0, 132, "6 * (20 + 2)");
    }

    #[test]
    fn the_linger_time_lies_between_the_extremes_of_the_rtt() {
        let mut scheduler = blest();
        scheduler.update_rtt_ranges(&[path(100, 10, 0)]);
        scheduler.update_rtt_ranges(&[path(200, 10, 0)]);
        assert_eq!(scheduler.linger_time(PathId(0), &path(120, 10, 5)), Span::from_millis(150));
        assert_eq!(
            scheduler.linger_time(PathId(0), &path(180, 10, 5)),
            Span::from_millis(180),
            "at least the smoothed RTT"
        );
    }

    #[test]
    fn the_slow_path_is_used_when_the_window_has_room_for_both() {
        let paths = [path(20, 10, 10), path(100, 10, 2)];
        let pick_with =
            |rwnd_left_packets| blest().pick(&SchedulerView { snd_nxt: 12, rwnd_left_packets, paths: &paths, ..VIEW });
        // Needed: 125107 bytes of 12 + room packets, less the three on the slow path: 86.4 packets and three.
        assert_eq!(pick_with(89 - 12), None);
        assert_eq!(pick_with(90 - 12), Some(Pick::next(PathId(1))));
    }

    #[test]
    fn lambda_moves_once_in_a_slow_rtt_and_stays_within_its_bounds() {
        let mut scheduler = blest();
        let mut lambda_at = |ms: u64, rwnd_stalls: u64| {
            scheduler.update_lambda(
                &SchedulerView { now: Instant::ZERO + Span::from_millis(ms), rwnd_stalls, ..VIEW },
                Span::from_millis(100),
            );
            scheduler.lambda
        };
        assert_eq!(
            [
                lambda_at(99, 0),
                lambda_at(100, 1),
                lambda_at(199, 2),
                lambda_at(200, 2),
                lambda_at(300, 2),
                lambda_at(400, 2)
            ],
            [1200, 1240, 1240, 1280, 1270, 1260]
        );
        assert_eq!((5..10).map(|n| lambda_at(n * 100, n)).max(), Some(1300));
        assert_eq!((10..99).map(|n| lambda_at(n * 100, 9)).min(), Some(1000));
    }
}
