//! Westwood+: after a loss, return to the window that the measured bandwidth fills without queue.
//!
//! - Increase: Reno.
//! - Decrease: Reno's half during the reduction; at its end threshold = window = `bandwidth least RTT / MSS`.
//!   A timeout sets the threshold to that and lets slow start reach it.
//! - Bandwidth: bytes acknowledged a round trip (50 ms at least), through two filters `(7 old + new) / 8` in a row.
//!   A duplicate acknowledgement counts as one packet, which the cumulative one later gives back.
//!
//! Source: Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP congestion
//! control" (CCR 2004); integer steps as in Linux 6.1 (`tcp_westwood.c`). Time is the host's timer tick, the
//! bandwidth whole bytes a tick.
//! Departure from the paper, Linux's: the window falls to a half first and jumps to the estimate at the end, also when
//! the episode was undone (`decrease = "estimate"`: the paper's). Departure from Linux: duplicates are accounted for on
//! every acknowledgement; Linux omits it where header prediction took its fast path.

use crate::frame::{self, CwndState, WindowRule, Windowed};
use crate::{AckSample, AlgorithmEntry, Constructor, Context, ParamDefault, Parameter, Params, PathInfo};
use units::Span;

/// The registry's line.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "westwood",
    aliases: &["westwood+", "westwoodplus"],
    title: "Reno that resumes at the measured bandwidth after a loss (Westwood+)",
    source: "Grieco and Mascolo, CCR 2004; Linux 6.1 tcp_westwood.c",
    parameters: &[
        Parameter {
            name: "decrease",
            meaning: "where a reduction leads: to a half and to the estimate at its end, or to the estimate at once",
            default: ParamDefault::Word(&["half", "estimate"]),
        },
        Parameter {
            name: "sample_ms",
            meaning: "shortest time of a bandwidth sample, ms",
            default: ParamDefault::Number { value: 50.0, least: 1.0, most: 10_000.0 },
        },
    ],
    make: Constructor::Single(|settings| Windowed::boxed(Westwood::new(settings))),
};

/// The RTT before any sample: long enough that no bandwidth sample ends.
const NO_RTT: Span = Span::from_secs(20);

/// Westwood's own part of a window. Times are ticks, bandwidths bytes a tick.
#[derive(Debug)]
pub struct Westwood {
    to_estimate: bool,
    shortest: Span,
    bandwidth: Bandwidth,
    rtt: u64,
    least_rtt: u64,
    /// The next acknowledgement's RTT becomes the least.
    forget_rtt: bool,
}

/// What the acknowledgements say of the bandwidth.
#[derive(Debug, Default)]
struct Bandwidth {
    /// Once filtered.
    rough: u64,
    /// Twice filtered: the estimate.
    smooth: u64,
    /// Bytes of the sample under way.
    bytes: u64,
    began: u64,
    una: u64,
    /// Bytes of duplicates, counted before the cumulative acknowledgement that covers them.
    accounted: u64,
}

fn filter(old: u64, new: u64) -> u64 {
    (7 * old + new) >> 3
}

impl Bandwidth {
    fn end_sample(&mut self, elapsed: u64) {
        let sample = self.bytes / elapsed;
        if (self.rough, self.smooth) == (0, 0) {
            (self.rough, self.smooth) = (sample, sample);
        } else {
            self.rough = filter(self.rough, sample);
            self.smooth = filter(self.smooth, self.rough);
        }
        self.bytes = 0;
    }

    /// Bytes that this acknowledgement tells to have left the network, in packets of `mss`.
    fn count(&mut self, una: u64, mss: u64) -> u64 {
        let covered = una.saturating_sub(self.una) * mss;
        self.una = una;
        if covered == 0 {
            self.accounted += mss;
            mss
        } else if covered == mss {
            mss
        } else if self.accounted >= covered {
            self.accounted -= covered;
            mss
        } else {
            covered - std::mem::take(&mut self.accounted)
        }
    }
}

impl Westwood {
    fn new(settings: &Params) -> Self {
        Self {
            to_estimate: settings.word("decrease") == "estimate",
            shortest: Span::from_secs_f64(settings.number("sample_ms") / 1000.0),
            bandwidth: Bandwidth::default(),
            rtt: 0,
            least_rtt: 0,
            forget_rtt: true,
        }
    }

    /// The window that fills the path without queue, packets.
    fn estimate(&self, state: &CwndState) -> u32 {
        let packets = self.bandwidth.smooth.saturating_mul(self.least_rtt) / u64::from(state.mss.max(1));
        packets.clamp(2, u64::from(state.cwnd_clamp)) as u32
    }
}

impl WindowRule for Westwood {
    fn init(&mut self, state: &mut CwndState, _path: &PathInfo, cx: &mut Context<'_>) {
        (self.rtt, self.least_rtt) = (state.jiffies_in(NO_RTT), state.jiffies_in(NO_RTT));
        // The first acknowledgement's number is where counting begins; itself it counts as a duplicate.
        (self.bandwidth.began, self.bandwidth.una) = (state.jiffies(cx.now), u64::MAX);
    }

    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, _feedback: &AckSample, _cx: &mut Context<'_>) {
        frame::reno_increase(state, acked);
    }

    fn ssthresh(&mut self, state: &CwndState, _cx: &mut Context<'_>) -> u32 {
        if self.to_estimate { self.estimate(state).min(state.cwnd.max(2)) } else { frame::reno_threshold(state) }
    }

    fn on_ack(&mut self, state: &mut CwndState, sample: &AckSample, cx: &mut Context<'_>) {
        if let Some(rtt) = sample.rtt.filter(|rtt| rtt.as_micros() > 0) {
            self.rtt = state.jiffies_in(rtt);
        }
        let now = state.jiffies(cx.now);
        let elapsed = now - self.bandwidth.began;
        // What this acknowledgement brings belongs to the next sample.
        if elapsed > self.rtt.max(state.jiffies_in(self.shortest)) {
            self.bandwidth.end_sample(elapsed);
            self.bandwidth.began = now;
        }
        self.bandwidth.bytes += self.bandwidth.count(sample.snd_una, u64::from(state.mss));
        let known = if std::mem::take(&mut self.forget_rtt) { self.rtt } else { self.least_rtt };
        self.least_rtt = known.min(self.rtt);
    }

    fn on_timeout(&mut self, state: &mut CwndState, _cx: &mut Context<'_>) {
        state.ssthresh = self.estimate(state);
        self.forget_rtt = true;
    }

    fn on_recovered(&mut self, state: &mut CwndState, _cx: &mut Context<'_>) {
        state.ssthresh = self.estimate(state);
        state.cwnd = state.ssthresh;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{context, defaults, path};
    use units::Stream;

    #[test]
    fn the_bandwidth_passes_two_filters() {
        let mut bandwidth = Bandwidth { rough: 1000, smooth: 1000, ..Bandwidth::default() };
        let mut sample = || {
            bandwidth.bytes = 2000 * 50;
            bandwidth.end_sample(50);
            (bandwidth.rough, bandwidth.smooth)
        };
        assert_eq!([sample(), sample(), sample()], [(1125, 1015), (1234, 1042), (1329, 1077)]);
    }

    #[test]
    fn the_estimate_is_bandwidth_times_least_rtt() {
        let mut westwood = Westwood::new(&defaults(&ENTRY));
        (westwood.bandwidth.smooth, westwood.least_rtt) = (12_500, 50);
        assert_eq!(westwood.estimate(&CwndState::default()), 431);
        westwood.bandwidth.smooth = 1;
        assert_eq!(westwood.estimate(&CwndState::default()), 2);
    }

    #[test]
    fn a_duplicate_counts_once() {
        let mut bandwidth = Bandwidth::default();
        // Two duplicates, then the acknowledgement of those two, the hole and one more.
        assert_eq!([0, 0, 4].map(|una| bandwidth.count(una, 1000)), [1000, 1000, 2000]);
        assert_eq!([5, 7].map(|una| bandwidth.count(una, 1000)), [1000, 2000]);
    }

    /// After ten seconds at 10 packets every 10 ms and an RTT of 100 ms.
    fn flow(state: &mut CwndState, stream: &mut Stream) -> Westwood {
        let mut westwood = Westwood::new(&defaults(&ENTRY));
        westwood.init(state, &path(10, None), &mut context(0, stream));
        for ack in 1..=1000 {
            let sample = AckSample { rtt: Some(Span::from_millis(100)), snd_una: 10 * ack, ..AckSample::default() };
            westwood.on_ack(state, &sample, &mut context(10 * ack, stream));
        }
        westwood
    }

    #[test]
    fn the_window_comes_back_to_what_the_bandwidth_fills() {
        let mut stream = Stream::named(1, "test");
        let mut state = CwndState { cwnd: 500, ..CwndState::default() };
        let mut westwood = flow(&mut state, &mut stream);
        assert_eq!(westwood.ssthresh(&state, &mut context(10_000, &mut stream)), 250);
        westwood.on_recovered(&mut state, &mut context(10_100, &mut stream));
        // 1448 bytes a millisecond, 100 ms: 100 packets; truncation in the filters takes up to 14 of the 1448.
        assert!((99..=100).contains(&state.cwnd), "{}", state.cwnd);
        assert_eq!(state.ssthresh, state.cwnd);
    }

    #[test]
    fn a_timeout_begins_the_least_rtt_anew() {
        let mut stream = Stream::named(1, "test");
        let mut state = CwndState { cwnd: 500, ..CwndState::default() };
        let mut westwood = flow(&mut state, &mut stream);
        westwood.on_timeout(&mut state, &mut context(10_000, &mut stream));
        assert!((99..=100).contains(&state.ssthresh));
        let sample = AckSample { rtt: Some(Span::from_millis(300)), snd_una: 10_010, ..AckSample::default() };
        westwood.on_ack(&mut state, &sample, &mut context(10_001, &mut stream));
        assert_eq!(westwood.least_rtt, 300);
    }
}
