//! Figures that are drawings only: all but lines over time, which are also interactive.

use super::{across, bars, distribution, samples, scatter, shares};
use crate::drawing::Drawing;
use crate::export::bars_csv;
use crate::layout::{Figure, FigureKind};
use crate::study::Study;
use crate::{csv, distribution as curves};

/// The drawing of a figure and its numbers as CSV; none if it has no values, or is one of lines over time.
pub(crate) fn still(study: &Study<'_>, figure: &Figure) -> Option<(Drawing, String)> {
    match figure.kind() {
        FigureKind::Lines => None,
        FigureKind::Bars(across) => Some((bars::drawing(study, figure, across)?, bars_csv(study, figure, across))),
        FigureKind::Across(key) => across::drawing(study, figure, key),
        FigureKind::Samples => samples::drawing(study, figure),
        FigureKind::Distribution => {
            let csv = csv::distribution(&curves::curves(study, figure), &figure.value);
            Some((distribution::drawing(study, figure)?, csv))
        }
        FigureKind::Scatter(against) => scatter::drawing(study, figure, against),
        FigureKind::Stacked => shares::drawing(study, figure),
    }
}
