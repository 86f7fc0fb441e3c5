//! A fit in words and tables for the terminal.

use crate::fitting::{Compared, Fit, Parameter};
use crate::unknown::digits;

/// Lines of columns: the first is aligned to the left, the others to the right.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let cell = |(column, text): (usize, &String)| {
        let padding = " ".repeat(width(column) - text.chars().count());
        if column == 0 { format!("{text}{padding}") } else { format!("  {padding}{text}") }
    };
    rows.iter().map(|row| row.iter().enumerate().map(cell).collect::<String>().trim_end().to_owned() + "\n").collect()
}

/// The percentage of a distance, which is the logarithm of a ratio.
pub(crate) fn percent(distance: f64) -> String {
    format!("{:.0} %", 100.0 * (libm::exp(distance) - 1.0))
}

impl Fit {
    /// The first line: how far the fit is from the measurement, next to chance and to the naive links.
    #[must_use]
    pub fn headline(&self) -> String {
        let [fitted, naive, noise] = [self.distance, self.naive, self.noise].map(|of| percent(of.fitted));
        let others = format!(
            "naive links are {naive} off, and chance alone makes two measurements of the same links differ by {noise}"
        );
        match self.beats_naive() {
            true => format!("The fitted links are {fitted} off the measurement; {others}."),
            false => format!("The fit does not beat the naive links: it is {fitted} off the measurement; {others}."),
        }
    }

    /// The sentence on what was held out.
    #[must_use]
    pub fn held_out_line(&self) -> String {
        match (self.distance.held_out, self.naive.held_out, self.noise.held_out) {
            (Some(fitted), Some(naive), Some(noise)) => format!(
                "Of what was held out, the fitted links are {} off, naive links {}; chance: {}.",
                percent(fitted),
                percent(naive),
                percent(noise)
            ),
            _ => "Nothing was held out: the measurement has no calls next to a download (--hold names other observables)."
                .to_owned(),
        }
    }

    /// The members and evaluations in one sentence.
    #[must_use]
    pub fn search_line(&self) -> String {
        let left_out = match self.left_out {
            0 => String::new(),
            1 => ", 1 more left out because it is much farther off".to_owned(),
            count => format!(", {count} more left out because they are much farther off"),
        };
        format!("{} fits from {} evaluations{left_out}. Digest {}.", self.members.len(), self.evaluations, self.digest)
    }

    /// The tables for the terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}\n{}\n{}\n\n", self.headline(), self.held_out_line(), self.search_line());
        let head = ["unknown", "median", "90 % interval", ""].map(str::to_owned).to_vec();
        let rows: Vec<_> = std::iter::once(head).chain(self.parameters.iter().map(parameter_row)).collect();
        text += &columns(&rows);
        text += "\n";
        let head = ["observable", "measured", "fitted", "naive"].map(str::to_owned).to_vec();
        let rows: Vec<_> = std::iter::once(head).chain(self.observables.iter().map(observable_row)).collect();
        text += &columns(&rows);
        self.notes.iter().for_each(|note| text += &format!("note: {note}\n"));
        text
    }
}

impl Parameter {
    /// `known to 3 %`, or `not known from these data`.
    #[must_use]
    pub fn verdict(&self) -> String {
        match self.is_known {
            true => format!("known to {:.0} %", (100.0 * self.interval.half_width()).max(1.0)),
            false => "not known from these data".to_owned(),
        }
    }

    /// `11.2 to 12.8 Mbit/s`.
    #[must_use]
    pub fn interval_text(&self) -> String {
        let [low, high] = [self.interval.low, self.interval.high].map(|value| self.unknown.shown(value));
        let number = low.split(' ').next().unwrap_or_default();
        format!("{number} to {high}")
    }
}

fn parameter_row(parameter: &Parameter) -> Vec<String> {
    let Parameter { unknown, interval, .. } = parameter;
    vec![unknown.key.clone(), unknown.shown(interval.median), parameter.interval_text(), parameter.verdict()]
}

fn observable_row(compared: &Compared) -> Vec<String> {
    let Compared { path, name, unit, measured, simulated, naive, is_held_out } = compared;
    let held = if *is_held_out { " (held out)" } else { "" };
    let naive = naive.map_or("-".to_owned(), digits);
    vec![format!("{path} {name}, {unit}{held}"), digits(*measured), digits(simulated.median), naive]
}
