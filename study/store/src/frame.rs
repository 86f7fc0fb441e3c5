//! The tables of a study in memory, for data frames: each with the swept keys as columns, so that none needs a join.
//!
//! Columns begin with the swept keys, `cell` and `seed`; what follows is a table's own, with the names and units of the
//! results folder. Series are tidy: one row a sample, one column a quantity.

use crate::rows::Writer;
use crate::table::Column;
use crate::{Key, table::Table};
use record::{Columns, DelayHistogram, Run};
use std::collections::BTreeMap;

/// Named columns of one length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    /// The columns in their order.
    pub columns: Vec<(String, Values)>,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers, none of which is missing.
    Counts(Vec<u64>),
    /// Numbers; NaN for a missing value.
    Numbers(Vec<f64>),
    /// Texts of which many rows have the same.
    Texts {
        /// The different texts, in the order of their first row.
        texts: Vec<String>,
        /// For each row the index of its text; none for a missing value.
        codes: Vec<Option<u32>>,
    },
}

/// The runs of a study, by cell and seed.
pub type Runs<'a> = &'a [(Key, Run)];

/// One row a run.
#[must_use]
pub fn runs(runs: Runs<'_>) -> Frame {
    records(runs, std::slice::from_ref)
}

/// One row a flow of a run.
#[must_use]
pub fn flows(runs: Runs<'_>) -> Frame {
    records(runs, |run| &run.flows)
}

/// One row a subflow of a run.
#[must_use]
pub fn subflows(runs: Runs<'_>) -> Frame {
    records(runs, |run| &run.subflows)
}

/// One row a path of a run.
#[must_use]
pub fn paths(runs: Runs<'_>) -> Frame {
    records(runs, |run| &run.paths)
}

/// One row a run with a tunnel.
#[must_use]
pub fn tunnels(runs: Runs<'_>) -> Frame {
    records(runs, |run| run.tunnel.as_slice())
}

/// One row a program whose CPU time was measured in a run on a kernel.
#[must_use]
pub fn cpu(runs: Runs<'_>) -> Frame {
    records(runs, |run| &run.cpu)
}

/// One row a bucket of the histogram of a delay, of the flow, subflow or tunnel that `subject` names.
#[must_use]
pub fn histograms(runs: Runs<'_>) -> Frame {
    let lengths = runs.iter().map(|(_, run)| run.histograms.iter().map(|histogram| histogram.buckets.len()).sum());
    let mut frame = keys(runs, &lengths.collect::<Vec<_>>());
    let all = || runs.iter().flat_map(|(_, run)| &run.histograms);
    let repeated = |text: fn(&DelayHistogram) -> &str| {
        texts(all().flat_map(|histogram| std::iter::repeat_n(Some(text(histogram)), histogram.buckets.len())))
    };
    frame.push("subject", repeated(|histogram| &histogram.subject));
    frame.push("column", repeated(|histogram| &histogram.column));
    let buckets = || all().flat_map(|histogram| &histogram.buckets);
    frame.push("max_ms", Values::Numbers(buckets().map(|(micros, _)| f64::from(*micros) / 1e3).collect()));
    frame.push("count", Values::Counts(buckets().map(|(_, count)| u64::from(*count)).collect()));
    frame
}

/// One row a sample of the series of a flow, a subflow or a path, named by `subject`; one column a quantity, without a
/// value where the subject has none.
#[must_use]
pub fn series(runs: Runs<'_>) -> Frame {
    let lengths = runs.iter().map(|(_, run)| run.series.iter().map(|series| series.time_s.len()).sum());
    let mut frame = keys(runs, &lengths.collect::<Vec<_>>());
    let all = || runs.iter().flat_map(|(_, run)| &run.series);
    let subjects = all().flat_map(|series| std::iter::repeat_n(Some(series.subject.as_str()), series.time_s.len()));
    frame.push("subject", texts(subjects));
    frame.push("time_s", Values::Numbers(all().flat_map(|series| series.time_s.iter().copied()).collect()));
    let mut names: Vec<&str> = Vec::new();
    for name in all().flat_map(|series| &series.columns) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    for name in names {
        let values = all().flat_map(|series| {
            let vector = series.columns.iter().position(|column| column == name).map(|index| &series.values[index]);
            (0..series.time_s.len()).map(move |row| vector.map_or(f64::NAN, |vector| vector[row]))
        });
        frame.push(name, Values::Numbers(values.collect()));
    }
    frame
}

/// A table of the records that `children` finds in each run.
fn records<R: Columns>(runs: Runs<'_>, children: impl Fn(&Run) -> &[R]) -> Frame {
    let mut writer = Writer::default();
    writer.push((0, 0), &R::default()); // makes the columns, rows or not
    writer.table = writer.table.without_rows();
    for (key, run) in runs {
        children(run).iter().for_each(|child| writer.push(*key, child));
    }
    let counts: Vec<usize> = runs.iter().map(|(_, run)| children(run).len()).collect();
    let mut frame = keys(runs, &counts);
    let Table { columns } = writer.table;
    for (name, column) in columns.into_iter().filter(|(name, _)| !["cell", "seed"].contains(&name.as_str())) {
        frame.push(&name, values(column));
    }
    frame
}

/// The columns with which every table begins, of so many rows for each run: the swept keys, `cell`, `seed`.
fn keys(runs: Runs<'_>, rows: &[usize]) -> Frame {
    let mut frame = Frame::default();
    let repeated = || runs.iter().zip(rows).flat_map(|(run, rows)| std::iter::repeat_n(run, *rows));
    let mut names: Vec<&String> = runs.iter().flat_map(|(_, run)| run.parameters.keys()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let all = || runs.iter().map(|(_, run)| run.parameters.get(name).map(String::as_str));
        let of_rows = repeated().map(|(_, run)| run.parameters.get(name).map(String::as_str));
        frame.push(name, parameter(all(), of_rows));
    }
    frame.push("cell", Values::Counts(repeated().map(|((cell, _), _)| *cell as u64).collect()));
    frame.push("seed", Values::Counts(repeated().map(|((_, seed), _)| *seed).collect()));
    frame
}

/// The column of a swept key: numbers, if each of its values in `all` runs is one.
fn parameter<'a>(
    mut all: impl Iterator<Item = Option<&'a str>>,
    of_rows: impl Iterator<Item = Option<&'a str>>,
) -> Values {
    let number = |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '-').then(|| text.parse().ok())?;
    match all.all(|text| text.is_none_or(|text| number(text).is_some())) {
        true => Values::Numbers(of_rows.map(|text| text.and_then(number).unwrap_or(f64::NAN)).collect()),
        false => texts(of_rows),
    }
}

fn values(column: Column) -> Values {
    match column {
        Column::Counts(values) => match values.iter().copied().collect::<Option<Vec<_>>>() {
            Some(all) => Values::Counts(all.into_iter().map(|value| value as u64).collect()),
            None => Values::Numbers(
                values.into_iter().map(|value| value.map_or(f64::NAN, |value| value as u64 as f64)).collect(),
            ),
        },
        Column::Numbers(values) => Values::Numbers(values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect()),
        Column::Texts(values) => texts(values.iter().map(|text| text.as_ref().and_then(|text| text.as_utf8().ok()))),
    }
}

pub(crate) fn texts<'a>(rows: impl Iterator<Item = Option<&'a str>>) -> Values {
    let (mut texts, mut known) = (Vec::new(), BTreeMap::new());
    let mut code = |text: &'a str| {
        *known.entry(text).or_insert_with(|| {
            texts.push(text.to_owned());
            texts.len() as u32 - 1
        })
    };
    let codes = rows.map(|text| text.map(&mut code)).collect();
    Values::Texts { texts, codes }
}

impl Frame {
    fn push(&mut self, name: &str, values: Values) {
        self.columns.push((name.to_owned(), values));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Flow, Series};

    fn study() -> Vec<(Key, Run)> {
        let run = |cell, delay: &str, congestion: &str, seed| {
            let parameters = [("delay", delay), ("congestion", congestion), ("count", &delay[..1])];
            let series = |subject: &str, column: &str, values: &[f64]| Series {
                subject: subject.to_owned(),
                columns: vec![column.to_owned()],
                time_s: (1..=values.len()).map(|second| second as f64).collect(),
                values: vec![values.to_vec()],
            };
            let run = Run {
                parameters: parameters.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
                seed,
                flows: vec![Flow { name: "a".into(), ..Flow::default() }, Flow { name: "b".into(), ..Flow::default() }],
                series: vec![series("flow a", "cwnd", &[3.0, 4.0]), series("path p", "queue", &[5.0])],
                ..Run::default()
            };
            ((cell, seed), run)
        };
        vec![run(0, "10ms", "reno", 1), run(0, "10ms", "reno", 2), run(1, "20ms", "bbr", 1)]
    }

    fn column<'f>(frame: &'f Frame, name: &str) -> &'f Values {
        &frame.columns.iter().find(|(column, _)| column == name).unwrap().1
    }

    #[test]
    fn every_table_has_the_swept_keys_beside_each_row() {
        let runs = study();
        let texts = |texts: [&str; 2], codes: &[u32]| Values::Texts {
            texts: texts.map(str::to_owned).to_vec(),
            codes: codes.iter().copied().map(Some).collect(),
        };
        assert_eq!(column(&self::runs(&runs), "delay"), &texts(["10ms", "20ms"], &[0, 0, 1]));
        let flows = flows(&runs);
        assert_eq!(column(&flows, "congestion"), &texts(["reno", "bbr"], &[0, 0, 0, 0, 1, 1]));
        assert_eq!(column(&flows, "flow"), &texts(["a", "b"], &[0, 1, 0, 1, 0, 1]));
        assert_eq!(column(&flows, "seed"), &Values::Counts(vec![1, 1, 2, 2, 1, 1]));
        assert_eq!(column(&flows, "count"), &Values::Numbers(vec![1.0, 1.0, 1.0, 1.0, 2.0, 2.0]), "all are numbers");
        let none = Values::Texts { texts: Vec::new(), codes: Vec::new() };
        assert_eq!(column(&tunnels(&runs), "delay"), &none, "a column without rows is still there");
    }

    #[test]
    fn histograms_have_a_row_a_bucket() {
        let mut runs = study();
        let histogram = |column: &str, buckets: &[(u32, u32)]| DelayHistogram {
            subject: "flow a".to_owned(),
            column: column.to_owned(),
            buckets: buckets.to_vec(),
        };
        runs[1].1.histograms = vec![histogram("rtt_ms", &[(20_000, 3), (40_500, 1)]), histogram("srtt_ms", &[(9, 4)])];
        let histograms = histograms(&runs);
        assert_eq!(column(&histograms, "seed"), &Values::Counts(vec![2, 2, 2]));
        assert_eq!(column(&histograms, "max_ms"), &Values::Numbers(vec![20.0, 40.5, 0.009]));
        assert_eq!(
            histograms.columns[histograms.columns.len() - 1],
            ("count".to_owned(), Values::Counts(vec![3, 1, 4]))
        );
        let Values::Texts { texts, codes } = column(&histograms, "column") else { panic!("texts") };
        assert_eq!(
            (texts.as_slice(), codes.as_slice()),
            (&["rtt_ms".into(), "srtt_ms".into()][..], &[Some(0), Some(0), Some(1)][..])
        );
    }

    #[test]
    fn series_have_a_row_a_sample_and_a_column_a_quantity() {
        let series = series(&study()[..1]);
        let numbers = |name| match column(&series, name) {
            Values::Numbers(numbers) => numbers.iter().map(f64::to_string).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(numbers("time_s"), ["1", "2", "1"]);
        assert_eq!(numbers("cwnd"), ["3", "4", "NaN"]);
        assert_eq!(numbers("queue"), ["NaN", "NaN", "5"]);
        let subjects = vec!["flow a".to_owned(), "path p".to_owned()];
        let expected = Values::Texts { texts: subjects, codes: vec![Some(0), Some(0), Some(1)] };
        assert_eq!(column(&series, "subject"), &expected);
    }
}
