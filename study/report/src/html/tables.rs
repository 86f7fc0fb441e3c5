//! The page's tables.

use super::heat_map::heat_map;
use crate::caption::{capitalise, caption, corner, table_name};
use crate::colour::{self, Slots};
use crate::direction::{Direction, direction};
use crate::dot_plot;
use crate::grid::{
    self, Grid, Pair, Row, Value, agreement, closing_sentences, pairs, rank_correlations, references, unit,
};
use crate::layout::{Layout, Reference, Table};
use crate::number::{format_number, format_optional, format_percent, mark_disturbed, plural};
use crate::study::{MANY_TABLES, Study};
use crate::summary;
use crate::svg::{ScatterPoint, scatter};
use strings::escape_html;

/// The maximum number of rows of a table on the page; the Parquet files have all.
pub(super) const MAX_ROWS: usize = 1000;

/// These tables of the layout by their numbers, and their comparison with references. The first `shown` cells have plots to link
/// to.
pub(super) fn results(study: &Study<'_>, tables: &[usize], shown: usize) -> String {
    let mut out = String::new();
    for index in tables {
        let table = &study.layout.tables[*index];
        out += &format!("<div id=\"table-{}\"></div>\n", index + 1);
        let grids = Grid::of(study, table);
        for grid in &grids {
            out += &match &table.heat_map {
                Some(scale) => heat_map(study, table, grid, scale, shown),
                None => simulated(study, table, grid, shown),
            };
            for reference in references(study, table, grid) {
                out += &compared(study, table, grid, &reference);
            }
        }
        let closing_sentences = closing_sentences(study, table, &grids);
        out +=
            &closing_sentences.iter().map(|sentence| format!("<p>{}</p>\n", escape_html(sentence))).collect::<String>();
    }
    out
}

/// Links to the tables, where there are many and no sections.
pub(super) fn list(Layout { tables, .. }: &Layout, sections: &[&str]) -> String {
    if tables.len() < MANY_TABLES || !sections.is_empty() {
        return String::new();
    }
    let link = |(index, table): (usize, &Table)| {
        let name = capitalise(&table_name(table));
        format!("<li><a href=\"#table-{}\">{}</a></li>\n", index + 1, escape_html(&name))
    };
    let links: String = tables.iter().enumerate().map(link).collect();
    format!(
        "<details open class=\"tables\"><summary>{}</summary><ul>\n{links}</ul></details>\n",
        plural(tables.len(), "table")
    )
}

/// The footnotes on disturbed runs.
pub(super) fn disturbance_notes(study: &Study<'_>) -> String {
    study.disturbance_notes().iter().map(|note| format!("<p>{}</p>\n", escape_html(note))).collect()
}

pub(super) fn table_head(table: &Table, grid: &Grid) -> String {
    let columns: String =
        grid.columns.iter().map(|name| format!("<th scope=\"col\">{}</th>", escape_html(name))).collect();
    let corner = escape_html(&corner(table));
    format!("<thead><tr><th scope=\"col\" class=\"corner\">{corner}</th>{columns}</tr></thead>\n")
}

/// The name of a row; an algorithm's has a dot in its colour.
fn row_heading(row: &Row, slots: &Slots) -> String {
    let dot = slots
        .get(&row.name)
        .map_or(String::new(), |slot| format!("<i style=\"background:var(--c{})\"></i>", colour::colour(slot)));
    format!("<th scope=\"row\">{dot}{}</th>", escape_html(&row.name))
}

fn simulated(study: &Study<'_>, table: &Table, grid: &Grid, shown: usize) -> String {
    // Several values have no common scale: each column has its own.
    let several = table.values.len() > 1;
    let max_mean: Vec<f64> = (0..grid.columns.len()).map(|column| grid.max_mean(several.then_some(column))).collect();
    let (width, slots) = (grid.columns.len(), study.slots());
    let directions: Vec<Direction> =
        (0..width).map(|column| direction(&grid::column_of(table, column).value)).collect();
    let row = |row: &Row| {
        let cells: String = match row.only_published {
            true => format!("<td class=\"not-run\" colspan=\"{width}\">published, not run here</td>"),
            false => {
                let scales = max_mean.iter().zip(&directions);
                row.values.iter().zip(scales).map(|(value, scale)| heat_cell(value.as_ref(), scale, shown)).collect()
            }
        };
        format!("<tr>{}{cells}</tr>\n", row_heading(row, &slots))
    };
    let rows: String = grid.rows.iter().map(row).collect();
    let interval = match grid.has_intervals() {
        true => format!("; ± is half the 95 % confidence interval (Student's t); {}", dot_plot::CAPTION),
        false => String::new(),
    };
    let scale_max = if several { "greatest of the column".to_owned() } else { format_number(grid.max_mean(None)) };
    let scales = [(Direction::Higher, "more is better"), (Direction::Lower, "less is better")];
    let scales = scales.into_iter().filter(|(direction, _)| directions.contains(direction));
    let scales = scales.map(|(direction, words)| {
        format!(" <span class=\"scale {}\">0 <i></i> {scale_max}</span>, {words}.", heat_class(direction))
    });
    let scales: String = scales.collect();
    let links = if shown > 0 { ". Click a value to see its time series" } else { "" };
    format!(
        "<div class=\"scroll\"><table class=\"heat\"><caption><b>{}</b>{interval}{links}.{scales}</caption>\n{}<tbody>\n{rows}</tbody></table></div>\n{}",
        escape_html(&caption(study, table, grid)),
        table_head(table, grid),
        notes(grid)
    )
}

/// The rule of two states, and the outliers.
fn notes(grid: &Grid) -> String {
    let notes = grid.rule_of_states().map(str::to_owned).into_iter().chain(grid.outliers());
    notes.map(|note| format!("<p>{}</p>\n", escape_html(&note))).collect()
}

/// Both states of a cell that has two, with their shares of the runs.
fn states(value: &Value) -> String {
    let Some([lower, upper]) = value.sample.states() else { return String::new() };
    format!("<small class=\"states\">{}<br>{}</small>", lower.text(), upper.text())
}

/// The CSS class of a value's colour: where more is better, where less is, or none.
fn heat_class(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "good",
        Direction::Lower => "bad",
        Direction::Neutral => "",
    }
}

fn heat_cell(value: Option<&Value>, (max_mean, direction): (&f64, &Direction), shown: usize) -> String {
    let Some(value) = value else { return "<td>–</td>".to_owned() };
    let Value { cell, estimate, sample, .. } = value;
    let share = if *max_mean > 0.0 { (estimate.mean / max_mean).clamp(0.0, 1.0) } else { 0.0 };
    let half = estimate.half_text().map(|half| format!(" <small>± {}</small>", escape_html(&half)));
    let identical = || value.sample.identical_note().map(|note| format!("<br><small>{note}</small>"));
    let half = half.or_else(identical).unwrap_or_default();
    let mean = value.marked(format_number(estimate.mean));
    let mean = if *cell < shown { format!("<a href=\"#cell-{cell}\">{mean}</a>") } else { mean };
    let look = match heat_class(*direction) {
        "" => String::new(),
        class => format!(" class=\"{class}\" style=\"--h:{share:.2}\""),
    };
    format!("<td{look}>{mean}{half}{}{}</td>", dot_plot::dot_plot(sample), states(value))
}

fn compared(study: &Study<'_>, table: &Table, grid: &Grid, reference: &Reference) -> String {
    let (grid, slots) = (&grid.with_columns_of(reference), study.slots());
    let pairs = pairs(grid, reference);
    let name = escape_html(&reference.name);
    let panel = if grid.panel.is_empty() { String::new() } else { format!(" ({})", escape_html(&grid.panel)) };
    let row = |(row, pairs): (&Row, &Vec<Pair>)| {
        if pairs.iter().all(|pair| pair.published.is_none()) {
            return String::new();
        }
        let cells: String = pairs.iter().map(pair_cell).collect();
        format!("<tr>{}{cells}</tr>\n", row_heading(row, &slots))
    };
    let rows: String = grid.rows.iter().zip(&pairs).map(row).collect();
    // Several values have no common unit, and no scatter plot.
    let several = table.values.len() > 1;
    let unit = escape_html(if reference.unit.is_empty() && !several { unit(table) } else { &reference.unit });
    let plot = if several { String::new() } else { scatter_plot(study, grid, &pairs, reference, &unit) };
    let unit = if unit.is_empty() { unit } else { format!(", {unit}") };
    format!(
        "<h3>Here against {name}{panel}</h3>\n<p>{}: {}.</p>\n{}<div class=\"beside\"><div class=\"scroll\">\
         <table class=\"pairs\"><caption>In each cell: <b>here</b>, <small>{name}</small>{unit}; below, the relative \
         error of what is here. Orange: too little. Blue: too much. Full colour: off by half or more.</caption>\n{}\
         <tbody>\n{rows}</tbody>{}</table></div>{plot}</div>\n",
        escape_html(&capitalise(&reference.source)),
        escape_html(&agreement(&pairs)),
        super::paragraphs(&reference.note),
        table_head(table, grid),
        rank_correlation_row(&pairs)
    )
}

/// The table's foot: the rank correlation of each column.
fn rank_correlation_row(pairs: &[Vec<Pair>]) -> String {
    let Some(columns) = rank_correlations(pairs) else { return String::new() };
    let cells: String = columns.iter().map(|tau| format!("<td>{}</td>", format_optional(*tau))).collect();
    format!("<tfoot><tr><th scope=\"row\">Kendall's τ-b of the order down the column</th>{cells}</tr></tfoot>")
}

fn pair_cell(pair: &Pair) -> String {
    let simulated = pair
        .simulated
        .map_or_else(|| "not run".to_owned(), |simulated| mark_disturbed(format_number(simulated), pair.disturbed[1]));
    let published = mark_disturbed(format_optional(pair.published), pair.disturbed[0]);
    let (class, strength, error) = match pair.error() {
        Some(error) => shade(error),
        None => ("none", 0.0, String::new()),
    };
    let class = if pair.simulated.is_none() { "not-run" } else { class };
    format!(
        "<td class=\"{class}\" style=\"--h:{strength:.2}\"><b>{simulated}</b> <small>{published}</small><br>{error}</td>"
    )
}

/// The CSS class of a relative error, the strength of its colour, and its text.
pub(super) fn shade(error: f64) -> (&'static str, f64, String) {
    (if error < 0.0 { "less" } else { "more" }, (error.abs() * 2.0).min(1.0), format_percent(error))
}

fn scatter_plot(study: &Study<'_>, grid: &Grid, pairs: &[Vec<Pair>], reference: &Reference, unit: &str) -> String {
    let mut points = Vec::new();
    let slots = study.slots().of_several(&grid.rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>());
    for ((row, pairs), slot) in grid.rows.iter().zip(pairs).zip(slots) {
        for (column, pair) in grid.columns.iter().zip(pairs) {
            if let Pair { published: Some(published), simulated: Some(simulated), .. } = *pair
                && published > 0.0
                && simulated > 0.0
            {
                let name = format!("{}, {column}", row.name);
                points.push(ScatterPoint { name, colour: colour::colour(slot), published, simulated });
            }
        }
    }
    if points.len() < 2 || study.runs.is_empty() {
        return String::new();
    }
    format!(
        "<figure>{}<figcaption>Each point is a cell, in its row's colour; in the band, both are \
         within 25 % of each other.</figcaption></figure>",
        scatter(&points, &reference.name, unit)
    )
}

/// The summary tables, unfolded if the layout has no tables.
pub(super) fn summary_tables(study: &Study<'_>) -> String {
    let open = if study.layout.tables.is_empty() { " open" } else { "" };
    let mut out = "<section id=\"summary_tables\">\n<h2>Flows and paths</h2>\n".to_owned();
    for summary in summary::summary_tables(study, MAX_ROWS) {
        let head: String =
            summary.headings.iter().map(|name| format!("<th scope=\"col\">{}</th>", escape_html(name))).collect();
        let cell = |(index, text): (usize, &String)| {
            let class = if index < summary.name_columns { " class=\"name\"" } else { "" };
            format!("<td{class}>{}</td>", escape_html(text))
        };
        let row = |row: &Vec<String>| format!("<tr>{}</tr>\n", row.iter().enumerate().map(cell).collect::<String>());
        let rows: String = summary.rows.iter().map(row).collect();
        let (title, count) = (summary.title, plural(summary.rows.len() + summary.omitted, "row"));
        let omission_note = match summary.omitted > 0 {
            true => format!("<p>The first {MAX_ROWS} rows; the Parquet files beside this page have all.</p>"),
            false => String::new(),
        };
        out += &format!(
            "<details{open}><summary>{title}, {count}</summary>{omission_note}<div class=\"scroll\"><table class=\"plain\">\
             <thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>{}</details>\n",
            summary.outliers.map_or(String::new(), |note| format!("<p>{}</p>\n", escape_html(&note)))
        );
    }
    out + "</section>\n"
}
