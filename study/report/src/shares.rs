//! Figures of shares over time: what each flow or subflow of a run has of the sum of all that are shown.

use crate::chart::Line;
use crate::figure::{FigureData, Panel, figure_data};
use crate::layout::Figure;
use crate::study::Study;

/// The most steps of a chart.
const MAX_STEPS: usize = 160;

/// One chart: the shares in one cell.
pub(crate) struct SharePanel {
    /// The setting of the swept keys, or empty.
    pub(crate) title: String,
    /// The beginning of the first step, and the end of each, seconds.
    pub(crate) start: f64,
    pub(crate) ends: Vec<f64>,
    /// The shares, 0 to 1, each with as many values as there are steps; NaN where nothing was sent.
    pub(crate) lines: Vec<Line>,
}

/// The legend and the charts; none without values.
pub(crate) fn panels(study: &Study<'_>, figure: &Figure) -> Option<(Vec<Line>, Vec<SharePanel>)> {
    let FigureData { legend, panels, .. } = figure_data(study, figure, usize::MAX)?;
    Some((legend, panels.into_iter().map(|panel| shares(panel, MAX_STEPS)).collect()))
}

/// The shares of a panel's lines in at most `limit` steps of equally many samples, whose values are added up.
fn shares(panel: Panel, limit: usize) -> SharePanel {
    let Panel { span: (start, _), times, chart } = panel;
    let size = times.len().div_ceil(limit).max(1);
    let ends: Vec<f64> = times.chunks(size).filter_map(|step| step.last().copied()).collect();
    let own = || chart.lines.iter().filter(|line| !line.baseline);
    let finite = |values: &[f64]| values.iter().filter(|value| value.is_finite()).sum::<f64>();
    let amounts: Vec<Vec<f64>> = own().map(|line| line.values.chunks(size).map(finite).collect()).collect();
    let sum = |step: usize| amounts.iter().map(|line| line[step]).sum::<f64>();
    let share = |amount: f64, sum: f64| if sum > 0.0 { amount / sum } else { f64::NAN };
    let values = |line: &Vec<f64>| line.iter().enumerate().map(|(step, amount)| share(*amount, sum(step))).collect();
    let lines = own().zip(&amounts).map(|(line, amounts)| Line { values: values(amounts), ..line.clone() }).collect();
    SharePanel { title: chart.title, start, ends, lines }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Chart;

    #[test]
    fn shares_are_of_the_sum_of_each_step_and_add_up_to_one() {
        let line = |name: &str, values: &[f64]| Line { name: name.into(), values: values.to_vec(), ..Line::default() };
        let lines = vec![
            line("wifi", &[1.0, 5.0, 4.0, f64::NAN, 0.0, 2.0]),
            Line { baseline: true, ..line("wifi", &[9.0; 6]) },
            line("lte", &[3.0, 3.0, 4.0, 0.0, 0.0, 0.0]),
        ];
        let chart = Chart { title: "loss 1%".into(), unit: String::new(), kind: "", max: 9.0, lines };
        let panel = Panel { span: (0.5, 3.5), times: vec![1.0, 1.5, 2.0, 2.5, 3.0, 3.5], chart };
        let SharePanel { title, start, ends, lines } = shares(panel, 3);
        assert_eq!((title.as_str(), start, ends.as_slice()), ("loss 1%", 0.5, &[1.5, 2.5, 3.5][..]));
        assert_eq!(
            lines.iter().map(|line| line.values.as_slice()).collect::<Vec<_>>(),
            [[0.5, 0.5, 1.0], [0.5, 0.5, 0.0]]
        );
        let nothing = Panel {
            span: (0.0, 1.0),
            times: vec![1.0],
            chart: Chart {
                title: String::new(),
                unit: String::new(),
                kind: "",
                max: 0.0,
                lines: vec![line("a", &[0.0])],
            },
        };
        assert!(shares(nothing, 3).lines[0].values[0].is_nan());
    }
}
