//! Charts with two axes of numbers: linear or logarithmic, and reversed where less is better.

use crate::axes::{self, Area, CHARACTER, Titles, x_tick};
use crate::svg::{tick_text, ticks};
use parse::number_with_unit;

/// An axis of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    start: f64,
    end: f64,
    /// The values with a tick, ascending, and their texts.
    ticks: Vec<(f64, String)>,
    is_log: bool,
    is_reversed: bool,
}

impl Axis {
    /// A linear axis with round ends around these values.
    pub(crate) fn linear(low: f64, high: f64) -> Self {
        let step = ticks(if high > low { high - low } else { high.abs() })[1];
        let first = (low / step + 1e-9).floor();
        let count = (high / step - 1e-9).ceil() - first;
        let values = (0..=count.max(1.0) as u32).map(|index| (first + f64::from(index)) * step);
        let ticks: Vec<(f64, String)> = values.map(|value| (value, tick_text(value))).collect();
        Self { start: ticks[0].0, end: ticks[ticks.len() - 1].0, ticks, is_log: false, is_reversed: false }
    }

    /// A linear axis with exactly these ends, and without ticks.
    pub(crate) fn exact(start: f64, end: f64) -> Self {
        Self { start, end, ticks: Vec::new(), is_log: false, is_reversed: false }
    }

    /// A logarithmic axis from `low` to `high`, both more than zero: with a tick at each power of ten, or if there are
    /// few also at twice and five times that.
    pub(crate) fn log(low: f64, high: f64) -> Self {
        let high = high.max(low * 1.01);
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let multiples: &[f64] = if high / low < 100.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let values = decades.flat_map(|decade| multiples.iter().map(move |multiple| multiple * 10f64.powi(decade)));
        let is_inside = |value: &f64| (low * 0.999..=high * 1.001).contains(value);
        let ticks = values.filter(is_inside).map(|value| (value, power_text(value))).collect();
        Self { start: low, end: high, ticks, is_log: true, is_reversed: false }
    }

    /// The axis with ticks at these values, with texts.
    pub(crate) fn with_ticks(self, ticks: Vec<(f64, String)>) -> Self {
        Self { ticks, ..self }
    }

    /// The axis with its end at the left.
    pub(crate) fn reversed(self) -> Self {
        Self { is_reversed: true, ..self }
    }

    /// The place of a value, a share of the axis' length; of a value beyond an end that end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        let share = match self.is_log {
            true => (value.max(f64::MIN_POSITIVE) / self.start).ln() / (self.end / self.start).ln(),
            false => (value - self.start) / (self.end - self.start),
        };
        let share = share.clamp(0.0, 1.0);
        if self.is_reversed { 1.0 - share } else { share }
    }

    fn tick_shares(&self) -> Vec<(f64, String)> {
        self.ticks.iter().map(|(value, text)| (self.share(*value), text.clone())).collect()
    }
}

/// A tick of a logarithmic axis.
fn power_text(value: f64) -> String {
    if (1e-3..1e5).contains(&value) { tick_text(value) } else { format!("{value:.0e}") }
}

/// Where the values of a chart stand in its picture.
pub(crate) struct Plane<'p> {
    pub(crate) area: &'p Area,
    x: &'p Axis,
    y: &'p Axis,
}

impl Plane<'_> {
    pub(crate) fn x(&self, value: f64) -> f64 {
        self.area.x(self.x.share(value))
    }

    pub(crate) fn y(&self, value: f64) -> f64 {
        self.area.y(self.y.share(value))
    }
}

/// A picture with two axes of numbers. Texts of the horizontal one that have no room are left out.
pub(crate) fn picture(titles: &Titles<'_>, x: &Axis, y: &Axis, draw: impl FnOnce(&Plane<'_>) -> String) -> String {
    axes::picture(titles, &y.tick_shares(), |area| {
        let mut out = String::new();
        let mut texts = x.tick_shares();
        texts.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut free = f64::NEG_INFINITY;
        for (share, text) in texts {
            let (place, half) = (area.x(share), text.chars().count() as f64 * CHARACTER / 2.0);
            let has_room = place - half > free;
            free = if has_room { place + half + CHARACTER } else { free };
            out += &x_tick(area, place, if has_room { &text } else { "" });
        }
        out + &draw(&Plane { area, x, y })
    })
}

/// The texts of a swept key as numbers of one unit, with that unit; none if they are anything else. Zero may have any
/// unit.
pub(crate) fn numbers_of_one_unit(texts: &[&str]) -> Option<(Vec<f64>, &'static str)> {
    let numbers: Vec<(f64, &str)> = texts.iter().map(|text| number_with_unit(text)).collect::<Option<_>>()?;
    let units = || numbers.iter().filter(|(number, _)| *number != 0.0).map(|(_, unit)| *unit);
    let unit = units().next().or_else(|| numbers.first().map(|(_, unit)| *unit))?;
    let values = numbers.iter().map(|(number, _)| *number).collect();
    units().all(|other| other == unit).then_some((values, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_axis_has_round_ends_around_its_values() {
        let texts = |low, high| Axis::linear(low, high).ticks.into_iter().map(|tick| tick.1).collect::<Vec<_>>();
        assert_eq!(texts(21.0, 38.0), ["20", "25", "30", "35", "40"]);
        assert_eq!(texts(0.0, 1.0), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert!(texts(30.0, 30.0).len() >= 2, "one value");
        let axis = Axis::linear(21.0, 38.0);
        assert_eq!([20.0, 30.0, 40.0, 99.0].map(|value| axis.share(value)), [0.0, 0.5, 1.0, 1.0]);
        assert_eq!([20.0, 25.0].map(|value| axis.clone().reversed().share(value)), [1.0, 0.75]);
    }

    #[test]
    fn a_logarithmic_axis_has_equal_steps_for_equal_ratios() {
        let axis = Axis::log(1e-3, 1.0);
        let near = |value: f64, share: f64| (axis.share(value) - share).abs() < 1e-9;
        assert!(near(1e-3, 0.0) && near(1e-2, 1.0 / 3.0) && near(1e-1, 2.0 / 3.0) && near(1.0, 1.0) && near(0.0, 0.0));
        let texts = |low, high| Axis::log(low, high).ticks.into_iter().map(|tick| tick.1).collect::<Vec<_>>();
        assert_eq!(texts(1e-4, 1.0), ["1e-4", "0.001", "0.01", "0.1", "1"]);
        assert_eq!(texts(1.0, 20.0), ["1", "2", "5", "10", "20"]);
    }

    #[test]
    fn a_swept_key_is_numeric_if_all_its_values_have_one_unit() {
        assert_eq!(numbers_of_one_unit(&["0", "10ms", "1s"]), Some((vec![0.0, 0.01, 1.0], "s")));
        assert_eq!(numbers_of_one_unit(&["0%", "0.5%"]), Some((vec![0.0, 0.5], "%")));
        assert_eq!(numbers_of_one_unit(&["1", "2"]), Some((vec![1.0, 2.0], "")));
        assert_eq!(numbers_of_one_unit(&["10ms", "1mbit"]), None);
        assert_eq!(numbers_of_one_unit(&["cubic"]), None);
    }
}
