//! Unknowns of a scenario: a key, and the range in which its value is sought, on a logarithmic scale.

use serde::{Deserialize, Serialize};

/// An unknown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unknown {
    /// Its key in the scenario, such as `path.lte.rate`.
    pub key: String,
    /// The unit of its values: `bit/s`, `s`, `B`, `packets`, `%`, or none.
    pub unit: String,
    /// The least value.
    pub low: f64,
    /// The greatest value.
    pub high: f64,
    /// The value by direct estimate, at which the search begins.
    pub start: f64,
}

impl Unknown {
    /// The value at `place` in the range, 0 to 1.
    #[must_use]
    pub fn value(&self, place: f64) -> f64 {
        self.low * libm::exp(place.clamp(0.0, 1.0) * libm::log(self.high / self.low))
    }

    /// The place of a value in the range, 0 to 1.
    #[must_use]
    pub fn place(&self, value: f64) -> f64 {
        (libm::log((value / self.low).max(1e-300)) / libm::log(self.high / self.low)).clamp(0.0, 1.0)
    }

    /// A value as a scenario writes it.
    #[must_use]
    pub fn text(&self, value: f64) -> String {
        match self.unit.as_str() {
            "bit/s" => format!("{}bit", whole(value)),
            "s" => format!("{}us", (value * 1e6).round().max(0.0) as u64),
            "B" => format!("{}b", whole(value)),
            "packets" => format!("{}p", whole(value)),
            "%" => format!("{:.5}%", value.min(100.0)),
            _ => format!("{value:.6}"),
        }
    }

    /// A value for readers: `12.3 Mbit/s`, `14.2 ms`.
    #[must_use]
    pub fn shown(&self, value: f64) -> String {
        match self.unit.as_str() {
            "bit/s" => format!("{} Mbit/s", digits(value / 1e6)),
            "s" => format!("{} ms", digits(value * 1e3)),
            "" => digits(value),
            "%" => format!("{} %", digits(value)),
            unit => format!("{} {unit}", digits(value)),
        }
    }
}

fn whole(value: f64) -> u64 {
    value.round().max(1.0) as u64
}

/// A number with three digits, without an exponent.
pub(crate) fn digits(value: f64) -> String {
    let decimals =
        if value == 0.0 { 0 } else { (2 - libm::floor(libm::log10(value.abs())) as i32).clamp(0, 4) as usize };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_a_logarithmic_scale_and_texts_that_a_scenario_reads() {
        let of = |unit: &str| Unknown { key: "k".into(), unit: unit.into(), low: 1.0, high: 100.0, start: 2.0 };
        assert!((of("").value(0.5) - 10.0).abs() < 1e-9 && (of("").place(10.0) - 0.5).abs() < 1e-12);
        assert_eq!([of("").place(1e9), of("").place(0.0)], [1.0, 0.0]);
        assert_eq!(
            [of("bit/s").text(1e6), of("s").text(0.0125), of("packets").text(2.6)],
            ["1000000bit", "12500us", "3p"]
        );
        assert_eq!(
            [of("bit/s").shown(12.345e6), of("s").shown(0.0125), of("").shown(0.0)],
            ["12.3 Mbit/s", "12.5 ms", "0"]
        );
    }
}
