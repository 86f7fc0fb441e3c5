//! A policer: it drops packets that exceed a token bucket, and queues nothing.
//!
//! RFC 2697 (a single rate three color marker) with an excess burst of zero and red packets dropped, as in
//! `tc police rate R burst B conform-exceed drop`. The bucket holds at most `burst` tokens of one byte, which are added
//! at `rate`. A packet passes if there are as many tokens as it has bytes, and takes them. Hence at most
//! `burst + rate x t` bytes pass in any time `t`.

use crate::config::PolicerConfig;
use units::Instant;

/// The parts of a token of one byte. A rate of 1 bit/s adds one part per nanosecond.
const TOKEN: u128 = 8_000_000_000;

/// A token bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policer {
    config: PolicerConfig,
    /// Content of the bucket at `updated`, in parts of a [`TOKEN`]: exact, whatever the rate.
    tokens: u128,
    updated: Instant,
}

impl Policer {
    pub(super) fn new(config: PolicerConfig) -> Self {
        Self { config, tokens: u128::from(config.burst) * TOKEN, updated: Instant::ZERO }
    }

    /// Whether a packet of `size` bytes conforms; it then takes its tokens.
    pub(super) fn conforms(&mut self, now: Instant, size: u64) -> bool {
        let new_tokens = u128::from(self.config.rate.0) * u128::from(now.since(self.updated).0);
        self.tokens = (self.tokens + new_tokens).min(u128::from(self.config.burst) * TOKEN);
        self.updated = now;
        let cost = u128::from(size) * TOKEN;
        let conforms = cost <= self.tokens;
        if conforms {
            self.tokens -= cost;
        }
        conforms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Rate;

    const US: u64 = 1_000;

    fn policer(mbit: u64, burst: u64) -> Policer {
        Policer::new(PolicerConfig { rate: Rate::from_mbit(mbit), burst })
    }

    #[test]
    fn a_full_bucket_passes_its_burst_and_then_a_packet_whenever_its_tokens_have_come() {
        // 12 Mbit/s bring the tokens of 1500 bytes in 1 ms.
        let mut policer = policer(12, 4500);
        assert_eq!([0; 5].map(|now| policer.conforms(Instant(now), 1500)), [true, true, true, false, false]);
        let second = [999 * US, 1000 * US, 1000 * US, 1999 * US, 2000 * US];
        assert_eq!(second.map(|now| policer.conforms(Instant(now), 1500)), [false, true, false, false, true]);
    }

    #[test]
    fn a_bucket_holds_no_more_than_its_burst() {
        let mut policer = policer(12, 4500);
        let hour = Instant(3_600_000_000 * US);
        assert_eq!([hour; 4].map(|now| policer.conforms(now, 1500)), [true, true, true, false]);
        assert!(!policer.conforms(Instant(2 * hour.0), 4501), "a packet larger than the bucket never passes");
        assert!(policer.conforms(Instant(2 * hour.0), 4500));
    }

    /// Packets of 100 bytes at 1 Mbit/s through 333 333 bit/s: the bytes passed by time t are the most multiples of 100
    /// that burst + rate x t holds.
    #[test]
    fn what_passes_an_overloaded_policer_is_burst_plus_rate_times_time() {
        let mut policer = Policer::new(PolicerConfig { rate: Rate::from_bits(333_333), burst: 1000 });
        let mut passed = 0;
        for number in 0..100_000u64 {
            let now = number * 800 * US;
            passed += if policer.conforms(Instant(now), 100) { 100 } else { 0 };
            let allowed = 1000 + (u128::from(now) * 333_333 / 8_000_000_000) as u64;
            assert_eq!(passed, (allowed / 100 * 100).min((number + 1) * 100), "at {now} ns");
        }
    }
}
