//! All runs of a folder, to Parquet and back.

use crate::rows::{Reader, Row, Writer};
use crate::table::{self, Column, Table};
use crate::{Error, Key, histograms, series};
use parquet::data_type::ByteArray;
use record::{Cpu, Flow, Path as PathRecord, Run, Subflow, Tunnel};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Prefix of the columns that hold a run's parameters.
const PARAMETER: &str = "parameter.";
/// The file of the histograms.
const HISTOGRAMS: &str = "histograms.parquet";

/// Writes all tables of runs sorted by key.
pub(crate) fn write(dir: &Path, runs: &[(Key, &Run)]) -> Result<(), Error> {
    write_runs(&dir.join("runs.parquet"), runs)?;
    write_children(&dir.join("flows.parquet"), &Flow::default(), runs, |run| &run.flows)?;
    write_children(&dir.join("subflows.parquet"), &Subflow::default(), runs, |run| &run.subflows)?;
    write_children(&dir.join("paths.parquet"), &PathRecord::default(), runs, |run| &run.paths)?;
    write_children(&dir.join("tunnels.parquet"), &Tunnel::default(), runs, |run| run.tunnel.as_slice())?;
    if runs.iter().any(|(_, run)| !run.cpu.is_empty()) {
        write_children(&dir.join("cpu.parquet"), &Cpu::default(), runs, |run| &run.cpu)?;
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

fn write_children<R: Row>(
    path: &Path,
    default_row: &R,
    runs: &[(Key, &Run)],
    children: impl Fn(&Run) -> &[R],
) -> Result<(), Error> {
    let mut writer = Writer::default();
    writer.push((0, 0), default_row); // makes the columns, rows or not
    writer.table = writer.table.without_rows();
    for (key, run) in runs {
        children(run).iter().for_each(|child| writer.push(*key, child));
    }
    table::write(path, &writer.table.clone().without_rows(), std::iter::once(writer.table))
}

/// Reads all runs, by cell and seed.
pub(crate) fn read(dir: &Path) -> Result<Vec<(Key, Run)>, Error> {
    let mut runs = read_runs(&dir.join("runs.parquet"))?;
    read_children(&dir.join("flows.parquet"), &Flow::default(), &mut runs, |run, flow| run.flows.push(flow))?;
    let subflows = dir.join("subflows.parquet");
    if subflows.exists() {
        read_children(&subflows, &Subflow::default(), &mut runs, |run, subflow| run.subflows.push(subflow))?;
    }
    read_children(&dir.join("paths.parquet"), &PathRecord::default(), &mut runs, |run, path| run.paths.push(path))?;
    let tunnels = dir.join("tunnels.parquet");
    read_children(&tunnels, &Tunnel::default(), &mut runs, |run, tunnel| run.tunnel = Some(tunnel))?;
    let cpu = dir.join("cpu.parquet");
    if cpu.exists() {
        read_children(&cpu, &Cpu::default(), &mut runs, |run, cpu| run.cpu.push(cpu))?;
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

fn read_children<R: Row>(
    path: &Path,
    default_row: &R,
    runs: &mut BTreeMap<Key, Run>,
    add: impl Fn(&mut Run, R),
) -> Result<(), Error> {
    for table in table::read(path)? {
        for row in 0..table.rows() {
            let mut reader = Reader::new(&table, row);
            let key = reader.key().map_err(Error::damaged(path))?;
            let child = reader.read(default_row.clone()).map_err(Error::damaged(path))?;
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
