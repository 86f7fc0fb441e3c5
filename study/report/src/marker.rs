//! Markers of points, in the order of `colour::MARKERS`, which tell lines of one colour apart.

use crate::chart::Line;
use std::f64::consts::FRAC_1_SQRT_2;

/// The corners of a plus sign.
const PLUS: [(f64, f64); 12] = [
    (-0.4, -1.2),
    (0.4, -1.2),
    (0.4, -0.4),
    (1.2, -0.4),
    (1.2, 0.4),
    (0.4, 0.4),
    (0.4, 1.2),
    (-0.4, 1.2),
    (-0.4, 0.4),
    (-1.2, 0.4),
    (-1.2, -0.4),
    (-0.4, -0.4),
];

/// The marker of a line at a point of a picture.
pub(crate) fn marker(line: &Line, x: f64, y: f64) -> String {
    let r = 2.6;
    let polygon = |points: &[(f64, f64)]| {
        let points = points.iter().map(|(dx, dy)| format!("{:.1} {:.1}", x + r * dx, y + r * dy));
        format!("M{}Z", points.collect::<Vec<_>>().join("L"))
    };
    let shape = match line.dash {
        0 => format!("M{:.1} {y:.1}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z", x - r, d = 2.0 * r),
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.3), (1.1, 0.8), (-1.1, 0.8)]),
        3 => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        4 => polygon(&[(0.0, 1.3), (1.1, -0.8), (-1.1, -0.8)]),
        5 => polygon(&PLUS),
        _ => polygon(&PLUS.map(|(dx, dy)| (FRAC_1_SQRT_2 * (dx - dy), FRAC_1_SQRT_2 * (dx + dy)))),
    };
    let colour = line.colour;
    format!("<path class=\"m\" style=\"fill:var(--c{colour});stroke:var(--c{colour})\" d=\"{shape}\"/>")
}
