//! Shares over time on the page, as SVG: stacked areas that fill the height.

use crate::axes::Titles;
use crate::chart::Line;
use crate::csv;
use crate::drawing::{Drawing, Look};
use crate::figure::title;
use crate::layout::Figure;
use crate::number::name_and_unit_in;
use crate::plane::{self, Axis, Plane};
use crate::shares::{SharePanel, panels};
use crate::study::Study;
use crate::svg::tick_text;
use strings::escape_html;

/// The figure and its numbers; none if it has no values.
pub(crate) fn drawing(study: &Study<'_>, figure: &Figure) -> Option<(Drawing, String)> {
    let (legend, panels) = panels(study, figure)?;
    let (name, _) = name_and_unit_in(&figure.scope, &figure.value);
    let heading = match figure.title.as_str() {
        "" => format!("{} of each flow, share over time", title(figure)),
        _ => title(figure),
    };
    let y_title = format!("share of {name}, %");
    let drawings = panels.iter().map(|panel| self::panel(panel, &y_title, &heading)).collect();
    let csv = csv::shares(&panels);
    Some((Drawing { title: heading, notes: Vec::new(), legend, look: Look::Bars, panels: drawings }, csv))
}

fn panel(panel: &SharePanel, y_title: &str, heading: &str) -> String {
    let label = if panel.title.is_empty() { heading.to_owned() } else { format!("{heading}, {}", panel.title) };
    let titles = Titles { caption: &panel.title, x: "time, s", y: y_title, label: &label };
    let end = panel.ends.last().copied().unwrap_or(panel.start + 1.0);
    let shares = [0.0, 25.0, 50.0, 75.0, 100.0].map(|share| (share, tick_text(share)));
    let (x, y) = (Axis::linear(panel.start, end), Axis::linear(0.0, 100.0).with_ticks(shares.to_vec()));
    plane::picture(&titles, &x, &y, |plane| {
        let mut below = vec![0.0; panel.ends.len()];
        let mut out = String::new();
        for line in &panel.lines {
            out += &area(plane, panel, line, &below);
            below
                .iter_mut()
                .zip(&line.values)
                .for_each(|(below, share)| *below += if share.is_finite() { *share } else { 0.0 });
        }
        out
    })
}

/// The area of a line above the shares `below`: a polygon for each time in which something was sent.
fn area(plane: &Plane<'_>, panel: &SharePanel, line: &Line, below: &[f64]) -> String {
    let starts = std::iter::once(&panel.start).chain(&panel.ends);
    let steps: Vec<Step> = starts
        .zip(&panel.ends)
        .zip(below.iter().zip(&line.values))
        .map(|((start, end), (below, share))| Step {
            left: plane.x(*start),
            right: plane.x(*end),
            bottom: plane.y(100.0 * below),
            top: share.is_finite().then(|| plane.y(100.0 * (below + share))),
        })
        .collect();
    let times = steps.chunk_by(|one, next| one.top.is_some() == next.top.is_some());
    let path: String = times.map(polygon).collect();
    let colour = line.colour;
    format!(
        "<path style=\"fill:var(--c{colour});stroke:none\" d=\"{path}\"><title>{}</title></path>",
        escape_html(&line.name)
    )
}

/// A step of an area; without a top where nothing was sent.
struct Step {
    left: f64,
    right: f64,
    bottom: f64,
    top: Option<f64>,
}

/// The outline of neighbouring steps; nothing of steps without a top.
fn polygon(steps: &[Step]) -> String {
    let upper = steps.iter().filter_map(|step| Some(format!("V{:.1}H{:.1}", step.top?, step.right)));
    let lower = steps.iter().rev().map(|step| format!("V{:.1}H{:.1}", step.bottom, step.left));
    match steps {
        [Step { left, bottom, top: Some(_), .. }, ..] => {
            format!("M{left:.1} {bottom:.1}{}{}Z", upper.collect::<String>(), lower.collect::<String>())
        }
        _ => String::new(),
    }
}
