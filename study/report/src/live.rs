//! The charts over time of one cell while it is being changed: the first run as lines, the other seeds as a band around them,
//! and the runs to compare with below; and the goodput across a key of it.

use crate::chart::{Chart, charts};
use crate::colour;
use crate::html::figures;
use crate::layout::{BY_FLOW, Figure, Form, Scale};
use crate::plane::numbers_of_one_unit;
use crate::study::{Study, SweepCell};
use crate::svg;
use std::fmt::Write as _;

/// The most points of a line.
const POINTS: usize = 400;

/// The charts of the study's first cell, as HTML whose colours [`live_style`] defines; empty without time series.
#[must_use]
pub fn live(study: &Study<'_>) -> String {
    let cells = study.cells();
    let Some(cell) = cells.first() else { return String::new() };
    let name = study.baseline.map_or("", |baseline| baseline.name);
    let mut drawn = charts(cell, name, POINTS);
    for run in &cell.runs[1..] {
        let other = charts(&SweepCell { runs: vec![run], ..SweepCell::empty(cell.parameters) }, "", POINTS);
        if other.times == drawn.times {
            drawn.charts.iter_mut().for_each(|chart| widen(chart, &other.charts));
        }
    }
    drawn.charts.iter().fold(String::new(), |mut html, chart| {
        let _ = write!(html, "{}", svg::chart(chart, &drawn.times)); // a String takes all
        html
    })
}

/// Widens the bands of a chart's lines by those of another seed's charts.
fn widen(chart: &mut Chart, others: &[Chart]) {
    let Some(other) = others.iter().find(|other| (&other.title, other.kind) == (&chart.title, chart.kind)) else {
        return;
    };
    for line in chart.lines.iter_mut().filter(|line| !line.baseline && !line.auxiliary) {
        let Some(other) = other.lines.iter().find(|other| other.name == line.name) else { continue };
        if line.band.is_empty() {
            line.band = line.values.iter().map(|value| (*value, *value)).collect();
        }
        for (band, value) in line.band.iter_mut().zip(&other.values) {
            *band = (band.0.min(*value), band.1.max(*value)); // `min` and `max` pass over NaN
        }
        chart.max = line.band.iter().map(|band| band.1).filter(|value| value.is_finite()).fold(chart.max, f64::max);
    }
}

/// The least ratio of the greatest value of a swept key to the least, none of them zero, from which on its axis is logarithmic.
const LOG_RATIO: f64 = 10.0;

/// The flows' goodput across the values of a swept key, as HTML whose colours [`live_style`] defines: lines with confidence
/// intervals across numbers of one unit, else bars; empty if no flow has a goodput.
#[must_use]
pub fn live_sweep(study: &Study<'_>, key: &str) -> String {
    let cells = study.cells();
    let labels: Vec<&str> = cells.iter().map(|cell| cell.parameter(key)).collect();
    let (form, scale) = match numbers_of_one_unit(&labels) {
        Some((places, _)) => {
            let (low, high) = places.iter().fold((f64::MAX, 0.0_f64), |(low, high), x| (low.min(*x), high.max(*x)));
            (Form::Across, if low > 0.0 && high >= LOG_RATIO * low { Scale::Log } else { Scale::Linear })
        }
        None => (Form::Plain, Scale::Linear),
    };
    let (value, across) = ("goodput_mbps".to_owned(), Some(key.to_owned()));
    let figure = Figure { lines: BY_FLOW.to_owned(), form, across, scale, value, ..Figure::default() };
    figures::alone(study, &figure).unwrap_or_default()
}

/// The style sheet of [`live`] and [`live_sweep`], which is the report's.
#[must_use]
pub fn live_style() -> String {
    format!("{}\n{}", colour::css(), crate::html::STYLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Line;

    fn chart(name: &str, values: &[f64]) -> Chart {
        let line = Line { name: name.to_owned(), values: values.to_vec(), ..Line::default() };
        let (title, unit) = ("Window".to_owned(), "packets".to_owned());
        Chart { title, unit, kind: "flows", max: 3.0, lines: vec![line] }
    }

    #[test]
    fn a_band_goes_from_the_least_to_the_greatest_of_all_seeds_and_the_axis_holds_it() {
        let mut first = chart("flow a", &[1.0, 3.0, f64::NAN]);
        widen(&mut first, &[chart("flow a", &[2.0, 2.0, 5.0])]);
        widen(&mut first, &[chart("flow a", &[0.5, 9.0, f64::NAN])]);
        widen(&mut first, &[chart("flow b", &[50.0, 50.0, 50.0])]);
        assert_eq!((first.lines[0].band.as_slice(), first.max), ([(0.5, 2.0), (2.0, 9.0), (5.0, 5.0)].as_slice(), 9.0));
        let drawn = svg::time_chart(&first, &[0.0, 1.0, 2.0]);
        assert_eq!(drawn.matches("class=\"band\"").count(), 1, "{drawn}");
    }
}
