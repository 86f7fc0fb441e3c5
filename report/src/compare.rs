//! Two studies side by side in the terminal: each cell's value in both, and how far the second is from the first.

use crate::course;
use crate::number::{NONE, maybe, percent, relative_error, title};
use crate::study::{Cell, Study};
use crate::subject::Subject;
use crate::summary::cell_name;
use crate::terminal::{Line, footer, paragraph, table as lay_out};
use crate::text::Style;
use crate::value::{estimate, is_of_run, value};
use scenario::Scope;
use std::collections::{BTreeMap, BTreeSet};

/// What is compared where no layout says it.
const USUAL: [&str; 3] = ["goodput_mbps", "rtt_ms.mean", "retransmitted_packets"];

/// `a` beside `b`, cell by cell, in lines of at most `width` columns: the values of `a`'s first table, or without one goodput,
/// mean RTT and retransmissions.
#[must_use]
pub fn compare_terminal<'a>(a: &Study<'a>, b: &Study<'a>, width: usize, color: bool) -> String {
    let mut out = String::new();
    for (name, study) in [("a", a), ("b", b)] {
        out += &paragraph(&format!("{name}: {}", study.title), width, Style::Bold, color);
        out += &paragraph(&format!("{}, digest {}", footer(study), study.digest), width, Style::Dim, color);
    }
    let [in_a, in_b] = [a, b].map(by_parameters);
    if !in_a.keys().any(|parameters| in_b.contains_key(parameters)) {
        out += &("\n".to_owned()
            + &paragraph("No cell of one has the parameters of a cell of the other.", width, Style::Plain, color));
    }
    let table = a.layout.tables.first();
    let values = table.iter().flat_map(|table| &table.values).map(|column| column.value.as_str());
    let values: Vec<&str> = values.filter(|value| !course::NAMES.contains(value)).collect();
    let values = if values.is_empty() { USUAL.to_vec() } else { values };
    for value in values {
        let places = places(a, b, value);
        let names = labels(a, b, &places);
        let line = |((cell, flow), label): (&Place<'_>, String)| {
            let of = |study: &BTreeMap<_, Cell<'_>>| {
                estimate(study.get(cell.parameters)?, value, &of_flow(flow)).map(|estimate| estimate.mean)
            };
            let (one, other) = (of(&in_a), of(&in_b));
            let change = one.zip(other).and_then(|(one, other)| relative_error(other, one));
            let change = change.map_or_else(|| NONE.to_owned(), percent);
            Line { label, cells: vec![maybe(one), maybe(other), change], style: Style::Plain }
        };
        let lines: Vec<Line> = places.iter().zip(names).map(line).collect();
        out += &("\n".to_owned()
            + &lay_out(&title(value), &["a", "b", "change"].map(str::to_owned), &lines, width, color));
    }
    out
}

fn of_flow(name: &str) -> Scope {
    Scope { flow: Some(name.to_owned()), ..Scope::default() }
}

fn by_parameters<'a>(study: &Study<'a>) -> BTreeMap<&'a BTreeMap<String, String>, Cell<'a>> {
    study.cells().into_iter().map(|cell| (cell.parameters, cell)).collect()
}

/// A cell and the name of a flow or subflow.
type Place<'a> = (Cell<'a>, String);

/// Every cell and flow that either study has, in the order of `a`, then of `b`.
fn places<'a>(a: &Study<'a>, b: &Study<'a>, field: &str) -> Vec<Place<'a>> {
    let chosen = a.layout.tables.first().and_then(|table| table.scope.flow.as_deref());
    let mut seen = BTreeSet::new();
    let mut places = Vec::new();
    for cell in a.cells().into_iter().chain(b.cells()) {
        // A value of the run as a whole stands with its first flow.
        let of_run = is_of_run(field);
        for subject in Subject::all(cell.runs[0]).take(if of_run { 1 } else { usize::MAX }) {
            let flow = subject.name();
            let has = || value(cell.runs[0], field, &of_flow(&flow)).is_some();
            let wanted = of_run || chosen.is_none_or(|name| name == flow) && has();
            if wanted && seen.insert((cell.parameters, flow.clone())) {
                places.push((cell.clone(), flow));
            }
        }
    }
    places
}

/// What tells the places apart: the parameters that vary, and the flow where there are several.
fn labels(a: &Study<'_>, b: &Study<'_>, places: &[Place<'_>]) -> Vec<String> {
    let varying: BTreeSet<&str> = a.varying().into_iter().chain(b.varying()).collect();
    let varying: Vec<&str> = varying.into_iter().collect();
    let several = places.iter().any(|(_, flow)| *flow != places[0].1);
    let label = |(cell, flow): &Place<'_>| match (varying.is_empty(), several) {
        (true, _) => flow.clone(),
        (false, false) => cell_name(cell, &varying),
        (false, true) => format!("{}, {flow}", cell_name(cell, &varying)),
    };
    places.iter().map(label).collect()
}
