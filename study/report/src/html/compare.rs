//! Two studies side by side on a page: how their errors are distributed, the worst cells first, and both over time.

use super::{Place, plots, seeds, tables};
use crate::compare::{Compared, Comparison};
use crate::markup::escape;
use crate::number::{format_optional, mark_disturbed, plural, title};
use crate::study::{Study, SweepCell, short_names};
use crate::svg;
use serde_json::Value;
use std::collections::BTreeSet;

/// So many lines stand open, before the others.
const OPEN: usize = 20;
/// What the last column is where both have series.
const WINDOWS: &str = " The last column is the mean distance of both windows' quantile functions, percent of the baseline's \
                       mean window.";

/// What the page has of a comparison.
pub(super) struct Parts {
    pub(super) sections: [String; 4],
    /// For the script, where there are plots.
    pub(super) data: Option<Value>,
    /// How many cells have plots.
    pub(super) plotted: usize,
}

/// A comparison at its place of the page.
pub(super) fn parts(comparison: &Comparison<'_>, place: &Place) -> Parts {
    let lines = comparison.worst_first();
    let cells = cells(&lines);
    let plots = plots::plots(comparison.measured(), &cells, place);
    let worst = worst(comparison, &lines, &cells[..plots.shown], place);
    let sections = [agreement(comparison, place), worst, alone(comparison, place), plots.section];
    Parts { sections, data: plots.data, plotted: plots.shown }
}

/// The cells of these lines, once each.
pub(super) fn cells<'a>(lines: &[&Compared<'a>]) -> Vec<SweepCell<'a>> {
    let mut seen = BTreeSet::new();
    lines.iter().map(|line| &line.cell).filter(|cell| seen.insert(cell.parameters)).cloned().collect()
}

/// What was run, and what is to be known of both sides.
pub(super) fn about(comparison: &Comparison<'_>) -> String {
    let roles = if comparison.baseline == 1 { ["measured", "the baseline"] } else { ["the baseline", "measured"] };
    let sides = comparison.names.iter().zip(&comparison.studies).zip(roles);
    let sides: String = sides.map(|((name, study), role)| side(name, study, role)).collect();
    format!("<p>{}</p>\n{sides}", escape(comparison.measured().title))
}

/// What is to be known of one of the two.
fn side(name: &str, study: &Study<'_>, role: &str) -> String {
    let cells = plural(study.cells().len(), "cell");
    let facts = [
        ("Results", format!("{name}, {role}")),
        ("Scenario", study.scenario.to_owned()),
        ("Driver", study.driver.to_owned()),
        ("Runs", format!("{} ({cells}, {})", study.runs.len(), seeds(study))),
        ("Digest", study.digest.to_owned()),
        ("Program", format!("ropewalk {} {}", study.version, study.commit)),
    ];
    super::facts(&facts)
}

/// The distribution of the errors of each value: in numbers, and as curves.
fn agreement(comparison: &Comparison<'_>, place: &Place) -> String {
    let (mut rows, mut curves) = (String::new(), String::new());
    for (at, value) in comparison.values.iter().enumerate() {
        let Some(errors) = comparison.errors(at) else { continue };
        let numbers = errors.percents().map(|percent| format!("<td>{percent:.1}</td>")).concat();
        let value = escape(&title(value));
        rows += &format!("<tr><th scope=\"row\">{value}</th><td>{}</td>{numbers}</tr>\n", errors.0.len());
        if errors.0.len() > 1 {
            let (picture, beyond) = svg::cumulative(&errors.0, errors.quantile(0.95), &value);
            let beyond = if beyond > 0 { format!("; {beyond} beyond the right edge") } else { String::new() };
            curves += &format!("<figure><figcaption>{value}{beyond}</figcaption>{picture}</figure>\n");
        }
    }
    let sentence = escape(&comparison.sentence()).replace(" %", "&nbsp;%");
    let table = match rows.is_empty() {
        true => String::new(),
        false => format!(
            "<div class=\"scroll\"><table class=\"plain\"><caption>|error|, percent of {}. Percentiles lie between order \
             statistics on the straight line</caption><thead><tr><th scope=\"col\" class=\"corner\">value</th>\
             <th scope=\"col\">values</th><th scope=\"col\">median</th><th scope=\"col\">90th</th><th scope=\"col\">95th</th>\
             <th scope=\"col\">worst</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n",
            escape(comparison.names[comparison.baseline])
        ),
    };
    let curves = match curves.is_empty() {
        true => curves,
        false => format!(
            "{}<p>Dashed: the median and the 95th percentile.</p>\n<div class=\"charts curves\">\n{curves}</div>\n",
            place.subheading("How many values are within which error")
        ),
    };
    let (id, heading) = (place.id("agreement"), place.heading("Agreement"));
    format!("<section id=\"{id}\">\n{heading}<p><b>{sentence}</b></p>\n{table}{curves}</section>\n")
}

/// Every value of the cells that both have. `plotted`: those with a plot to link to.
fn worst(comparison: &Comparison<'_>, lines: &[&Compared<'_>], plotted: &[SweepCell<'_>], place: &Place) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let (first, rest) = lines.split_at(lines.len().min(OPEN));
    let shown = &rest[..rest.len().min(tables::MAX_ROWS)];
    let mut more = match shown.is_empty() {
        true => String::new(),
        false => format!(
            "<details><summary>{} more, the worst first</summary>{}</details>\n",
            rest.len(),
            table(comparison, shown, plotted, place.first)
        ),
    };
    if shown.len() < rest.len() {
        more += &format!("<p>Of these the first {} are shown.</p>\n", shown.len());
    }
    format!(
        "<section id=\"{}\">\n{}<p>In each cell: <b>{}</b>, <small>{}</small>; below, the \
         relative error. Orange: too little. Blue: too much. Full colour: off by half or more.{}</p>\n{}{more}{}</section>\n",
        place.id("cells"),
        place.heading("Cells, the worst first"),
        escape(comparison.names[1 - comparison.baseline]),
        escape(comparison.names[comparison.baseline]),
        if comparison.has_windows() { WINDOWS } else { "" },
        table(comparison, first, plotted, place.first),
        tables::disturbances(comparison.measured())
    )
}

/// Some of the lines, and how near windows are where both have them. The plots on the page are numbered from `plot` on.
fn table(comparison: &Comparison<'_>, lines: &[&Compared<'_>], plotted: &[SweepCell<'_>], plot: usize) -> String {
    let windows = comparison.has_windows();
    let window = windows.then(|| title("cwnd_quantile_error_percent"));
    let heads = comparison.values.iter().map(|value| title(value)).chain(window);
    let heads: String = heads.map(|head| format!("<th scope=\"col\">{}</th>", escape(&head))).collect();
    let row = |line: &&Compared<'_>| {
        let at = plotted.iter().position(|cell| cell.parameters == line.cell.parameters);
        let name = escape(&line.label);
        let name = at.map_or(name.clone(), |at| format!("<a href=\"#cell-{}\">{name}</a>", plot + at));
        let values = (0..comparison.values.len()).map(|value| cell(comparison, line, value));
        let window = windows.then(|| format!("<td>{}</td>", format_optional(line.window)));
        format!("<tr><th scope=\"row\">{name}</th>{}</tr>\n", values.chain(window).collect::<String>())
    };
    let rows: String = lines.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table class=\"pairs\"><thead><tr><th scope=\"col\" class=\"corner\">{}</th>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n",
        escape(&short_names(&comparison.varying_keys()).join(", "))
    )
}

/// A value in both, and its error.
fn cell(comparison: &Comparison<'_>, line: &Compared<'_>, value: usize) -> String {
    let text = |side: usize| mark_disturbed(format_optional(line.values[value][side]), line.disturbed[side]);
    let (class, strength, error) = match comparison.error(line, value) {
        Some(error) => tables::shade(error),
        None => ("none", 0.0, String::new()),
    };
    format!(
        "<td class=\"{class}\" style=\"--h:{strength:.2}\"><b>{}</b> <small>{}</small><br>{error}</td>",
        text(1 - comparison.baseline),
        text(comparison.baseline)
    )
}

/// What only one of the two ran.
fn alone(comparison: &Comparison<'_>, place: &Place) -> String {
    let list = |side: usize| {
        let only = comparison.only_in(side);
        if only.is_empty() {
            return String::new();
        }
        let items: String = only.iter().map(|cell| format!("<li>{}</li>", escape(cell))).collect();
        let (count, name) = (plural(only.len(), "cell"), escape(comparison.names[side]));
        format!("{}<ul class=\"cells\">{items}</ul>\n", place.subheading(&format!("{count} only in {name}")))
    };
    match [0, 1].map(list).concat() {
        lists if lists.is_empty() => lists,
        lists => {
            let (id, heading) = (place.id("alone"), place.heading("Cells of one alone"));
            format!("<section id=\"{id}\">\n{heading}{lists}</section>\n")
        }
    }
}
