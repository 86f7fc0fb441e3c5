//! Two studies side by side in the terminal: each cell's value in both, and their ratio.

use crate::grid::{estimate, number};
use crate::number::{maybe, title};
use crate::study::{Cell, Study};
use crate::summary::cell_name;
use crate::terminal::{Line, footer, paragraph, ratio, table};
use crate::text::Style;
use std::collections::{BTreeMap, BTreeSet};

/// `a` beside `b`, cell by cell, in lines of at most `width` columns: the value of `a`'s layout, or goodput.
#[must_use]
pub fn compare_terminal<'a>(a: &Study<'a>, b: &Study<'a>, width: usize, color: bool) -> String {
    let value = a.layout.as_ref().map_or("goodput_mbps", |layout| layout.value.as_str());
    let mut out = paragraph(&format!("a: {}", a.title), width, Style::Bold, color);
    out += &paragraph(&footer(a), width, Style::Dim, color);
    out += &paragraph(&format!("b: {}", b.title), width, Style::Bold, color);
    out += &paragraph(&footer(b), width, Style::Dim, color);
    let varying: BTreeSet<&str> = a.varying().into_iter().chain(b.varying()).collect();
    let varying: Vec<&str> = varying.into_iter().collect();
    let by_parameters = |study: &Study<'a>| -> BTreeMap<_, Cell<'a>> {
        study.cells().into_iter().map(|cell| (cell.parameters, cell)).collect()
    };
    let (in_a, in_b) = (by_parameters(a), by_parameters(b));
    let lines: Vec<Line> = places(a, b)
        .iter()
        .map(|(cell, flow)| {
            let of = |study: &BTreeMap<_, Cell<'_>>| {
                estimate(study.get(cell.parameters)?, Some(flow), value).map(|estimate| estimate.mean)
            };
            let (one, other) = (of(&in_a), of(&in_b));
            let label = format!("{}, {flow}", cell_name(cell, &varying));
            Line { label, cells: vec![maybe(one), maybe(other), ratio(one, other)], style: Style::Plain }
        })
        .collect();
    let heads = ["a", "b", "a/b"].map(str::to_owned);
    out + "\n" + &table(&title(value), &heads, &lines, width, color)
}

/// Every cell and flow that either study has, in the order of `a`, then of `b`.
fn places<'a>(a: &Study<'a>, b: &Study<'a>) -> Vec<(Cell<'a>, &'a str)> {
    let value = a.layout.as_ref().map_or("goodput_mbps", |layout| layout.value.as_str());
    let chosen = a.layout.as_ref().and_then(|layout| layout.flow.as_deref());
    let mut seen = BTreeSet::new();
    let mut places = Vec::new();
    for cell in a.cells().into_iter().chain(b.cells()) {
        for flow in &cell.runs[0].flows {
            let wanted = chosen.is_none_or(|name| name == flow.name) && number(flow, value).is_some();
            if wanted && seen.insert((cell.parameters, flow.name.as_str())) {
                places.push((cell.clone(), flow.name.as_str()));
            }
        }
    }
    places
}
