//! Quantities as `tc` and netem users write them: `100mbit`, `10ms`, `1500b`, `1%`, `1000p`, `1bdp`.
//!
//! A number without a unit is an error. So is a unit that has another meaning in `tc`: `100mbps` (there bytes per
//! second) and `64kb` (there 1024 bytes per kb).

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use units::{Rate, Span};

/// A quantity with a unit, read from a string.
pub trait Quantity: Sized {
    /// The quantity's name, with an example.
    const DESCRIPTION: &'static str;
    /// Regular expression of the strings, for the schema.
    const PATTERN: &'static str;
    /// Parses a string. The first line of the error is the message, the second is the help.
    ///
    /// # Errors
    /// The string is not such a quantity, or is ambiguous.
    fn parse(text: &str) -> Result<Self, String>;
    /// The number `n` with the most likely unit, for the help of an error.
    fn with_likely_unit(n: f64) -> String;
}

/// A transmission rate; never zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitRate(pub Rate);

/// A transmission rate that may be zero: an outage, during which packets wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BitRateOrZero(pub Rate);

/// A time span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Time(pub Span);

/// Bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size(pub u64);

/// A fraction, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent(pub f64);

/// A number of packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packets(pub u32);

/// A queue's limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueSize {
    /// This many packets.
    Packets(u64),
    /// This many bytes.
    Bytes(u64),
    /// The bytes that the link transmits in this time span.
    Time(Span),
    /// Multiples of the bandwidth-delay product.
    Bdp(Decimal),
}

/// The number and the unit of a quantity or of a plain number, for an axis: seconds (`s`), `bit/s`, bytes (`B`), `packets`,
/// percent (`%`), or no unit. None of any other text.
#[must_use]
pub fn number_with_unit(text: &str) -> Option<(f64, &'static str)> {
    let plain = || text.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| (number, ""));
    let time = || Time::parse(text).ok().map(|time| (time.0.0 as f64 / 1e9, "s"));
    let rate = || BitRateOrZero::parse(text).ok().map(|rate| (rate.0.0 as f64, "bit/s"));
    let size = || Size::parse(text).ok().map(|size| (size.0 as f64, "B"));
    let packets = || Packets::parse(text).ok().map(|packets| (f64::from(packets.0), "packets"));
    let percent = || Percent::parse(text).ok().map(|percent| (percent.0 * 100.0, "%"));
    plain().or_else(time).or_else(rate).or_else(size).or_else(packets).or_else(percent)
}

/// `digits` / 10^`scale`: an exact decimal number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decimal {
    digits: u64,
    scale: u32,
}

impl Decimal {
    /// The product with `unit`, if it is a whole number below 2^64.
    fn checked_times(self, unit: u64) -> Option<u64> {
        let (product, divisor) = (u128::from(self.digits) * u128::from(unit), 10u128.pow(self.scale));
        (product % divisor == 0).then_some(product / divisor)?.try_into().ok()
    }

    /// The product with `unit`, rounded down.
    #[must_use]
    pub fn times_rounded_down(self, unit: u64) -> u64 {
        (u128::from(self.digits) * u128::from(unit) / 10u128.pow(self.scale)).try_into().unwrap_or(u64::MAX)
    }
}

const TIME_UNITS: &[(&str, u64)] = &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
const RATE_UNITS: &[(&str, u64)] =
    &[("bit", 1), ("kbit", 1_000), ("mbit", 1_000_000), ("gbit", 1_000_000_000), ("tbit", 1_000_000_000_000)];
const SIZE_UNITS: &[(&str, u64)] = &[
    ("b", 1),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

/// Units that mean multiples of 1024 in `tc` and of 1000 elsewhere.
const AMBIGUOUS_UNITS: [&str; 10] = ["k", "kb", "K", "KB", "m", "mb", "M", "g", "gb", "G"];

impl Quantity for BitRate {
    const DESCRIPTION: &'static str = "a rate such as \"100mbit\"";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)?[kKmMgGtT]?[bB][iI][tT]$";

    fn parse(text: &str) -> Result<Self, String> {
        match BitRateOrZero::parse(text)?.0 {
            Rate(0) => {
                Err("a rate of zero carries nothing\nleave the key out; an [[event]] may set the rate to \"0mbit\", \
                            or cut the link with `up = false`"
                    .into())
            }
            rate => Ok(Self(rate)),
        }
    }

    fn with_likely_unit(n: f64) -> String {
        format!("{n}mbit")
    }
}

impl Quantity for BitRateOrZero {
    const DESCRIPTION: &'static str = BitRate::DESCRIPTION;
    const PATTERN: &'static str = BitRate::PATTERN;

    fn parse(text: &str) -> Result<Self, String> {
        if text.parse() == Ok(0.0) {
            return Ok(Self(Rate(0)));
        }
        let (amount, unit) = split_unit::<Self>(text)?;
        let lowercase_unit = unit.to_ascii_lowercase();
        if let Some(prefix) = lowercase_unit.strip_suffix("bps") {
            let bytes = Decimal { digits: amount.digits.saturating_mul(8), ..amount };
            return Err(format!(
                "`{text}`: `tc` means bytes a second by `{unit}`\nwrite `{amount}{prefix}bit`, or `{bytes}{prefix}bit` \
                 if bytes are meant"
            ));
        }
        scale_to_smallest_unit::<Self>(text, amount, &lowercase_unit, RATE_UNITS).map(|bits| Self(Rate(bits)))
    }

    fn with_likely_unit(n: f64) -> String {
        BitRate::with_likely_unit(n)
    }
}

impl Quantity for Time {
    const DESCRIPTION: &'static str = "a time such as \"10ms\"";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)?(s|ms|us|ns)$";

    fn parse(text: &str) -> Result<Self, String> {
        let (amount, unit) = split_unit::<Self>(text)?;
        Ok(Self(Span(scale_to_smallest_unit::<Self>(text, amount, unit, TIME_UNITS)?)))
    }

    fn with_likely_unit(n: f64) -> String {
        format!("{n}ms")
    }
}

impl Quantity for Size {
    const DESCRIPTION: &'static str = "a size such as \"1500b\" or \"1GB\"";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)?(b|B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$";

    fn parse(text: &str) -> Result<Self, String> {
        let (amount, unit) = split_unit::<Self>(text)?;
        Ok(Self(scale_to_bytes::<Self>(text, amount, unit)?))
    }

    fn with_likely_unit(n: f64) -> String {
        format!("{n}b")
    }
}

impl Quantity for Percent {
    const DESCRIPTION: &'static str = "a share such as \"1%\"";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)?%$";

    fn parse(text: &str) -> Result<Self, String> {
        let (Decimal { digits, scale }, unit) = split_unit::<Self>(text)?;
        if unit != "%" {
            return Err(unknown_unit::<Self>(text, unit, &["%"]));
        }
        // The nearest double to the decimal fraction, without the rounding of a division.
        let share: f64 = format!("{digits}e-{}", scale + 2).parse().map_err(|_| format!("`{text}` is not a number"))?;
        if share > 1.0 { Err(format!("`{text}` is more than the whole\nat most `100%`")) } else { Ok(Self(share)) }
    }

    fn with_likely_unit(n: f64) -> String {
        format!("{}%", if n < 1.0 { n * 100.0 } else { n })
    }
}

impl Quantity for Packets {
    const DESCRIPTION: &'static str = "a number of packets such as \"1000p\"";
    const PATTERN: &'static str = "^[0-9]+p$";

    fn parse(text: &str) -> Result<Self, String> {
        let (amount, unit) = split_unit::<Self>(text)?;
        let packets = scale_to_smallest_unit::<Self>(text, amount, unit, &[("p", 1)])?;
        packets.try_into().map(Self).map_err(|_| format!("`{text}` is too large"))
    }

    fn with_likely_unit(n: f64) -> String {
        format!("{n}p")
    }
}

impl Quantity for QueueSize {
    const DESCRIPTION: &'static str = "a queue limit such as \"1000p\", \"64kB\", \"50ms\" or \"1bdp\"";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)?(p|b|B|kB|MB|GB|TB|KiB|MiB|GiB|TiB|s|ms|us|ns|bdp)$";

    fn parse(text: &str) -> Result<Self, String> {
        let (amount, unit) = split_unit::<Self>(text)?;
        if amount.digits == 0 {
            return Err("a queue without room passes no packets\nat least `1p`".into());
        }
        match unit {
            "bdp" => Ok(Self::Bdp(amount)),
            "p" => Ok(Self::Packets(scale_to_smallest_unit::<Self>(text, amount, unit, &[("p", 1)])?)),
            _ if TIME_UNITS.iter().any(|(name, _)| *name == unit) => {
                Ok(Self::Time(Span(scale_to_smallest_unit::<Self>(text, amount, unit, TIME_UNITS)?)))
            }
            _ if AMBIGUOUS_UNITS.contains(&unit) || SIZE_UNITS.iter().any(|(name, _)| *name == unit) => {
                Ok(Self::Bytes(scale_to_bytes::<Self>(text, amount, unit)?))
            }
            _ => Err(unknown_unit::<Self>(text, unit, &["p", "b", "kB", "KiB", "ms", "us", "bdp"])),
        }
    }

    fn with_likely_unit(n: f64) -> String {
        format!("{n}p")
    }
}

/// The number and the unit of `text`.
fn split_unit<Q: Quantity>(text: &str) -> Result<(Decimal, &str), String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len()));
    if text.starts_with('-') {
        return Err(format!("`{text}` is negative\nexpected {}", Q::DESCRIPTION));
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let fraction = fraction.trim_end_matches('0');
    match format!("{whole}{fraction}").parse() {
        _ if whole.is_empty() || number.ends_with('.') => Err(format!("`{text}` is not {}", Q::DESCRIPTION)),
        _ if unit.is_empty() => Err(missing_unit::<Q>(text, number.parse().unwrap_or(0.0))),
        Ok(digits) if fraction.len() < 19 => Ok((Decimal { digits, scale: fraction.len() as u32 }, unit)),
        _ => Err(format!("`{text}` has too many digits, or two decimal points")),
    }
}

/// `amount` `unit`s in the smallest of `units`.
fn scale_to_smallest_unit<Q: Quantity>(
    text: &str,
    amount: Decimal,
    unit: &str,
    units: &[(&str, u64)],
) -> Result<u64, String> {
    let Some((_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(unknown_unit::<Q>(text, unit, &units.iter().map(|(name, _)| *name).collect::<Vec<_>>()));
    };
    let smallest = units.iter().min_by_key(|(_, factor)| *factor).map_or("", |(name, _)| *name);
    amount.checked_times(*factor).ok_or_else(|| format!("`{text}` is too large, or not a whole number of `{smallest}`"))
}

/// `amount` `unit`s in bytes.
fn scale_to_bytes<Q: Quantity>(text: &str, amount: Decimal, unit: &str) -> Result<u64, String> {
    if AMBIGUOUS_UNITS.contains(&unit) {
        let prefix = unit[..1].to_ascii_uppercase();
        let decimal = if prefix == "K" { "k" } else { &prefix };
        return Err(format!(
            "`{text}`: is that a power of 1000 or of 1024 (as `tc` has it)?\nwrite `{amount}{decimal}B` or `{amount}{prefix}iB`"
        ));
    }
    scale_to_smallest_unit::<Q>(text, amount, unit, SIZE_UNITS)
}

fn unknown_unit<Q: Quantity>(text: &str, unit: &str, units: &[&str]) -> String {
    format!("`{text}`: unknown unit `{unit}`\nexpected {}; units: {}", Q::DESCRIPTION, units.join(" "))
}

fn missing_unit<Q: Quantity>(text: &str, n: f64) -> String {
    format!("`{text}` has no unit\nexpected {}; write \"{}\"?", Q::DESCRIPTION, Q::with_likely_unit(n))
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, width) = (10u64.pow(self.scale), self.scale as usize);
        match self.digits % unit {
            0 => write!(f, "{}", self.digits / unit),
            remainder => f.write_str(format!("{}.{remainder:0width$}", self.digits / unit).trim_end_matches('0')),
        }
    }
}

/// Reads a quantity from a TOML value.
#[derive(Debug, Default)]
pub struct QuantityVisitor<Q>(pub PhantomData<Q>);

impl<Q: Quantity> Visitor<'_> for QuantityVisitor<Q> {
    type Value = Q;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Q::DESCRIPTION)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Q, E> {
        Q::parse(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Q, E> {
        Q::parse(&n.to_string()).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<Q, E> {
        Q::parse(&n.to_string()).map_err(E::custom)
    }
}

macro_rules! quantities {
    ($($name:ident)*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(QuantityVisitor(PhantomData))
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": Self::DESCRIPTION, "pattern": Self::PATTERN })
            }
        }
    )*};
}
quantities! { BitRate BitRateOrZero Time Size Percent Packets QueueSize }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_exact() {
        assert_eq!(BitRate::parse("1.5gbit"), Ok(BitRate(Rate(1_500_000_000))));
        assert_eq!(BitRate::parse("100Mbit"), Ok(BitRate(Rate(100_000_000))));
        for zero in ["0", "0mbit", "0.0bit"] {
            assert_eq!(BitRateOrZero::parse(zero), Ok(BitRateOrZero(Rate(0))));
            assert!(BitRate::parse(zero).is_err());
        }
        assert_eq!(Time::parse("0.3us"), Ok(Time(Span(300))));
        assert_eq!(Size::parse("1GB"), Ok(Size(1_000_000_000)));
        assert_eq!(Size::parse("1.5MiB"), Ok(Size(1_572_864)));
        assert_eq!(Percent::parse("0.1%"), Ok(Percent(0.001)));
        assert_eq!(Percent::parse("100.00%"), Ok(Percent(1.0)));
        assert_eq!(QueueSize::parse("0.5bdp"), Ok(QueueSize::Bdp(Decimal { digits: 5, scale: 1 })));
    }

    #[test]
    fn a_text_is_a_number_with_its_unit_or_neither() {
        let of = ["20ms", "0.5mbit", "64kB", "100p", "2%", "3.5", "-4", "0mbit"].map(number_with_unit);
        let expected = [
            (0.02, "s"),
            (5e5, "bit/s"),
            (64_000.0, "B"),
            (100.0, "packets"),
            (2.0, "%"),
            (3.5, ""),
            (-4.0, ""),
            (0.0, "bit/s"),
        ];
        assert_eq!(of, expected.map(Some));
        assert_eq!(["cubic", "", "1bdp", "nan", "inf"].map(number_with_unit), [None; 5]);
    }

    #[test]
    fn ambiguous_quantities_are_errors_with_help() {
        let error = |text| BitRate::parse(text).unwrap_err();
        assert!(error("1.5mbps").contains("`1.5mbit`, or `12mbit`"));
        assert!(error("100").contains("\"100mbit\""));
        assert!(Size::parse("64kb").unwrap_err().contains("`64kB` or `64KiB`"));
        for text in ["", "ms", ".5ms", "5.ms", "1.2.3ms", "1e3ms", "10 ms", "0.5ns", "99999999999999999999s", "+1s"] {
            assert!(Time::parse(text).is_err(), "{text}");
        }
    }
}
