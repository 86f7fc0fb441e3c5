//! The length of monitor intervals, as text: `rtt`, `10ms`, `500us`.

use std::fmt;
use units::Span;

/// The length of monitor intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// A fixed length, from 1 ms to 60 s.
    Fixed(Span),
    /// The smoothed RTT at the interval's start.
    RoundTrip,
}

/// Range of a fixed interval, nanoseconds.
const RANGE_NS: std::ops::RangeInclusive<f64> = 1e6..=6e10;

impl Interval {
    /// Reads `rtt`, or a time in milliseconds or microseconds (`10ms`, `2500us`).
    ///
    /// # Errors
    /// Any other text, and times below 1 ms or above 60 s; with what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "rtt" {
            return Ok(Self::RoundTrip);
        }
        let number = |unit: &str| text.strip_suffix(unit).and_then(|number| number.trim().parse::<f64>().ok());
        match number("ms").map(|ms| ms * 1e6).or_else(|| number("us").map(|us| us * 1e3)) {
            Some(ns) if RANGE_NS.contains(&ns) => Ok(Self::Fixed(Span((ns + 0.5) as u64))),
            _ => Err(format!(
                "`{text}` is not an interval; intervals are `rtt`, and times such as `10ms`, 1ms to 60000ms"
            )),
        }
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RoundTrip => f.write_str("rtt"),
            Self::Fixed(span) => write!(f, "{}ms", span.0 as f64 / 1e6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_and_written() {
        for (text, shown) in [("rtt", "rtt"), ("10ms", "10ms"), (" 2.5 ms", "2.5ms"), ("2500us", "2.5ms")] {
            assert_eq!(Interval::parse(text).map(|interval| interval.to_string()), Ok(shown.to_owned()));
        }
        for text in ["", "10", "ms", "0.5ms", "999us", "60001ms", "nanms", "-10ms", "fast"] {
            assert!(Interval::parse(text).is_err_and(|error| error.contains("is not an interval")), "{text}");
        }
    }
}
