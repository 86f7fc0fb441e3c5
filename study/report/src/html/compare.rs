//! Two studies side by side on a page: how their errors are distributed, the worst cells first, and both over time.

use super::{PagePart, plots, seeds, tables};
use crate::axes::Titles;
use crate::chart::Line;
use crate::compare::{ComparedFlow, Comparison, Errors};
use crate::number::{format_optional, mark_disturbed, name_with_unit, plural};
use crate::study::{Study, SweepCell, short_names};
use crate::svg::{self, Distribution};
use serde_json::Value;
use std::collections::BTreeSet;
use strings::escape_html;

/// The number of lines that are shown before the folded ones.
const OPEN_LINES: usize = 20;
/// The note on the last column, if both studies have series.
const CWND_COLUMN_NOTE: &str = " The last column is the mean distance of both windows' quantile functions, percent of the baseline's \
                       mean window.";

/// The sections of a comparison.
pub(super) struct ComparisonSections {
    pub(super) sections: [String; 4],
    /// The data for the script, if there are plots.
    pub(super) data: Option<Value>,
    /// The number of cells with plots.
    pub(super) plotted_cells: usize,
}

/// The sections of a comparison, which is a part of the page.
pub(super) fn sections(comparison: &Comparison<'_>, part: &PagePart) -> ComparisonSections {
    let lines = comparison.worst_first();
    let cells = cells(&lines);
    let plots = plots::plots(comparison.measured(), &cells, part);
    let worst = worst_cells(comparison, &lines, &cells[..plots.shown], part);
    let sections = [agreement(comparison, part), worst, cells_of_one_study(comparison, part), plots.section];
    ComparisonSections { sections, data: plots.data, plotted_cells: plots.shown }
}

/// The cells of these lines, once each.
pub(super) fn cells<'a>(lines: &[&ComparedFlow<'a>]) -> Vec<SweepCell<'a>> {
    let mut seen = BTreeSet::new();
    lines.iter().map(|line| &line.cell).filter(|cell| seen.insert(cell.parameters)).cloned().collect()
}

/// The title, and the facts on both studies.
pub(super) fn about(comparison: &Comparison<'_>) -> String {
    let roles = if comparison.baseline == 1 { ["measured", "the baseline"] } else { ["the baseline", "measured"] };
    let sides = comparison.names.iter().zip(&comparison.studies).zip(roles);
    let sides: String = sides.map(|((name, study), role)| study_facts(name, study, role)).collect();
    format!("<p>{}</p>\n{sides}", escape_html(comparison.measured().title))
}

/// The facts on a study.
fn study_facts(name: &str, study: &Study<'_>, role: &str) -> String {
    let cells = plural(study.cells().len(), "cell");
    let facts = [
        ("Results", format!("{name}, {role}")),
        ("Scenario", study.scenario.to_owned()),
        ("Driver", study.driver.to_owned()),
        ("Runs", format!("{} ({cells}, {})", study.runs.len(), seeds(study))),
        ("Digest", study.digest.to_owned()),
        ("Program", format!("ropewalk {} {}", study.version, study.commit)),
    ];
    super::definition_list(&facts)
}

/// The distribution of the errors of each value: in numbers, and as curves.
fn agreement(comparison: &Comparison<'_>, part: &PagePart) -> String {
    let (mut rows, mut curves) = (String::new(), String::new());
    for (index, value) in comparison.values.iter().enumerate() {
        let Some(errors) = comparison.errors(index) else { continue };
        let numbers = errors.percents().map(|percent| format!("<td>{percent:.1}</td>")).concat();
        let value = escape_html(&name_with_unit(value));
        rows += &format!("<tr><th scope=\"row\">{value}</th><td>{}</td>{numbers}</tr>\n", errors.0.len());
        if errors.0.len() > 1 {
            curves += &error_curve(&errors, &value, &value);
        }
    }
    let sentence = escape_html(&comparison.sentence()).replace(" %", "&nbsp;%");
    let table = match rows.is_empty() {
        true => String::new(),
        false => format!(
            "<div class=\"scroll\"><table class=\"plain\"><caption>|error|, percent of {}. Percentiles are interpolated \
             linearly between order statistics</caption><thead><tr><th scope=\"col\" class=\"corner\">value</th>\
             <th scope=\"col\">values</th><th scope=\"col\">median</th><th scope=\"col\">90th</th><th scope=\"col\">95th</th>\
             <th scope=\"col\">worst</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n",
            escape_html(comparison.names[comparison.baseline])
        ),
    };
    let curves = match curves.is_empty() {
        true => curves,
        false => format!(
            "{}<p>Dashed: the median and the 95th percentile.</p>\n<div class=\"charts curves\">\n{curves}</div>\n",
            part.subheading("How many values are within which error")
        ),
    };
    let (id, heading) = (part.id("agreement"), part.heading("Agreement"));
    format!("<section id=\"{id}\">\n{heading}<p><b>{sentence}</b></p>\n{table}{curves}</section>\n")
}

/// The cumulative distribution of errors as a figure; `title` is its label for screen readers.
pub(super) fn error_curve(errors: &Errors, caption: &str, title: &str) -> String {
    let percents: Vec<f64> = errors.0.iter().map(|error| 100.0 * error).collect();
    let [median, _, p95, worst] = errors.percents();
    let ticks = svg::ticks(worst.min(2.0 * p95).max(0.1));
    let line = Line { values: percents, ..Line::default() };
    let label = format!("share of the values within an error: {title}");
    let titles = Titles { caption: "", x: "|error|, %", y: "share of the values, %", label: &label };
    let axis = Distribution { max: ticks[ticks.len() - 1], markers: &[median, p95], titles };
    let (picture, beyond) = svg::cumulative(&[line], &axis);
    let beyond = if beyond > 0 { format!("; {beyond} beyond the right edge") } else { String::new() };
    format!("<figure><figcaption>{caption}{beyond}</figcaption>{picture}</figure>\n")
}

/// The table of all values of the common cells, with links to the plots of the cells in `plotted`.
fn worst_cells(
    comparison: &Comparison<'_>,
    lines: &[&ComparedFlow<'_>],
    plotted: &[SweepCell<'_>],
    part: &PagePart,
) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let (unfolded, folded) = lines.split_at(lines.len().min(OPEN_LINES));
    let shown = &folded[..folded.len().min(tables::MAX_ROWS)];
    let mut more = match shown.is_empty() {
        true => String::new(),
        false => format!(
            "<details><summary>{} more, the worst first</summary>{}</details>\n",
            folded.len(),
            table(comparison, shown, plotted, part.first_cell)
        ),
    };
    if shown.len() < folded.len() {
        more += &format!("<p>Of these the first {} are shown.</p>\n", shown.len());
    }
    format!(
        "<section id=\"{}\">\n{}<p>In each cell: <b>{}</b>, <small>{}</small>; below, the \
         relative error. Orange: too little. Blue: too much. Full colour: off by half or more.{}</p>\n{}{more}{}</section>\n",
        part.id("cells"),
        part.heading("Cells, the worst first"),
        escape_html(comparison.names[1 - comparison.baseline]),
        escape_html(comparison.names[comparison.baseline]),
        if comparison.has_cwnd_errors() { CWND_COLUMN_NOTE } else { "" },
        table(comparison, unfolded, plotted, part.first_cell),
        tables::disturbance_notes(comparison.measured())
    )
}

/// A table of some lines, with the error of the congestion window if both have series. The plots of the comparison are
/// numbered from `first_plot` on.
fn table(
    comparison: &Comparison<'_>,
    lines: &[&ComparedFlow<'_>],
    plotted: &[SweepCell<'_>],
    first_plot: usize,
) -> String {
    let has_cwnd_errors = comparison.has_cwnd_errors();
    let cwnd_error = has_cwnd_errors.then(|| name_with_unit("cwnd_quantile_error_percent"));
    let heads = comparison.values.iter().map(|value| name_with_unit(value)).chain(cwnd_error);
    let heads: String = heads.map(|head| format!("<th scope=\"col\">{}</th>", escape_html(&head))).collect();
    let row = |line: &&ComparedFlow<'_>| {
        let index = plotted.iter().position(|cell| cell.parameters == line.cell.parameters);
        let name = escape_html(&line.label);
        let name = index.map_or(name.clone(), |index| format!("<a href=\"#cell-{}\">{name}</a>", first_plot + index));
        let values = (0..comparison.values.len()).map(|value| cell(comparison, line, value));
        let cwnd_error = has_cwnd_errors.then(|| format!("<td>{}</td>", format_optional(line.cwnd_error)));
        format!("<tr><th scope=\"row\">{name}</th>{}</tr>\n", values.chain(cwnd_error).collect::<String>())
    };
    let rows: String = lines.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table class=\"pairs\"><thead><tr><th scope=\"col\" class=\"corner\">{}</th>{heads}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n",
        escape_html(&short_names(&comparison.varying_keys()).join(", "))
    )
}

/// A value in both, and its error.
fn cell(comparison: &Comparison<'_>, line: &ComparedFlow<'_>, value: usize) -> String {
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

/// The cells that only one of the studies has.
fn cells_of_one_study(comparison: &Comparison<'_>, part: &PagePart) -> String {
    let list = |side: usize| {
        let only_here = comparison.only_in(side);
        if only_here.is_empty() {
            return String::new();
        }
        let items: String = only_here.iter().map(|cell| format!("<li>{}</li>", escape_html(cell))).collect();
        let (count, name) = (plural(only_here.len(), "cell"), escape_html(comparison.names[side]));
        format!("{}<ul class=\"cells\">{items}</ul>\n", part.subheading(&format!("{count} only in {name}")))
    };
    match [0, 1].map(list).concat() {
        lists if lists.is_empty() => lists,
        lists => {
            let (id, heading) = (part.id("alone"), part.heading("Cells of one alone"));
            format!("<section id=\"{id}\">\n{heading}{lists}</section>\n")
        }
    }
}
