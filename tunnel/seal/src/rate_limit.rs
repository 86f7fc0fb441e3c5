//! Token buckets: a rate with a burst, eight bytes each (the generic cell rate algorithm, ITU-T I.371, annex A.1).

use units::{Instant, Span};

/// A rate with a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Time per token.
    interval: Span,
    /// Tokens of a full bucket; 0 admits nothing.
    burst: u32,
}

impl Rate {
    /// `count` tokens per second, and a burst of as many.
    pub(crate) const fn per_second(count: u32) -> Self {
        let divisor = if count == 0 { 1 } else { count as u64 };
        Self { interval: Span(1_000_000_000 / divisor), burst: count }
    }
}

/// A token bucket, full at first. All calls with the same [`Rate`] and a time that does not decrease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenBucket {
    /// When the bucket will be full, ns; in the past if it is.
    full_at: u64,
}

impl TokenBucket {
    /// Whether there is a token.
    pub(crate) fn has_token(self, now: Instant, rate: Rate) -> bool {
        rate.burst > 0 && self.full_at <= now.0 + rate.interval.0 * u64::from(rate.burst - 1)
    }

    /// Takes a token. False if there is none.
    pub(crate) fn take(&mut self, now: Instant, rate: Rate) -> bool {
        let has_token = self.has_token(now, rate);
        if has_token {
            self.full_at = self.full_at.max(now.0) + rate.interval.0;
        }
        has_token
    }

    /// Puts a token back.
    pub(crate) fn refund(&mut self, rate: Rate) {
        self.full_at = self.full_at.saturating_sub(rate.interval.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_admits_its_burst_and_then_its_rate() {
        let (rate, mut bucket) = (Rate::per_second(20), TokenBucket::default());
        let start = Instant(7_000_000_000);
        let admitted = |bucket: &mut TokenBucket, now| (0..100).filter(|_| bucket.take(now, rate)).count();
        assert_eq!(admitted(&mut bucket, start), 20);
        let each_ms = (1..=10_000).filter(|ms| bucket.take(start + Span::from_millis(*ms), rate)).count();
        assert_eq!(each_ms, 200, "20 a second for 10 s");
        bucket.refund(rate);
        assert_eq!(admitted(&mut bucket, start + Span::from_secs(10)), 1, "the token that was put back");
        assert_eq!(admitted(&mut bucket, start + Span::from_secs(1000)), 20, "it holds no more than its burst");
    }

    #[test]
    fn a_rate_of_zero_admits_nothing() {
        assert!(!TokenBucket::default().take(Instant(1_000_000_000), Rate::per_second(0)));
    }
}
