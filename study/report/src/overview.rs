//! Several comparisons together: how the errors of the goodput are distributed in each and in all.

use crate::compare::{Comparison, Errors};
use crate::number::{DASH, plural};

/// The relative errors within which values are counted.
pub(crate) const WITHIN: [f64; 3] = [0.05, 0.1, 0.2];

/// The headings of the numbers of a row: percentiles in percent, then the number of values within each of [`WITHIN`].
pub(crate) const HEADINGS: [&str; 9] = ["cells", "values", "median", "90th", "95th", "worst", "≤5 %", "≤10 %", "≤20 %"];

/// The errors of one comparison, or of all.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The scenario, with the folder of the measured study if several comparisons are of that scenario; with both names
    /// if several folders are called so.
    pub(crate) label: String,
    /// The number of cells that both studies have.
    pub(crate) cells: usize,
    pub(crate) errors: Option<Errors>,
}

/// A row for each comparison.
pub(crate) fn rows(comparisons: &[Comparison<'_>]) -> Vec<Row> {
    let scenario = |comparison: &Comparison<'_>| comparison.measured().scenario.to_owned();
    let in_folder = |comparison: &Comparison<'_>| format!("{}, {}", scenario(comparison), comparison.measured_folder());
    let is_unique = |label: &dyn Fn(&Comparison<'_>) -> String, name: &String| {
        comparisons.iter().filter(|comparison| label(comparison) == *name).count() == 1
    };
    let label = |comparison| {
        Some(scenario(comparison))
            .filter(|name| is_unique(&scenario, name))
            .or_else(|| Some(in_folder(comparison)).filter(|name| is_unique(&in_folder, name)))
            .unwrap_or_else(|| format!("{}, {}", scenario(comparison), comparison.name()))
    };
    comparisons
        .iter()
        .map(|comparison| Row {
            label: label(comparison),
            cells: comparison.common_cells(),
            errors: comparison.errors(0),
        })
        .collect()
}

/// The row of all comparisons together.
pub(crate) fn total(rows: &[Row]) -> Row {
    let sizes = rows.iter().filter_map(|row| row.errors.as_ref()).flat_map(|errors| errors.0.iter().copied());
    let cells = rows.iter().map(|row| row.cells).sum();
    Row { label: "all".to_owned(), cells, errors: Errors::sorted(sizes.collect()) }
}

impl Row {
    /// The numbers below [`HEADINGS`].
    pub(crate) fn numbers(&self) -> [String; 9] {
        let dash = || DASH.to_owned();
        let Some(errors) = &self.errors else {
            return std::array::from_fn(|column| if column == 0 { self.cells.to_string() } else { dash() });
        };
        let [median, p90, p95, worst] = errors.percents().map(|percent| format!("{percent:.1}"));
        let [five, ten, twenty] = WITHIN.map(|share| errors.within(share).to_string());
        [self.cells.to_string(), errors.0.len().to_string(), median, p90, p95, worst, five, ten, twenty]
    }

    /// The errors of `comparisons` comparisons in one sentence.
    pub(crate) fn sentence(&self, comparisons: usize) -> String {
        let Some(errors) = &self.errors else { return "No goodput to compare.".to_owned() };
        let [five, ten, twenty] = WITHIN.map(|share| errors.within(share));
        format!(
            "Goodput in {}: {} in {}, {}; {five} within 5 %, {ten} within 10 %, {twenty} within 20 %.",
            plural(comparisons, "comparison"),
            plural(errors.0.len(), "value"),
            plural(self.cells, "common cell"),
            errors.sentence()
        )
    }
}
