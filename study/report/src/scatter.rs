//! Scatter plots of one value against another: for each cell the mean of its runs, and the ellipse of one standard
//! deviation.

use crate::chart::Line;
use crate::figure::legend;
use crate::grid::{other_keys, unique};
use crate::layout::Figure;
use crate::study::{Study, SweepCell};
use crate::value::sample;

/// A point (x, y).
pub(crate) type Point = (f64, f64);

/// One chart: a setting of the keys that the figure does not name.
pub(crate) struct ScatterPanel {
    /// The setting, or empty.
    pub(crate) title: String,
    pub(crate) clouds: Vec<Cloud>,
}

/// The runs of one cell.
pub(crate) struct Cloud {
    /// Its name and look.
    pub(crate) line: Line,
    /// The values of each run.
    pub(crate) points: Vec<Point>,
    pub(crate) mean: Point,
    /// None of a single run.
    pub(crate) covariance: Option<Covariance>,
}

/// The sample covariance of points, divided by their number less one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Covariance {
    pub(crate) xx: f64,
    pub(crate) xy: f64,
    pub(crate) yy: f64,
}

impl Covariance {
    /// Two points of the ellipse of one standard deviation, from its centre: the images of (1, 0) and (0, 1) under the
    /// lower Cholesky factor of the matrix, which maps the unit circle to the ellipse.
    pub(crate) fn half_axes(self) -> [Point; 2] {
        let deviation = self.xx.sqrt();
        if deviation == 0.0 {
            return [(0.0, 0.0), (0.0, self.yy.sqrt())];
        }
        let slope = self.xy / deviation;
        [(deviation, slope), (0.0, (self.yy - slope * slope).max(0.0).sqrt())]
    }
}

impl Cloud {
    /// The cloud of points with a mean; none without points.
    fn of(line: &Line, points: Vec<Point>) -> Option<Self> {
        let count = points.len() as f64;
        let mean_of = |number: &dyn Fn(&Point) -> f64| points.iter().map(number).sum::<f64>() / count;
        let mean = (mean_of(&|point| point.0), mean_of(&|point| point.1));
        let covariance = (points.len() > 1).then(|| {
            let sum = |product: &dyn Fn(f64, f64) -> f64| {
                points.iter().map(|(x, y)| product(x - mean.0, y - mean.1)).sum::<f64>() / (count - 1.0)
            };
            Covariance { xx: sum(&|x, _| x * x), xy: sum(&|x, y| x * y), yy: sum(&|_, y| y * y) }
        });
        (!points.is_empty()).then(|| Self { line: line.clone(), points, mean, covariance })
    }
}

/// The charts that have points: `against` along the horizontal axis, the figure's value along the vertical one.
pub(crate) fn panels(study: &Study<'_>, figure: &Figure, against: &str) -> Vec<ScatterPanel> {
    let cells = study.cells_in_scope(&figure.scope, &[&figure.lines]);
    let keys = other_keys(&cells, &[&figure.lines]);
    let cells: Vec<&SweepCell<'_>> = cells.iter().map(|(_, cell)| cell).collect();
    let legend = legend(study, &figure.lines, &cells);
    let panel = |title: String| {
        let cloud = |line: &Line| {
            let is_of_line =
                |cell: &&&SweepCell<'_>| cell.heading(&keys) == title && cell.parameter(&figure.lines) == line.name;
            let cell = cells.iter().find(is_of_line)?;
            let [x, y] = [against, &figure.value].map(|value| sample(cell, value, &figure.scope));
            let pairs = x?.points.into_iter().zip(y?.points).map(|((_, x), (_, y))| (x, y));
            Cloud::of(line, pairs.filter(|(x, y)| x.is_finite() && y.is_finite()).collect())
        };
        let clouds: Vec<Cloud> = legend.iter().filter_map(cloud).collect();
        (!clouds.is_empty()).then_some(ScatterPanel { title, clouds })
    };
    unique(cells.iter().map(|cell| cell.heading(&keys))).into_iter().filter_map(panel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean (3, 4); deviations (-2, -1), (0, 2), (2, -1) and (0, 0): by hand xx = 8/3, yy = 2, xy = 0.
    const UPRIGHT: [Point; 4] = [(1.0, 3.0), (3.0, 6.0), (5.0, 3.0), (3.0, 4.0)];

    fn cloud(points: &[Point]) -> Cloud {
        Cloud::of(&Line::default(), points.to_vec()).unwrap()
    }

    #[test]
    fn mean_and_covariance_are_those_worked_out_by_hand() {
        let upright = cloud(&UPRIGHT);
        assert_eq!(upright.mean, (3.0, 4.0));
        assert_eq!(upright.covariance, Some(Covariance { xx: 8.0 / 3.0, xy: 0.0, yy: 2.0 }));
        // (-1, -2), (0, 0), (1, 2): on a line.
        let line = cloud(&[(0.0, 0.0), (1.0, 2.0), (2.0, 4.0)]);
        assert_eq!(line.covariance, Some(Covariance { xx: 1.0, xy: 2.0, yy: 4.0 }));
        assert_eq!(line.covariance.unwrap().half_axes(), [(1.0, 2.0), (0.0, 0.0)], "the ellipse is a line");
        assert_eq!(cloud(&[(1.0, 2.0)]).covariance, None, "one run");
        assert!(Cloud::of(&Line::default(), Vec::new()).is_none());
    }

    #[test]
    fn the_ellipse_is_where_the_mahalanobis_distance_is_one() {
        for covariance in [
            Covariance { xx: 8.0 / 3.0, xy: 0.0, yy: 2.0 },
            Covariance { xx: 4.0, xy: 1.5, yy: 1.0 },
            Covariance { xx: 0.25, xy: -0.9, yy: 9.0 },
        ] {
            let Covariance { xx, xy, yy } = covariance;
            let [one, other] = covariance.half_axes();
            let determinant = xx * yy - xy * xy;
            for (cos, sin) in [(1.0, 0.0), (0.0, 1.0), (0.6, 0.8), (-0.8, 0.6)] {
                let (x, y) = (cos * one.0 + sin * other.0, cos * one.1 + sin * other.1);
                let distance = (yy * x * x - 2.0 * xy * x * y + xx * y * y) / determinant;
                assert!((distance - 1.0).abs() < 1e-12, "{covariance:?}: {distance}");
            }
            // The ellipse is as wide and as high as two standard deviations.
            assert!((one.0 - xx.sqrt()).abs() < 1e-12);
            assert!((one.1 * one.1 + other.1 * other.1 - yy).abs() < 1e-12);
        }
    }
}
