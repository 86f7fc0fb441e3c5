//! Heat maps: the numbers of a table on a fixed scale, on which one value may be marked as a threshold.

use crate::direction::{Direction, direction};
use crate::grid::{Grid, Value, median};
use crate::layout::HeatMap;
use crate::number::{DASH, plural};

/// The mark, in the terminal, of a value below the threshold.
pub(crate) const BELOW_MARK: &str = "▾";
/// The minimum strength of a colour on either side of the threshold, so that both sides can be told apart there.
const MIN_STRENGTH: f64 = 0.25;

/// A number of the map.
pub(crate) fn format_cell(number: f64) -> String {
    if number.is_finite() { format!("{number:.2}") } else { DASH.to_owned() }
}

/// Whether a number is below the threshold, where there is one.
pub(crate) fn is_below(scale: &HeatMap, number: f64) -> bool {
    scale.threshold.is_some_and(|threshold| number < threshold)
}

/// [`shade`] of a value of which less may be better: then the colours of both sides are exchanged, and without a threshold
/// it is the colour of what is bad.
pub(crate) fn shade_of(value: &str, scale: &HeatMap, number: f64) -> (&'static str, f64) {
    let (class, strength) = shade(scale, number);
    let class = match (class, direction(value)) {
        ("less", Direction::Lower) => "more",
        ("more" | "even", Direction::Lower) => "less",
        (class, _) => class,
    };
    (class, strength)
}

/// The CSS class of a number and the strength of its colour, 0 to 1: on either side of the threshold the stronger the
/// farther from it; without a threshold from the scale's lower end on.
fn shade(scale: &HeatMap, number: f64) -> (&'static str, f64) {
    let HeatMap { min, max, threshold, even } = *scale;
    let beyond = |share: f64| MIN_STRENGTH + (1.0 - MIN_STRENGTH) * share.clamp(0.0, 1.0);
    if let Some(even) = even {
        return match number < even {
            true => ("less", ((even - number) / (even - min)).clamp(0.0, 1.0)),
            false => ("more", ((number - even) / (max - even)).clamp(0.0, 1.0)),
        };
    }
    match threshold {
        None => ("even", ((number - min) / (max - min)).clamp(0.0, 1.0)),
        Some(threshold) if number < threshold => ("less", beyond((threshold - number) / (threshold - min))),
        Some(threshold) => ("more", beyond((number - threshold) / (max - threshold))),
    }
}

/// How many numbers reach the threshold, their median, and the minimum; none without numbers.
pub(crate) fn sentence(grid: &Grid, scale: &HeatMap) -> Option<String> {
    let named = grid.rows.iter().flat_map(|row| row.values.iter().zip(&grid.columns).map(move |cell| (row, cell)));
    let named = named.filter_map(|(row, (value, column))| {
        let Value { estimate, .. } = value.as_ref()?;
        estimate.mean.is_finite().then(|| (estimate.mean, format!("{}, {column}", row.name)))
    });
    let named: Vec<(f64, String)> = named.collect();
    let min = named.iter().min_by(|first, second| first.0.total_cmp(&second.0))?;
    let mut numbers: Vec<f64> = named.iter().map(|(number, _)| *number).collect();
    let median = median(&mut numbers)?;
    let reached = scale.threshold.map_or(String::new(), |threshold| {
        let reached = numbers.iter().filter(|number| **number >= threshold).count();
        format!("{reached} of {} are {} or more; ", plural(numbers.len(), "value"), format_cell(threshold))
    });
    Some(format!("{reached}median {}, minimum {} ({})", format_cell(median), format_cell(min.0), min.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_change_sides_at_the_threshold_and_are_strongest_at_the_ends() {
        let scale = HeatMap { min: 0.0, max: 1.0, threshold: Some(0.75), even: None };
        let shades = [-1.0, 0.0, 0.375, 0.75, 0.875, 1.0, 2.0].map(|number| shade(&scale, number));
        let expected = [
            ("less", 1.0),
            ("less", 1.0),
            ("less", 0.625),
            ("more", 0.25),
            ("more", 0.625),
            ("more", 1.0),
            ("more", 1.0),
        ];
        assert_eq!(shades, expected);
        assert_eq!([0.7499, 0.75].map(|number| is_below(&scale, number)), [true, false]);
    }

    #[test]
    fn where_less_is_better_what_is_below_the_threshold_has_the_good_colour() {
        let scale = |threshold| HeatMap { min: 0.0, max: 1.0, threshold, even: None };
        let classes = |value| {
            let with = [0.2, 0.8].map(|number| shade_of(value, &scale(Some(0.5)), number).0);
            (with, shade_of(value, &scale(None), 0.8).0)
        };
        assert_eq!(classes("goodput_mbps"), (["less", "more"], "even"));
        assert_eq!(classes("drop_percent"), (["more", "less"], "less"));
        assert_eq!(classes("cwnd_packets"), (["less", "more"], "even"));
    }

    #[test]
    fn an_even_value_has_no_colour_and_its_sides_have_one_each() {
        let scale = HeatMap { min: 0.0, max: 1.0, threshold: None, even: Some(0.5) };
        let shades = [0.0, 0.25, 0.5, 0.75, 1.0].map(|number| shade(&scale, number));
        assert_eq!(shades, [("less", 1.0), ("less", 0.5), ("more", 0.0), ("more", 0.5), ("more", 1.0)]);
    }

    #[test]
    fn without_a_threshold_the_colour_grows_from_one_end_to_the_other() {
        let scale = HeatMap { min: 10.0, max: 30.0, threshold: None, even: None };
        assert_eq!([0.0, 10.0, 15.0, 30.0].map(|number| shade(&scale, number).1), [0.0, 0.0, 0.25, 1.0]);
        assert!(!is_below(&scale, 0.0));
    }
}
