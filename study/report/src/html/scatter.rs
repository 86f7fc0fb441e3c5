//! Scatter plots on the page, as SVG: one value against another, with ellipses.

use crate::axes::{Titles, with_unit};
use crate::csv;
use crate::drawing::{Drawing, Look};
use crate::figure::{title, unique_lines};
use crate::layout::Figure;
use crate::marker::marker;
use crate::number::{format_number, name_and_unit_in};
use crate::plane::{self, Axis, Plane};
use crate::scatter::{Cloud, Point, ScatterPanel, panels};
use crate::study::Study;
use strings::escape_html;

/// The control points of a quarter of a circle as a Bézier curve lie at this share of the radius.
const QUARTER: f64 = 0.552_284_75;

/// The figure and its numbers; none if it has no values.
pub(crate) fn drawing(study: &Study<'_>, figure: &Figure, against: &str) -> Option<(Drawing, String)> {
    let panels = panels(study, figure, against);
    let clouds = || panels.iter().flat_map(|panel| &panel.clouds);
    let legend = unique_lines(clouds().map(|cloud| &cloud.line));
    let [(x_name, x_unit), (y_name, y_unit)] =
        [against, &figure.value].map(|value| name_and_unit_in(&figure.scope, value));
    let is_reversed = is_time(x_unit);
    let axis = |number: fn(&Point) -> f64| -> Option<Axis> {
        let ends = || clouds().flat_map(extent).map(move |point| number(&point));
        Some(Axis::linear(ends().reduce(f64::min)?, ends().reduce(f64::max)?))
    };
    let (x, y) = (axis(|point| point.0)?, axis(|point| point.1)?);
    let x = if is_reversed { x.reversed() } else { x };
    let titles = [with_unit(&x_name, x_unit), with_unit(&y_name, y_unit)];
    let heading = match figure.title.as_str() {
        "" => format!("{} over {x_name}", title(figure)),
        _ => title(figure),
    };
    let chart = Chart { x, y, titles, heading: &heading, is_reversed };
    let mut notes = Vec::new();
    if clouds().any(|cloud| cloud.covariance.is_some()) {
        notes.push(
            "Markers: means over the runs, which are dots. Ellipses: one standard deviation of the runs.".to_owned(),
        );
    }
    if is_reversed {
        notes.push(format!("The axis of {x_name} is reversed, so that less is further right."));
    }
    let drawings = panels.iter().map(|panel| chart.panel(panel)).collect();
    let drawing = Drawing { title: heading.clone(), notes, legend, look: Look::Markers, panels: drawings };
    Some((drawing, csv::scatter(&panels, &figure.lines, [against, &figure.value])))
}

/// Whether a value is a time, of which less is better.
fn is_time(unit: &str) -> bool {
    ["ms", "s", "µs"].contains(&unit)
}

/// The points that a chart has to have room for: the runs, and the ends of the ellipse.
fn extent(cloud: &Cloud) -> Vec<Point> {
    let (x, y) = cloud.mean;
    let ends = cloud.covariance.map_or(Vec::new(), |covariance| {
        let (dx, dy) = (covariance.xx.sqrt(), covariance.yy.sqrt());
        vec![(x - dx, y - dy), (x + dx, y + dy)]
    });
    cloud.points.iter().copied().chain(ends).collect()
}

/// The common parts of a figure's panels.
struct Chart<'f> {
    x: Axis,
    y: Axis,
    titles: [String; 2],
    heading: &'f str,
    is_reversed: bool,
}

impl Chart<'_> {
    fn panel(&self, panel: &ScatterPanel) -> String {
        let label =
            if panel.title.is_empty() { self.heading.to_owned() } else { format!("{}, {}", self.heading, panel.title) };
        let arrow = if self.is_reversed { format!("← {}", self.titles[0]) } else { self.titles[0].clone() };
        let titles = Titles { caption: &panel.title, x: &arrow, y: &self.titles[1], label: &label };
        plane::picture(&titles, &self.x, &self.y, |plane| {
            let ellipses = panel.clouds.iter().map(|cloud| ellipse(plane, cloud)).collect::<String>();
            ellipses + &panel.clouds.iter().map(|cloud| self.cloud(plane, cloud)).collect::<String>()
        })
    }

    /// The runs and their mean.
    fn cloud(&self, plane: &Plane<'_>, cloud: &Cloud) -> String {
        let Cloud { line, points, mean, .. } = cloud;
        let dot = |(x, y): &Point| {
            format!(
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\".9\" style=\"fill:var(--c{})\"/>",
                plane.x(*x),
                plane.y(*y),
                line.colour
            )
        };
        let dots = if points.len() > 1 { points.iter().map(dot).collect() } else { String::new() };
        let text = format!(
            "{}: {} {}, {} {}",
            line.name,
            self.titles[1],
            format_number(mean.1),
            self.titles[0],
            format_number(mean.0)
        );
        let mark = marker(line, plane.x(mean.0), plane.y(mean.1));
        format!("<g><title>{}</title>{dots}{mark}</g>", escape_html(&text))
    }
}

/// The ellipse of one standard deviation: the image of a circle, as four Bézier curves.
fn ellipse(plane: &Plane<'_>, Cloud { line, mean, covariance, .. }: &Cloud) -> String {
    let Some(covariance) = covariance else { return String::new() };
    let [one, other] = covariance.half_axes();
    let at = |u: f64, v: f64| {
        let (x, y) = (mean.0 + u * one.0 + v * other.0, mean.1 + u * one.1 + v * other.1);
        format!("{:.2} {:.2}", plane.x(x), plane.y(y))
    };
    let k = QUARTER;
    let quarters = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)];
    let quarter = |(u, v): (f64, f64)| {
        // The next quarter point is this one turned left.
        let (next_u, next_v) = (-v, u);
        format!("C{} {} {}", at(u + k * next_u, v + k * next_v), at(next_u + k * u, next_v + k * v), at(next_u, next_v))
    };
    let path: String = quarters.into_iter().map(quarter).collect();
    format!(
        "<path class=\"e\" style=\"stroke:var(--c{colour});stroke-width:.8;fill:var(--c{colour});fill-opacity:.12\" \
         d=\"M{}{path}Z\"/>",
        at(1.0, 0.0),
        colour = line.colour
    )
}
