//! Unknown keys of a scenario, which `ropewalk fit` seeks in a range: `"path.lte.rate" = "3mbit..60mbit"`.

use crate::file::File;
use parse::{Diagnostic, number_with_unit};

/// An unknown key with the range of its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Free {
    /// The dotted key, as in a sweep.
    pub key: String,
    /// The unit of both bounds: `bit/s`, `s`, `B`, `packets`, `%`, or none.
    pub unit: String,
    /// The least value, more than zero: the scale of the search is logarithmic.
    pub low: f64,
    /// The greatest value.
    pub high: f64,
}

impl Free {
    /// The unknown `key` with a range such as `3mbit..60mbit`.
    ///
    /// # Errors
    /// The range has no two quantities of one unit, the second greater, both more than zero. The first line is the message,
    /// the second the help.
    pub fn new(key: &str, range: &str) -> Result<Self, String> {
        const HELP: &str = "two quantities with their unit, such as \"3mbit..60mbit\"";
        let bounds = range
            .split_once("..")
            .and_then(|(low, high)| Some((number_with_unit(low.trim())?, number_with_unit(high.trim())?)));
        let Some(((low, unit), (high, other))) = bounds else {
            return Err(format!("`{range}` is no range of quantities\n{HELP}"));
        };
        if unit != other {
            return Err(format!("the bounds of `{range}` have different units\n{HELP}"));
        }
        if low <= 0.0 || high <= low {
            return Err(format!("the bounds of `{range}` must be more than zero, the second greater\n{HELP}"));
        }
        Ok(Self { key: key.to_owned(), unit: unit.to_owned(), low, high })
    }
}

/// The unknown keys of a file.
pub(crate) fn read(file: &File) -> Result<Vec<Free>, Diagnostic> {
    let free = file.free.iter().flatten().map(|(key, range)| {
        Free::new(key, range.get()).map_err(|error| {
            let (message, help) = error.split_once('\n').unwrap_or((&error, ""));
            Diagnostic::new(range.span(), message).with_help(help)
        })
    });
    free.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_two_quantities_of_one_unit() {
        let rate = Free { key: "path.a.rate".into(), unit: "bit/s".into(), low: 3e6, high: 6e7 };
        assert_eq!(Free::new("path.a.rate", "3mbit..60mbit"), Ok(rate));
        let share = Free::new("path.a.loss", "0.02% .. 4%").unwrap();
        assert!((share.low - 0.02).abs() < 1e-12 && (share.high - 4.0).abs() < 1e-12 && share.unit == "%");
        for wrong in ["3mbit", "3mbit..60ms", "60mbit..3mbit", "0ms..3ms", "a..b", ""] {
            assert!(Free::new("k", wrong).is_err_and(|error| error.lines().count() == 2), "{wrong}");
        }
    }
}
