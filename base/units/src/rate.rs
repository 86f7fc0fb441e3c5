//! Bit rates.

use crate::Span;
use std::fmt;

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct Rate(pub u64);

impl Rate {
    /// `n` bits per second.
    #[must_use]
    pub const fn from_bits(n: u64) -> Self {
        Self(n)
    }

    /// `n` Mbit/s.
    #[must_use]
    pub const fn from_mbit(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// The rate of `bytes` in `span`; zero if `span` is zero.
    #[must_use]
    pub fn of(bytes: u64, span: Span) -> Self {
        match (span.0, bytes.checked_mul(8_000_000_000)) {
            (0, _) => Self(0),
            (n, Some(bits)) => Self(bits / n),
            (n, None) => Self((u128::from(bytes) * 8_000_000_000 / u128::from(n)) as u64),
        }
    }

    /// Transmission time of `bytes`, rounded up to the nanosecond; [`Span::MAX`] at rate zero.
    #[must_use]
    pub fn time_for(self, bytes: u64) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        // 64 bits suffice for packets; 128 bits are for large transfers.
        match bytes.checked_mul(8_000_000_000) {
            Some(scaled) => Span(scaled.div_ceil(self.0)),
            None => Span((u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.0)) as u64),
        }
    }

    /// Whole bytes transmitted in `span`.
    #[must_use]
    pub fn bytes_in(self, span: Span) -> u64 {
        (u128::from(self.0) * u128::from(span.0) / 8_000_000_000) as u64
    }

    /// Bits per second.
    #[must_use]
    pub const fn as_bits(self) -> u64 {
        self.0
    }

    /// Mbit/s with a fraction.
    #[must_use]
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// As `tc` users write it: `100mbit`, `1.5gbit`, `64kbit`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0 as f64;
        let (value, unit) = match self.0 {
            bits if bits >= 1_000_000_000 => (n / 1e9, "gbit"),
            bits if bits >= 1_000_000 => (n / 1e6, "mbit"),
            bits if bits >= 1_000 => (n / 1e3, "kbit"),
            _ => (n, "bit"),
        };
        write!(f, "{value}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ethernet_frame_at_100_mbit() {
        assert_eq!(Rate::from_mbit(100).time_for(1538), Span::from_nanos(123_040));
        assert_eq!(Rate::from_bits(3).time_for(1), Span(2_666_666_667));
        assert_eq!(Rate::from_mbit(100).time_for(u64::MAX).0, (u128::from(u64::MAX) * 80) as u64);
    }

    #[test]
    fn rate_of_and_bytes_in_agree() {
        let rate = Rate::of(12_500_000, Span::from_secs(1));
        assert_eq!(rate, Rate::from_mbit(100));
        assert_eq!(rate.bytes_in(Span::from_millis(20)), 250_000);
        assert_eq!(Rate::of(1, Span::ZERO), Rate(0));
    }
}
