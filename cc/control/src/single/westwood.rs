//! Westwood+: after a loss, the window is the measured bandwidth times the minimum RTT.
//!
//! - Increase: Reno.
//! - Decrease: Reno's half during the reduction; at its end threshold = window = `bandwidth minimum RTT / MSS`. A
//!   timeout sets the threshold to that value, and slow start grows to it.
//! - Bandwidth: bytes acknowledged per round trip (at least 50 ms), through two successive filters `(7 old + new) / 8`.
//!   A duplicate acknowledgement counts as one packet, which is subtracted from the later cumulative one.
//!
//! Source: Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP congestion
//! control" (CCR 2004); integer steps as in Linux 6.1 (`tcp_westwood.c`). Time is the host's timer tick, and the
//! bandwidth is in whole bytes per tick. Deviation from the paper, as in Linux: the window first falls to a half, and
//! to the estimate at the end, even if the episode was undone (`decrease = "estimate"`: the paper's rule).
//! Acknowledgements that header prediction accepts are counted as they are, even duplicates.

use crate::common::{self, CongestionOps, CwndController, CwndState};
use crate::{
    AckProgress, AckSample, AlgorithmEntry, Constructor, Context, Deviation, ParamKind, Parameter, Params, PathInfo,
    Properties,
};
use units::Span;

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "westwood",
    aliases: &["westwood+", "westwoodplus"],
    title: "Reno that resumes at the measured bandwidth after a loss (Westwood+)",
    source: "Grieco and Mascolo, CCR 2004; Linux 6.1 tcp_westwood.c",
    parameters: &[
        Parameter {
            name: "decrease",
            description: "target of a reduction: a half and, at its end, the estimate; or the estimate at once",
            kind: ParamKind::Choice(&["half", "estimate"]),
        },
        Parameter {
            name: "sample_ms",
            description: "minimum duration of a bandwidth sample, ms",
            kind: ParamKind::Number { default: 50.0, min: 1.0, max: 10_000.0 },
        },
    ],
    properties: Properties {
        deviations: &[(
            Deviation::SetsCwndOnRecovered,
            "both come from the measured bandwidth (Linux CA_EVENT_COMPLETE_CWR)",
        )],
        ..Properties::DEFAULT
    },
    constructor: Constructor::PerPath(|params| CwndController::boxed(Westwood::new(params))),
};

/// The RTT before any sample: so long that no bandwidth sample ends.
const INIT_RTT: Span = Span::from_secs(20);

/// State of Westwood. Times are ticks, bandwidths bytes per tick.
#[derive(Debug)]
pub struct Westwood {
    ssthresh_is_estimate: bool,
    min_sample_interval: Span,
    bandwidth: Bandwidth,
    rtt: u64,
    rtt_min: u64,
    /// Whether the next acknowledgement's RTT becomes the minimum.
    reset_rtt_min: bool,
}

/// Bandwidth estimation from acknowledgements.
#[derive(Debug, Default)]
struct Bandwidth {
    /// The bandwidth after the first filter.
    bw_ns_est: u64,
    /// The bandwidth after both filters: the estimate.
    bw_est: u64,
    /// Bytes of the current sample.
    bk: u64,
    rtt_win_sx: u64,
    snd_una: u64,
    /// Bytes of duplicates, counted before the cumulative acknowledgement that covers them.
    accounted: u64,
}

/// Linux `westwood_do_filter`.
fn do_filter(average: u64, sample: u64) -> u64 {
    (7 * average + sample) >> 3
}

impl Bandwidth {
    fn filter(&mut self, elapsed: u64) {
        let sample = self.bk / elapsed;
        if (self.bw_ns_est, self.bw_est) == (0, 0) {
            (self.bw_ns_est, self.bw_est) = (sample, sample);
        } else {
            self.bw_ns_est = do_filter(self.bw_ns_est, sample);
            self.bw_est = do_filter(self.bw_est, self.bw_ns_est);
        }
        self.bk = 0;
    }

    /// Bytes that left the network by this acknowledgement, in packets of `mss` (Linux `westwood_acked_count`,
    /// `westwood_fast_bw`).
    fn acked_count(&mut self, progress: &AckProgress, mss: u64) -> u64 {
        let cumul_ack = progress.snd_una.saturating_sub(self.snd_una) * mss;
        self.snd_una = progress.snd_una;
        if progress.is_predicted {
            cumul_ack
        } else if cumul_ack == 0 {
            self.accounted += mss;
            mss
        } else if cumul_ack == mss {
            mss
        } else if self.accounted >= cumul_ack {
            self.accounted -= cumul_ack;
            mss
        } else {
            cumul_ack - std::mem::take(&mut self.accounted)
        }
    }
}

impl Westwood {
    fn new(params: &Params) -> Self {
        Self {
            ssthresh_is_estimate: params.choice("decrease") == "estimate",
            min_sample_interval: Span::from_secs_f64(params.number("sample_ms") / 1000.0),
            bandwidth: Bandwidth::default(),
            rtt: 0,
            rtt_min: 0,
            reset_rtt_min: true,
        }
    }

    fn update_rtt(&mut self, state: &CwndState, progress: &AckProgress) {
        if let Some(rtt) = progress.rtt.filter(|rtt| rtt.as_micros() > 0) {
            self.rtt = state.jiffies_in(rtt);
        }
    }

    /// The window that fills the path without a queue, packets.
    fn bw_rttmin(&self, state: &CwndState) -> u32 {
        let packets = self.bandwidth.bw_est.saturating_mul(self.rtt_min) / u64::from(state.mss.max(1));
        packets.clamp(2, u64::from(state.cwnd_clamp)) as u32
    }
}

impl CongestionOps for Westwood {
    fn init(&mut self, state: &mut CwndState, _path: &PathInfo, cx: &mut Context<'_>) {
        (self.rtt, self.rtt_min) = (state.jiffies_in(INIT_RTT), state.jiffies_in(INIT_RTT));
        // Counting begins at the number of the first acknowledgement, which counts as a duplicate.
        (self.bandwidth.rtt_win_sx, self.bandwidth.snd_una) = (state.jiffies(cx.now), u64::MAX);
    }

    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _sample: &AckSample, _cx: &mut Context<'_>) {
        common::reno_cong_avoid(state, acked);
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        if self.ssthresh_is_estimate {
            self.bw_rttmin(state).min(state.cwnd.max(2))
        } else {
            common::reno_ssthresh(state)
        }
    }

    fn in_ack_event(&mut self, state: &mut CwndState, progress: &AckProgress, cx: &mut Context<'_>) {
        self.update_rtt(state, progress);
        let now = state.jiffies(cx.now);
        let elapsed = now - self.bandwidth.rtt_win_sx;
        // The packets of this acknowledgement belong to the next sample.
        if elapsed > self.rtt.max(state.jiffies_in(self.min_sample_interval)) {
            self.bandwidth.filter(elapsed);
            self.bandwidth.rtt_win_sx = now;
        }
        self.bandwidth.bk += self.bandwidth.acked_count(progress, u64::from(state.mss));
        let prior_rtt_min = if std::mem::take(&mut self.reset_rtt_min) { self.rtt } else { self.rtt_min };
        self.rtt_min = prior_rtt_min.min(self.rtt);
    }

    fn on_timeout(&mut self, state: &mut CwndState, _cx: &mut Context<'_>) {
        state.ssthresh = self.bw_rttmin(state);
        self.reset_rtt_min = true;
    }

    fn on_recovered(&mut self, state: &mut CwndState, _cx: &mut Context<'_>) {
        state.ssthresh = self.bw_rttmin(state);
        state.cwnd = state.ssthresh;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{context, defaults, path, slow_start};
    use crate::{Cause, PathEvent};

    #[test]
    fn the_bandwidth_passes_two_filters() {
        let mut bandwidth = Bandwidth { bw_ns_est: 1000, bw_est: 1000, ..Bandwidth::default() };
        let mut sample = || {
            bandwidth.bk = 2000 * 50;
            bandwidth.filter(50);
            (bandwidth.bw_ns_est, bandwidth.bw_est)
        };
        assert_eq!([sample(), sample(), sample()], [(1125, 1015), (1234, 1042), (1329, 1077)]);
    }

    #[test]
    fn the_estimate_is_bandwidth_times_min_rtt() {
        let mut westwood = Westwood::new(&defaults(&ENTRY));
        (westwood.bandwidth.bw_est, westwood.rtt_min) = (12_500, 50);
        assert_eq!(westwood.bw_rttmin(&CwndState::default()), 431);
        westwood.bandwidth.bw_est = 1;
        assert_eq!(westwood.bw_rttmin(&CwndState::default()), 2);
    }

    #[test]
    fn a_duplicate_counts_once() {
        let mut bandwidth = Bandwidth::default();
        // Two duplicates, then the acknowledgement of those two, the hole and one more.
        let mut count = |snd_una, is_predicted| {
            bandwidth.acked_count(&AckProgress { snd_una, is_predicted, ..AckProgress::default() }, 1000)
        };
        assert_eq!([0, 0, 4].map(|una| count(una, false)), [1000, 1000, 2000]);
        assert_eq!([5, 7].map(|una| count(una, false)), [1000, 2000]);
        assert_eq!(
            (count(7, false), count(10, true)),
            (1000, 3000),
            "where the header is predicted, duplicates are not deducted"
        );
    }

    /// After ten seconds at 10 packets every 10 ms and an RTT of 100 ms.
    fn flow(state: &mut CwndState) -> Westwood {
        let mut westwood = Westwood::new(&defaults(&ENTRY));
        westwood.init(state, &path(10, None), &mut context(0));
        for ack in 1..=1000 {
            let progress =
                AckProgress { rtt: Some(Span::from_millis(100)), snd_una: 10 * ack, ..AckProgress::default() };
            westwood.in_ack_event(state, &progress, &mut context(10 * ack));
        }
        westwood
    }

    #[test]
    fn the_window_returns_to_bandwidth_times_min_rtt() {
        let mut state = slow_start(500);
        let mut westwood = flow(&mut state);
        assert_eq!(westwood.ssthresh(&state, &mut context(10_000)), 250);
        westwood.on_recovered(&mut state, &mut context(10_100));
        // 1448 bytes per millisecond, 100 ms: 100 packets; truncation in the filters takes up to 14 of the 1448.
        assert!((99..=100).contains(&state.cwnd), "{}", state.cwnd);
        assert_eq!(state.ssthresh, state.cwnd);
    }

    /// The window after a recovery of 1448 bytes per millisecond and 100 ms, which an acknowledgement with 80 ms ends.
    fn recovered() -> u32 {
        let (mut state, mut westwood) = (CwndState::default(), Westwood::new(&defaults(&ENTRY)));
        let mut notify = |event: PathEvent, ms| state.on_event(&mut westwood, &event, &mut context(ms));
        let sample = |ack: u64, rtt: u64| AckSample {
            rtt: Some(Span::from_millis(rtt)),
            snd_una: 10 * ack,
            snd_nxt: 10 * ack + 90,
            ..AckSample::default()
        };
        notify(PathEvent::PathUp(path(10, None)), 0);
        (1..=1000).for_each(|ack| notify(PathEvent::Ack(sample(ack, 100)), 10 * ack));
        notify(PathEvent::Congestion { cause: Cause::Loss, reduce_cwnd: true, in_flight: 90, by_timer: false }, 10_000);
        let last = sample(1001, 80);
        notify(PathEvent::AckProgress(last.progress()), 10_010);
        notify(PathEvent::Recovered { to_ssthresh: true }, 10_010);
        notify(PathEvent::Ack(last), 10_010);
        assert_eq!(westwood.bandwidth.accounted, 0, "counted again it would be a duplicate");
        state.cwnd
    }

    #[test]
    fn the_acknowledgement_that_ends_a_recovery_counts_for_its_window_and_once() {
        assert!((79..=80).contains(&recovered()));
    }

    #[test]
    fn a_timeout_resets_the_min_rtt() {
        let mut state = slow_start(500);
        let mut westwood = flow(&mut state);
        westwood.on_timeout(&mut state, &mut context(10_000));
        assert!((99..=100).contains(&state.ssthresh));
        let progress = AckProgress { rtt: Some(Span::from_millis(300)), snd_una: 10_010, ..AckProgress::default() };
        westwood.in_ack_event(&mut state, &progress, &mut context(10_001));
        assert_eq!(westwood.rtt_min, 300);
    }
}
