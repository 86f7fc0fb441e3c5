//! Histograms of delays as one long table: cell, seed, subject, column, max_ms, count. Neighbouring rows with the same
//! run, subject and column are one histogram.

use crate::Key;
use crate::series::text;
use crate::table::{Column, Table};
use parquet::data_type::ByteArray;
use record::{DelayHistogram, Run};

/// About so many rows make a row group.
const GROUP_ROWS: usize = 1 << 17;

/// The rows of all runs, in tables of about [`GROUP_ROWS`] rows.
pub(crate) fn to_tables<'r>(runs: &'r [(Key, &'r Run)]) -> impl Iterator<Item = Table> + 'r {
    let rows: usize = runs.iter().map(|(_, run)| rows(run)).sum();
    runs.chunks((runs.len() * GROUP_ROWS / rows.max(1)).max(1)).map(to_table)
}

fn rows(run: &Run) -> usize {
    run.histograms.iter().map(|histogram| histogram.buckets.len()).sum()
}

/// The rows of some runs.
pub(crate) fn to_table(runs: &[(Key, &Run)]) -> Table {
    let (mut cells, mut seeds, mut subjects, mut columns) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut values, mut counts) = (Vec::new(), Vec::new());
    for ((cell, seed), run) in runs {
        for DelayHistogram { subject, column, buckets } in &run.histograms {
            let length = cells.len() + buckets.len();
            cells.resize(length, Some(*cell as i64));
            seeds.resize(length, Some(*seed as i64)); // the column is declared unsigned, so all 64 bits are kept
            subjects.resize(length, Some(ByteArray::from(subject.as_str())));
            columns.resize(length, Some(ByteArray::from(column.as_str())));
            values.extend(buckets.iter().map(|(micros, _)| Some(f64::from(*micros) / 1e3)));
            counts.extend(buckets.iter().map(|(_, count)| Some(i64::from(*count))));
        }
    }
    let names_and_values = [
        ("cell", Column::Counts(cells)),
        ("seed", Column::Counts(seeds)),
        ("subject", Column::Texts(subjects)),
        ("column", Column::Texts(columns)),
        ("max_ms", Column::Numbers(values)),
        ("count", Column::Counts(counts)),
    ];
    Table { columns: names_and_values.map(|(name, column)| (name.to_owned(), column)).into() }
}

/// The histograms of a table again, each with its run's key.
pub(crate) fn from_table(table: &Table) -> Result<Vec<(Key, DelayHistogram)>, String> {
    let (cells, seeds, counts) = (table.counts("cell")?, table.counts("seed")?, table.counts("count")?);
    let (subjects, columns, values) = (table.texts("subject")?, table.texts("column")?, table.numbers("max_ms")?);
    let mut histograms: Vec<(Key, DelayHistogram)> = Vec::new();
    let is_same = |row: usize| {
        let other = row - 1;
        (cells[row], seeds[row]) == (cells[other], seeds[other])
            && (&subjects[row], &columns[row]) == (&subjects[other], &columns[other])
    };
    for row in 0..table.rows() {
        let bucket = bucket(values[row], counts[row]).ok_or_else(|| format!("row {} is no bucket", row + 1))?;
        match histograms.last_mut().filter(|_| row > 0 && is_same(row)) {
            Some((_, histogram)) => histogram.buckets.push(bucket),
            None => {
                let (Some(cell), Some(seed)) = (cells[row], seeds[row]) else {
                    return Err(format!("row {} has no cell or no seed", row + 1));
                };
                let (subject, column) = (text(&subjects[row])?, text(&columns[row])?);
                let histogram = DelayHistogram { subject, column, buckets: vec![bucket] };
                histograms.push(((cell as usize, seed as u64), histogram));
            }
        }
    }
    Ok(histograms)
}

/// The greatest value of a bucket, microseconds, and its count.
fn bucket(max_ms: Option<f64>, count: Option<i64>) -> Option<(u32, u32)> {
    let micros = (max_ms? * 1e3).round();
    let is_in_range = (0.0..=f64::from(u32::MAX)).contains(&micros);
    is_in_range.then_some(micros as u32).zip(u32::try_from(count?).ok())
}
