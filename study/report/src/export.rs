//! A report's figures as files: SVG and CSV of each, under names that stay while the scenario's report does.

use crate::chart::charts;
use crate::drawing::{Drawing, slug};
use crate::figure::{figure_data, title};
use crate::grid::Grid;
use crate::html::still::still;
use crate::html::{figures, heat_map};
use crate::layout::{Figure, FigureKind};
use crate::study::{Study, short_names};
use crate::summary::cell_name;
use crate::{bars as bar_charts, csv, defaults, svg};

/// The most points of a line in a file's drawing; its CSV has every sample.
const POINTS: usize = 1000;
/// The most cells whose charts over time are written.
const MAX_CELLS: usize = 200;

/// A figure as files.
#[derive(Clone, Debug)]
pub struct FigureFile {
    /// The name without its ending; charts over time are in a folder.
    pub name: String,
    /// The drawing; none of a table of numbers.
    pub svg: Option<String>,
    /// The numbers.
    pub csv: String,
}

/// All figures and tables of the report, and the charts over time of its first 200 cells.
#[must_use]
pub fn figure_files(study: &Study<'_>) -> Vec<FigureFile> {
    let with_figures = defaults::with_figures(study);
    let study = with_figures.as_ref().unwrap_or(study);
    let figures =
        study.layout.figures.iter().enumerate().filter_map(|(index, figure)| self::figure(study, index, figure));
    figures.chain(tables(study)).chain(over_time(study)).collect()
}

/// The name of the file of the figure `index`.
pub(crate) fn figure_name(index: usize, figure: &Figure) -> String {
    format!("figure-{}-{}", index + 1, slug(&title(figure)))
}

fn figure(study: &Study<'_>, index: usize, figure: &Figure) -> Option<FigureFile> {
    let (drawing, csv) = match figure.kind() {
        FigureKind::Lines => {
            let baseline = study.baseline.map_or("", |baseline| baseline.name);
            let csv = csv::lines(&figure_data(study, figure, usize::MAX)?, &figure.value, baseline);
            (figures::drawing(&figure_data(study, figure, POINTS)?, baseline), csv)
        }
        _ => still(study, figure)?,
    };
    Some(FigureFile { name: figure_name(index, figure), svg: Some(drawing.file()), csv })
}

/// The numbers of a figure of bars, or of lines across a key.
pub(crate) fn bars_csv(study: &Study<'_>, figure: &Figure, across: &str) -> String {
    csv::grids(&bar_charts::charts(study, figure, across), across, &figure.lines)
}

fn tables<'s>(study: &'s Study<'_>) -> impl Iterator<Item = FigureFile> + 's {
    study.layout.tables.iter().enumerate().map(|(index, table)| {
        let grids = Grid::of(study, table);
        let name = slug(&crate::caption::table_name(table));
        let svg = table.heat_map.as_ref().map(|scale| heat_map::drawing(table, &grids, scale));
        let columns = table.columns.as_deref().unwrap_or("value");
        let csv = csv::grids(
            &grids,
            &short_names(&table.rows.iter().map(String::as_str).collect::<Vec<_>>()).join(", "),
            columns,
        );
        FigureFile { name: format!("table-{}-{name}", index + 1), svg, csv }
    })
}

fn over_time<'s>(study: &'s Study<'_>) -> impl Iterator<Item = FigureFile> + 's {
    let keys = study.varying_keys();
    let baseline = study.baseline.map_or("", |baseline| baseline.name);
    let cells =
        study.cells().into_iter().enumerate().take(MAX_CELLS).filter(|(_, cell)| !cell.runs[0].series.is_empty());
    cells.flat_map(move |(index, cell)| {
        let (drawn, all) = (charts(&cell, baseline, POINTS), charts(&cell, baseline, usize::MAX));
        let name = slug(&cell_name(&cell, &keys));
        let file = |number: usize| {
            let chart = &drawn.charts[number];
            let drawing = Drawing {
                title: format!("{}, {}", chart.title, cell_name(&cell, &keys)),
                legend: chart.lines.clone(),
                panels: vec![svg::time_chart(chart, &drawn.times)],
                ..Drawing::default()
            };
            let name = format!("over-time/cell-{index}-{name}-{}", slug(&chart.title));
            FigureFile { name, svg: Some(drawing.file()), csv: csv::charts(&all, number) }
        };
        (0..drawn.charts.len()).map(file).collect::<Vec<_>>()
    })
}
