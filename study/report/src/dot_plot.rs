//! Dot plots of a cell's runs, for tables.

use crate::number::format_number;
use crate::sample::{Point, Sample};

const WIDTH: f64 = 72.0;
const HEIGHT: f64 = 10.0;
/// The distance of a state's dots from the middle, where a cell has two.
const STATE_OFFSET: f64 = 2.5;
/// The margin at both ends.
const EDGE: f64 = 4.0;
/// The minimum distance of an end from the mean, as a share of the mean: a small spread looks small.
const MIN_RANGE: f64 = 0.05;

/// The explanation for captions.
pub(crate) const CAPTION: &str = "dots are single runs, the line is their mean, on a scale for each cell: its ends are at least \
                                  5 % of the mean away. Orange: an outlier (‡). Ring: a disturbed run. Two rows: two states";

/// The dot plot; empty for a single run.
pub(crate) fn dot_plot(sample: &Sample) -> String {
    let Some(mean) = sample.estimate().map(|estimate| estimate.mean) else { return String::new() };
    let points = || sample.points.iter().chain(&sample.excluded);
    let farthest = points().map(|point| (point.1 - mean).abs()).fold(MIN_RANGE * mean.abs(), f64::max);
    if sample.identical || points().count() < 2 || farthest == 0.0 {
        return String::new();
    }
    let outliers = sample.outliers();
    let x = |value: f64| WIDTH / 2.0 + (value - mean) / farthest * (WIDTH / 2.0 - EDGE);
    let y = HEIGHT / 2.0;
    let dots = |points: &[Point], y: f64| {
        let dots = points.iter().filter(|point| !outliers.contains(point));
        dots.map(|point| format!("M{:.1} {y}h0", x(point.1))).collect::<String>()
    };
    let dots = match sample.states() {
        Some([lower, upper]) => dots(&lower.points, y + STATE_OFFSET) + &dots(&upper.points, y - STATE_OFFSET),
        None => dots(&sample.points, y),
    };
    let circles = |class: &str, points: &[Point]| {
        let circle = |point: &Point| format!("<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y}\" r=\"3\"/>", x(point.1));
        points.iter().map(circle).collect::<String>()
    };
    let middle = WIDTH / 2.0;
    format!(
        "<svg class=\"strip\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\"><title>{}</title><path d=\"M{middle} 0V{HEIGHT}\"/>\
         <path class=\"dots\" d=\"{dots}\"/>{}{}</svg>",
        value_list(sample),
        circles("out", &outliers),
        circles("left", &sample.excluded)
    )
}

/// The value of each run with its seed.
fn value_list(sample: &Sample) -> String {
    let list = |points: &[Point]| {
        points
            .iter()
            .map(|(seed, value)| format!("{} (seed {seed})", format_number(*value)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match sample.excluded.as_slice() {
        [] => list(&sample.points),
        excluded => format!("{}; disturbed and left out: {}", list(&sample.points), list(excluded)),
    }
}
