//! A policer drops whatever exceeds a token rate: bandwidth beyond it is an illusion paid for in losses.
//!
//! Between heavy losses the delivery rate is averaged over at least four round trips; two intervals in a row that agree
//! are taken for the token rate, which then is the bandwidth for the next 48 round trips.

use super::bandwidth;
use units::{Instant, Span};

/// Least and greatest length of an interval, round trips.
const LEAST_ROUNDS: u32 = 4;
const MOST_ROUNDS: u32 = 4 * LEAST_ROUNDS;
/// Heavy loss: lost / delivered, in 1/256.
const HEAVY: u64 = 50;
/// Two rates agree if they differ by at most this share (2^-3)...
const AGREE_SHIFT: u32 = 3;
/// ...or by this many bytes a second (4 kbit/s).
const AGREE_BYTES: u64 = 4_000 / 8;
/// How long a token rate is believed, round trips of bandwidth probing.
const BELIEVED_ROUNDS: u32 = 48;

/// Running totals of the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// The latest delivery.
    pub(super) at: Instant,
}

/// What one acknowledgement (or timeout) means to the search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) lossy: bool,
    pub(super) app_limited: bool,
    /// A round trip began.
    pub(super) round: bool,
    /// The sender is probing for bandwidth.
    pub(super) probing: bool,
}

/// The search for a token rate.
#[derive(Debug, Default)]
pub(super) struct Policer {
    /// The rate of the last interval; zero without one.
    rate: u64,
    believed: bool,
    sampling: bool,
    rounds: u32,
    start: Totals,
}

impl Policer {
    /// The token rate, while one is believed.
    pub(super) fn rate(&self) -> Option<u64> {
        self.believed.then_some(self.rate)
    }

    /// Forgets the search so far.
    pub(super) fn restart(&mut self, totals: Totals) {
        *self = Self { start: totals, ..Self::default() };
    }

    /// True if a token rate has been believed for long enough: probe again.
    pub(super) fn sample(&mut self, totals: Totals, sample: Sample, mss: u32) -> bool {
        if self.believed {
            return self.expires(totals, sample);
        }
        // Only after the first loss has the policer run out of tokens.
        if !self.sampling && sample.lossy {
            *self = Self { sampling: true, rounds: 0, start: totals, ..*self };
        }
        if self.sampling {
            self.search(totals, sample, mss);
        }
        false
    }

    fn expires(&mut self, totals: Totals, sample: Sample) -> bool {
        self.rounds += u32::from(sample.probing && sample.round);
        let over = self.rounds >= BELIEVED_ROUNDS;
        if over {
            self.restart(totals);
        }
        over
    }

    fn search(&mut self, totals: Totals, sample: Sample, mss: u32) {
        self.rounds += u32::from(sample.round);
        if sample.app_limited || self.rounds > MOST_ROUNDS {
            self.restart(totals);
        } else if self.rounds >= LEAST_ROUNDS && sample.lossy {
            self.try_end_interval(totals, mss);
        }
    }

    fn try_end_interval(&mut self, totals: Totals, mss: u32) {
        let (lost, delivered) = (totals.lost - self.start.lost, totals.delivered - self.start.delivered);
        let length = totals.at.as_millis().saturating_sub(self.start.at.as_millis());
        if delivered > 0 && lost << 8 >= HEAVY * delivered && length > 0 {
            let packets = u32::try_from(delivered).unwrap_or(u32::MAX);
            self.end_interval(bandwidth::rate(packets, Span::from_millis(length)), totals, mss);
        }
    }

    fn end_interval(&mut self, rate: u64, totals: Totals, mss: u32) {
        if self.rate > 0 && agree(rate, self.rate, mss) {
            *self = Self { rate: rate.midpoint(self.rate), believed: true, rounds: 0, ..*self };
        } else {
            *self = Self { rate, rounds: 0, start: totals, ..*self };
        }
    }
}

fn agree(rate: u64, last: u64, mss: u32) -> bool {
    let difference = rate.abs_diff(last);
    difference <= last >> AGREE_SHIFT
        || bandwidth::bytes_per_second(difference, mss, bandwidth::GAIN_ONE) <= AGREE_BYTES
}
