//! All runs of a folder, to Parquet and back.

use crate::rows::{Reader, Writer};
use crate::table::{self, Column, Table};
use crate::{Error, Key, histograms, series};
use parquet::data_type::ByteArray;
use record::{Columns, Flow, Run};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Prefix of the columns that hold a run's parameters.
const PARAMETER: &str = "parameter.";
/// The file of the histograms.
const HISTOGRAMS: &str = "histograms.parquet";

/// Writes all tables of runs sorted by key.
pub(crate) fn write(dir: &Path, runs: &[(Key, &Run)]) -> Result<(), Error> {
    write_runs(&dir.join("runs.parquet"), runs)?;
    write_children(&dir.join("flows.parquet"), runs, |run| &run.flows)?;
    write_children(&dir.join("subflows.parquet"), runs, |run| &run.subflows)?;
    write_children(&dir.join("paths.parquet"), runs, |run| &run.paths)?;
    write_children(&dir.join("tunnels.parquet"), runs, |run| run.tunnel.as_slice())?;
    if runs.iter().any(|(_, run)| !run.cpu.is_empty()) {
        write_children(&dir.join("cpu.parquet"), runs, |run| &run.cpu)?;
    }
    if runs.iter().any(|(_, run)| !run.histograms.is_empty()) {
        table::write(&dir.join(HISTOGRAMS), &histograms::to_table(&[]), histograms::to_tables(runs))?;
    }
    write_series(&dir.join("series.parquet"), runs)
}

/// No file where no run has series.
fn write_series(path: &Path, runs: &[(Key, &Run)]) -> Result<(), Error> {
    if runs.iter().all(|(_, run)| run.series.is_empty()) {
        return Ok(());
    }
    let groups = runs.iter().map(|(key, run)| series::to_table(*key, &run.series));
    table::write(path, &series::to_table((0, 0), &[]), groups)
}

fn write_runs(path: &Path, runs: &[(Key, &Run)]) -> Result<(), Error> {
    let mut writer = Writer::default();
    writer.push((0, 0), &Run::default());
    writer.table = writer.table.without_rows();
    runs.iter().for_each(|(key, run)| writer.push(*key, *run));
    let names: BTreeSet<&String> = runs.iter().flat_map(|(_, run)| run.parameters.keys()).collect();
    for name in names {
        let parameter_of = |run: &Run| run.parameters.get(name).map(|value| ByteArray::from(value.as_str()));
        let values = runs.iter().map(|(_, run)| parameter_of(run)).collect();
        writer.table.columns.push((format!("{PARAMETER}{name}"), Column::Texts(values)));
    }
    table::write(path, &writer.table.clone().without_rows(), std::iter::once(writer.table))
}

fn write_children<R: Columns>(path: &Path, runs: &[(Key, &Run)], children: impl Fn(&Run) -> &[R]) -> Result<(), Error> {
    let mut writer = Writer::default();
    writer.push((0, 0), &R::default()); // makes the columns, rows or not
    writer.table = writer.table.without_rows();
    for (key, run) in runs {
        children(run).iter().for_each(|child| writer.push(*key, child));
    }
    table::write(path, &writer.table.clone().without_rows(), std::iter::once(writer.table))
}

/// Reads all runs, by cell and seed.
pub(crate) fn read(dir: &Path) -> Result<Vec<(Key, Run)>, Error> {
    let mut runs = read_runs(&dir.join("runs.parquet"))?;
    let path = dir.join("flows.parquet");
    let flows = table::read(&path)?;
    // Before flows had a protocol, each record had zeros where it now lacks a part.
    let has_zeros = flows.iter().any(|table| table.column("protocol").is_none());
    read_children((&path, flows), has_zeros, &mut runs, |run, mut flow: Flow| {
        if has_zeros {
            flow.infer_protocol();
        }
        run.flows.push(flow);
    })?;
    let subflows = dir.join("subflows.parquet");
    if subflows.exists() {
        let tables = table::read(&subflows)?;
        read_children((&subflows, tables), has_zeros, &mut runs, |run, subflow| run.subflows.push(subflow))?;
    }
    let paths = dir.join("paths.parquet");
    read_children((&paths, table::read(&paths)?), has_zeros, &mut runs, |run, path| run.paths.push(path))?;
    let tunnels = dir.join("tunnels.parquet");
    read_children((&tunnels, table::read(&tunnels)?), has_zeros, &mut runs, |run, tunnel| run.tunnel = Some(tunnel))?;
    let cpu = dir.join("cpu.parquet");
    if cpu.exists() {
        read_children((&cpu, table::read(&cpu)?), has_zeros, &mut runs, |run, cpu| run.cpu.push(cpu))?;
    }
    let path = dir.join(HISTOGRAMS);
    for table in if path.exists() { table::read(&path)? } else { Vec::new() } {
        for (key, histogram) in histograms::from_table(&table).map_err(Error::damaged(&path))? {
            let run = runs.get_mut(&key).ok_or_else(|| Error::damaged(&path)(stray(key)))?;
            run.histograms.push(histogram);
        }
    }
    let path = dir.join("series.parquet");
    let series = if path.exists() { table::read(&path)? } else { Vec::new() };
    for table in series {
        let key = Reader::new(&table, 0).key().map_err(Error::damaged(&path))?;
        let run = runs.get_mut(&key).ok_or_else(|| Error::damaged(&path)(stray(key)))?;
        run.series = series::from_table(&table).map_err(Error::damaged(&path))?;
    }
    Ok(runs.into_iter().collect())
}

fn read_runs(path: &Path) -> Result<BTreeMap<Key, Run>, Error> {
    let mut runs = BTreeMap::new();
    for table in table::read(path)? {
        for row in 0..table.rows() {
            let mut reader = Reader::new(&table, row);
            let key = reader.key().map_err(Error::damaged(path))?;
            let run = reader.read(Run::default()).map_err(Error::damaged(path))?;
            runs.insert(key, Run { seed: key.1, parameters: parameters(&table, row), ..run });
        }
    }
    Ok(runs)
}

fn read_children<R: Columns>(
    (path, tables): (&Path, Vec<Table>),
    has_zeros: bool,
    runs: &mut BTreeMap<Key, Run>,
    mut add: impl FnMut(&mut Run, R),
) -> Result<(), Error> {
    for table in tables {
        for row in 0..table.rows() {
            let mut reader = Reader::new(&table, row).with_zeros(has_zeros);
            let key = reader.key().map_err(Error::damaged(path))?;
            let child = reader.read(R::default()).map_err(Error::damaged(path))?;
            let run = runs.get_mut(&key).ok_or_else(|| Error::damaged(path)(stray(key)))?;
            add(run, child);
        }
    }
    Ok(())
}

fn stray((cell, seed): Key) -> String {
    format!("it speaks of cell {cell}, seed {seed}, which runs.parquet does not know")
}

fn parameters(table: &Table, row: usize) -> BTreeMap<String, String> {
    let parameters = table.columns.iter().filter_map(|(name, column)| Some((name.strip_prefix(PARAMETER)?, column)));
    parameters.filter_map(|(name, column)| Some((name.to_owned(), text(column, row)?))).collect()
}

fn text(column: &Column, row: usize) -> Option<String> {
    match column {
        Column::Texts(values) => values[row].as_ref()?.as_utf8().ok().map(str::to_owned),
        _ => None,
    }
}
