//! Time series as one long table: cell, seed, subject, column, time_s, value.
//!
//! Long form is what plotting tools take, and runs with different columns share one file. Neighbouring rows with the
//! same subject and column are one vector. A column without samples is kept as one row without a time.

use crate::table::{Column, Table};
use crate::{Key, names};
use parquet::data_type::ByteArray;
use record::Series;
use std::collections::BTreeSet;

/// The rows of one run.
pub(crate) fn to_table((cell, seed): Key, run_series: &[Series]) -> Table {
    let (mut subjects, mut columns, mut times, mut values) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for series in run_series {
        let subject = ByteArray::from(series.subject.as_str());
        for (name, vector) in series.columns.iter().zip(&series.values) {
            let rows = vector.len().max(1);
            columns.resize(columns.len() + rows, Some(ByteArray::from(name.as_str())));
            subjects.resize(subjects.len() + rows, Some(subject.clone()));
            times.extend(series.time_s.iter().copied().map(Some));
            values.extend(vector.iter().copied().map(Some));
            times.resize(columns.len(), None);
            values.resize(columns.len(), None);
        }
    }
    let key = |value: u64| Column::Counts(vec![Some(value as i64); columns.len()]);
    let names_and_values = [
        ("cell", key(cell as u64)),
        ("seed", key(seed)),
        ("subject", Column::Texts(subjects)),
        ("column", Column::Texts(columns)),
        ("time_s", Column::Numbers(times)),
        ("value", Column::Numbers(values)),
    ];
    Table { columns: names_and_values.map(|(name, column)| (name.to_owned(), column)).into() }
}

/// The series of one run again.
pub(crate) fn from_table(table: &Table) -> Result<Vec<Series>, String> {
    let (subjects, columns) = (table.texts("subject")?, table.texts("column")?);
    let (times, values) = (table.numbers("time_s")?, table.numbers("value")?);
    let mut run_series: Vec<Series> = Vec::new();
    let mut start = 0;
    while start < table.rows() {
        let is_same_vector = |row: &usize| subjects[*row] == subjects[start] && columns[*row] == columns[start];
        let end = (start..table.rows()).take_while(is_same_vector).count() + start;
        let vector = |column: &[Option<f64>]| column[start..end].iter().copied().flatten().collect::<Vec<_>>();
        let (subject, name) = (text(&subjects[start])?, names::current(&text(&columns[start])?).into_owned());
        if run_series.last().is_none_or(|series| series.subject != subject) {
            run_series.push(Series { subject, columns: Vec::new(), time_s: vector(times), values: Vec::new() });
        }
        let series = run_series.last_mut().expect("one was pushed");
        series.columns.push(name);
        series.values.push(vector(values));
        start = end;
    }
    Ok(run_series)
}

pub(crate) fn text(bytes: &Option<ByteArray>) -> Result<String, String> {
    let bytes = bytes.as_ref().ok_or("a row without subject or column")?;
    bytes.as_utf8().map(str::to_owned).map_err(|error| error.to_string())
}

/// Refuses series that a table cannot hold: two of one subject, or columns whose length is not that of the instants.
pub(crate) fn check(run_series: &[Series]) -> Result<(), String> {
    let mut subjects = BTreeSet::new();
    for series in run_series {
        let is_consistent = series.columns.len() == series.values.len()
            && !series.columns.is_empty()
            && series.values.iter().all(|vector| vector.len() == series.time_s.len())
            && series.columns.windows(2).all(|pair| pair[0] != pair[1]);
        if !is_consistent || !subjects.insert(&series.subject) {
            return Err(format!("has an ill-formed series of {}", series.subject));
        }
    }
    Ok(())
}
