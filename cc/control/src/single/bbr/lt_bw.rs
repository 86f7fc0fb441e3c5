//! Detection of policers, which drop all packets above a token rate.
//!
//! Between heavy losses the delivery rate is averaged over at least four round trips. If two consecutive intervals
//! agree, their rate is taken for the token rate, which is then the bandwidth for the next 48 round trips.

use super::bandwidth;
use units::{Instant, Span};

/// Minimum and maximum length of an interval, round trips.
const INTVL_MIN_RTTS: u32 = 4;
const INTVL_MAX_RTTS: u32 = 4 * INTVL_MIN_RTTS;
/// Heavy loss: lost / delivered, in 1/256.
const LOSS_THRESH: u64 = 50;
/// Two rates agree if they differ by at most this fraction (2^-3), or by `BW_DIFF`.
const BW_RATIO_SHIFT: u32 = 3;
/// Two rates agree if they differ by at most this many bytes per second (4 kbit/s).
const BW_DIFF: u64 = 4_000 / 8;
/// Round trips of ProbeBW for which a token rate is used.
const BW_MAX_RTTS: u32 = 48;

/// Counters of the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Time of the latest delivery.
    pub(super) delivered_mstamp: Instant,
}

/// The input of long-term sampling from an acknowledgement or a timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) has_loss: bool,
    pub(super) app_limited: bool,
    /// Whether a round trip began.
    pub(super) round_start: bool,
    /// Whether the mode is ProbeBW.
    pub(super) in_probe_bw: bool,
}

/// Long-term bandwidth sampling: detects a token-bucket policer (Linux `lt_bw`).
#[derive(Debug, Default)]
pub(super) struct LtBw {
    /// Rate of the last interval; zero without one.
    lt_bw: u64,
    lt_use_bw: bool,
    lt_is_sampling: bool,
    lt_rtt_cnt: u32,
    lt_last: Totals,
}

impl LtBw {
    /// The policer's token rate, while it is used.
    pub(super) fn rate(&self) -> Option<u64> {
        self.lt_use_bw.then_some(self.lt_bw)
    }

    /// Resets the search.
    pub(super) fn restart(&mut self, totals: Totals) {
        *self = Self { lt_last: totals, ..Self::default() };
    }

    /// Updates the search. Returns whether a token rate has been used for long enough.
    pub(super) fn update(&mut self, totals: Totals, sample: Sample, mss: u32) -> bool {
        if self.lt_use_bw {
            return self.expires(totals, sample);
        }
        // The policer has run out of tokens only after the first loss.
        if !self.lt_is_sampling && sample.has_loss {
            *self = Self { lt_is_sampling: true, lt_rtt_cnt: 0, lt_last: totals, ..*self };
        }
        if self.lt_is_sampling {
            self.search(totals, sample, mss);
        }
        false
    }

    fn expires(&mut self, totals: Totals, sample: Sample) -> bool {
        self.lt_rtt_cnt += u32::from(sample.in_probe_bw && sample.round_start);
        let expired = self.lt_rtt_cnt >= BW_MAX_RTTS;
        if expired {
            self.restart(totals);
        }
        expired
    }

    fn search(&mut self, totals: Totals, sample: Sample, mss: u32) {
        self.lt_rtt_cnt += u32::from(sample.round_start);
        if sample.app_limited || self.lt_rtt_cnt > INTVL_MAX_RTTS {
            self.restart(totals);
        } else if self.lt_rtt_cnt >= INTVL_MIN_RTTS && sample.has_loss {
            self.try_end_interval(totals, mss);
        }
    }

    fn try_end_interval(&mut self, totals: Totals, mss: u32) {
        let (lost, delivered) = (totals.lost - self.lt_last.lost, totals.delivered - self.lt_last.delivered);
        let interval_ms = totals.delivered_mstamp.as_millis().saturating_sub(self.lt_last.delivered_mstamp.as_millis());
        if delivered > 0 && lost << 8 >= LOSS_THRESH * delivered && interval_ms > 0 {
            let packets = u32::try_from(delivered).unwrap_or(u32::MAX);
            self.end_interval(bandwidth::rate(packets, Span::from_millis(interval_ms)), totals, mss);
        }
    }

    fn end_interval(&mut self, rate: u64, totals: Totals, mss: u32) {
        if self.lt_bw > 0 && is_similar(rate, self.lt_bw, mss) {
            *self = Self { lt_bw: rate.midpoint(self.lt_bw), lt_use_bw: true, lt_rtt_cnt: 0, ..*self };
        } else {
            *self = Self { lt_bw: rate, lt_rtt_cnt: 0, lt_last: totals, ..*self };
        }
    }
}

fn is_similar(rate: u64, last: u64, mss: u32) -> bool {
    let difference = rate.abs_diff(last);
    difference <= last >> BW_RATIO_SHIFT || bandwidth::bytes_per_second(difference, mss, bandwidth::BBR_UNIT) <= BW_DIFF
}
