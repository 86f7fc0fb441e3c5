//! The page of a fit: one HTML file without others, in the style of all reports.

use crate::fitting::{Compared, Fit, Parameter};
use crate::unknown::digits;
use strings::escape_html;

/// Width and height of a plot, in units of its view box.
const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 22.0;
/// The scale of a plot of ratios: from one third to three.
const SPAN: f64 = 1.0986;

const STYLE: &str = "svg.ratio { display: block; width: 11rem; height: 1.2rem; min-width: 11rem; }\n\
    svg.ratio path { stroke: var(--soft); fill: none; } svg.ratio path.range { stroke: var(--c0); stroke-width: 4; }\n\
    svg.ratio circle { fill: var(--c0); } svg.ratio rect { fill: var(--c1); }\n";

impl Fit {
    /// The page.
    #[must_use]
    pub fn page(&self) -> String {
        let notes: String = self.notes.iter().map(|note| format!("<li>{}</li>\n", escape_html(note))).collect();
        let notes = if notes.is_empty() { notes } else { section("Not used", &format!("<ul>\n{notes}</ul>\n")) };
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>Fitted links</title>\n<style>{}\n{STYLE}</style>\n\
             </head>\n<body>\n<header>\n<h1>Fitted links</h1>\n<p class=\"answer\">{}</p>\n<p>{}</p>\n<p>{}</p>\n</header>\n\
             {}{}{notes}<footer>Made by Ropewalk {} {}.</footer>\n</body>\n</html>\n",
            report::style(),
            escape_html(&self.headline()),
            escape_html(&self.held_out_line()),
            escape_html(&self.search_line()),
            section("The links", &self.parameter_table()),
            section("Measured and fitted", &self.observable_table()),
            runner::VERSION,
            runner::COMMIT,
        )
    }

    fn parameter_table(&self) -> String {
        let rows: String = self.parameters.iter().map(parameter_row).collect();
        let caption =
            "Bars: the interval of 90 % within the range of the search, on a logarithmic scale; dots: the median.";
        table(caption, &["unknown", "median", "90 % interval", "in its range", "verdict"], &rows)
    }

    fn observable_table(&self) -> String {
        let rows: String = self.observables.iter().map(observable_row).collect();
        let caption = "Ratio to what was measured, from 1/3 to 3: dots and bars are the fitted links with their interval, squares \
                       the naive links. The line in the middle is the measurement.";
        table(caption, &["observable", "measured", "fitted", "naive", "ratio"], &rows)
    }
}

fn section(heading: &str, content: &str) -> String {
    format!("<section>\n<h2>{heading}</h2>\n{content}</section>\n")
}

fn table(caption: &str, heads: &[&str], rows: &str) -> String {
    let class = |head: &&str| match *head {
        "unknown" | "observable" => " class=\"corner\"",
        "in its range" | "verdict" | "ratio" => " class=\"name\"",
        _ => "",
    };
    let heads: String = heads.iter().map(|head| format!("<th scope=\"col\"{}>{head}</th>", class(head))).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\"><table class=\"plain\"><caption>{caption}</caption><thead><tr>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n"
    )
}

fn parameter_row(parameter: &Parameter) -> String {
    let Parameter { unknown, interval, .. } = parameter;
    let [low, median, high] =
        [interval.low, interval.median, interval.high].map(|value| 2.0 * unknown.place(value) - 1.0);
    format!(
        "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td class=\"name\">{}</td></tr>\n",
        escape_html(&unknown.key),
        unknown.shown(interval.median),
        parameter.interval_text(),
        plot(&[(low, high)], &[median], &[], false),
        parameter.verdict(),
    )
}

fn observable_row(compared: &Compared) -> String {
    let Compared { path, name, unit, measured, simulated, naive, is_held_out } = compared;
    let ratio = |value: f64| libm::log(value.max(1e-9) / measured.max(1e-9)) / SPAN;
    let held = if *is_held_out { " <small>held out</small>" } else { "" };
    let naive_place: Vec<f64> = naive.iter().map(|value| ratio(*value)).collect();
    format!(
        "<tr><th scope=\"row\">{}{held}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        escape_html(&format!("{path} {name}, {unit}")),
        digits(*measured),
        digits(simulated.median),
        naive.map_or("–".to_owned(), digits),
        plot(&[(ratio(simulated.low), ratio(simulated.high))], &[ratio(simulated.median)], &naive_place, true),
    )
}

/// Ranges, dots and squares between -1 and 1; what is beyond stands at the edge.
fn plot(ranges: &[(f64, f64)], dots: &[f64], squares: &[f64], with_middle: bool) -> String {
    let x = |place: f64| (place.clamp(-1.0, 1.0) + 1.0) / 2.0 * (WIDTH - 8.0) + 4.0;
    let middle = HEIGHT / 2.0;
    let mut marks = format!("<path d=\"M4 {middle}H{}\"/>", WIDTH - 4.0);
    if with_middle {
        marks += &format!("<path d=\"M{0} 3V{1}\"/>", WIDTH / 2.0, HEIGHT - 3.0);
    }
    for (low, high) in ranges {
        marks += &format!("<path class=\"range\" d=\"M{:.1} {middle}H{:.1}\"/>", x(*low), x(*high));
    }
    for place in squares {
        marks += &format!("<rect x=\"{:.1}\" y=\"{}\" width=\"8\" height=\"8\"/>", x(*place) - 4.0, middle - 4.0);
    }
    for place in dots {
        marks += &format!("<circle cx=\"{:.1}\" cy=\"{middle}\" r=\"5\"/>", x(*place));
    }
    format!("<svg class=\"ratio\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-hidden=\"true\">{marks}</svg>")
}
