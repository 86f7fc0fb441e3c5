//! Reading a scenario: text in, every cell of its sweep out.

use crate::file::File;
use crate::keys;
use crate::model::Experiment;
use crate::renamed::explained;
use crate::resolve;
use crate::source::Source;
use crate::sweep::{Draft, Sweep, affordable};
use crate::trace::Traces;
use parse::{Error, Fault};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// A scenario file, read.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Short name.
    pub name: String,
    /// One line: what it shows.
    pub title: String,
    /// A few sentences for the reader of a report.
    pub about: String,
    /// What it follows.
    pub source: String,
    /// Each cell runs once with each.
    pub seeds: Vec<u64>,
    /// The cells of the sweep, the last key turning fastest; one cell if nothing is swept.
    pub cells: Vec<Cell>,
    /// A results folder of the same cells to compare with.
    pub baseline: Option<PathBuf>,
    /// The file.
    pub text: String,
    /// 16 hexadecimal digits that differ when the file, the sets or the traces do.
    pub hash: String,
    positions: Source,
}

/// One cell of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Swept key and shown value, in sweep order.
    pub parameters: Vec<(String, String)>,
    /// What to run.
    pub experiment: Experiment,
}

/// What the command line says about a scenario.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// "KEY=VALUE" each, put into the scenario in this order.
    pub sets: Vec<String>,
    /// Its short form: `[quick]` is laid over it.
    pub quick: bool,
}

/// Reads the scenario at `path`, with `overrides`.
///
/// # Errors
/// Whatever is wrong with the file, a file that it names, or a set; with line, key and what would be right.
pub fn load(path: &Path, overrides: &Overrides) -> Result<Scenario, Error> {
    let origin = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::unreadable(&origin, format!("cannot read the scenario: {error}")))?;
    parse(&origin, &text, path.parent().unwrap_or(Path::new("")), overrides)
}

/// Reads a scenario from `text`, which errors call `origin`. Traces are looked for in `base`.
///
/// # Errors
/// As [`load`].
pub fn parse(origin: &str, text: &str, base: &Path, overrides: &Overrides) -> Result<Scenario, Error> {
    let source = Source::new(origin, text, &overrides.sets, overrides.quick);
    read(&source, base, overrides).map_err(|fault| source.error(fault))
}

/// Reads; a fault has its key, and a position inside `source`.
fn read(source: &Source, base: &Path, overrides: &Overrides) -> Result<Scenario, Fault> {
    let draft = Draft::read(source)?;
    if let Some(axis) = draft.axes.first() {
        affordable(draft.cells(), 1).map_err(|fault| Fault { span: axis.key.span.clone(), ..fault }.key("sweep"))?;
    }
    let mut scenario = keyed(&draft, 0, |draft, _| heading(draft, source, base))?;
    let mut traces = Traces::new(base);
    let cells = (0..draft.cells()).map(|index| keyed(&draft, index, |draft, index| cell(draft, index, &mut traces)));
    scenario.cells = cells.collect::<Result<_, _>>()?;
    scenario.hash = hash(&source.text, overrides, &traces);
    Ok(scenario)
}

/// What is the same in every cell.
fn heading(draft: &Draft<'_>, source: &Source, base: &Path) -> Result<Scenario, Fault> {
    let file: File = parse::typed(draft.cell(0)?.1)?;
    let name = file.name.get().0.clone();
    Ok(Scenario {
        title: file.title.clone().unwrap_or_else(|| name.clone()),
        name,
        about: file.about.clone().unwrap_or_default(),
        source: file.source.clone().unwrap_or_default(),
        seeds: resolve::seeds(&file, draft.cells())?,
        cells: Vec::new(),
        baseline: file.baseline.as_ref().map(|folder| base.join(folder.get())),
        text: source.text.clone(),
        hash: String::new(),
        positions: source.clone(),
    })
}

fn cell(draft: &Draft<'_>, index: u64, traces: &mut Traces) -> Result<Cell, Fault> {
    let (parameters, tree) = draft.cell(index)?;
    Ok(Cell { parameters, experiment: resolve::experiment(&parse::typed::<File>(tree)?, traces)? })
}

/// What `work` makes of the cell `index`; a fault is told with the key at its position.
fn keyed<T>(draft: &Draft<'_>, index: u64, work: impl FnOnce(&Draft<'_>, u64) -> Result<T, Fault>) -> Result<T, Fault> {
    work(draft, index).map_err(explained).map_err(|fault| match draft.cell(index) {
        Ok((_, tree)) if fault.key.is_empty() => {
            let parts = [parse::key_at(&tree, &fault.span), fault.missing.clone()];
            fault.key(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("."))
        }
        _ => fault,
    })
}

impl Scenario {
    /// What `resolve` makes of the report's part of the file, typed as `T`, and of what is swept.
    ///
    /// # Errors
    /// What cannot be typed, and what `resolve` finds wrong; with line and key.
    pub fn section<T: DeserializeOwned, R>(
        &self,
        resolve: impl FnOnce(&T, &Sweep) -> Result<R, Fault>,
    ) -> Result<R, Error> {
        let read =
            |draft: &Draft<'_>, index| resolve(&parse::typed(keys::report(draft.cell(index)?.1))?, &draft.sweep());
        let result = Draft::read(&self.positions).and_then(|draft| keyed(&draft, 0, read));
        result.map_err(|fault| self.positions.error(fault))
    }

    /// An error at `key` (`flow.tcp.congestion`), for what only the caller can know, such as the names of algorithms.
    /// `help` may be empty.
    #[must_use]
    pub fn error_at(&self, key: &str, message: &str, help: &str) -> Error {
        self.error_in(0, key, message, help)
    }

    /// As [`Scenario::error_at`], for the value that `key` has in the cell `index`: points at the right entry of the
    /// sweep.
    #[must_use]
    pub fn error_in(&self, index: usize, key: &str, message: &str, help: &str) -> Error {
        let tree = Draft::read(&self.positions).and_then(|draft| draft.cell(index as u64));
        let span = tree.map_or(0..0, |(_, tree)| keys::locate(&tree, key));
        self.positions.error(Fault::at(span, message).key(key).help(help))
    }
}

/// FNV-1a, 64 bit.
fn hash(text: &str, overrides: &Overrides, traces: &Traces) -> String {
    let quick = overrides.quick.then_some(1);
    let sets = overrides.sets.iter().flat_map(|set| [0].into_iter().chain(set.bytes())).chain(quick);
    let traces = traces.opportunities().flat_map(u64::to_le_bytes);
    let bytes = text.bytes().chain(sets).chain(traces);
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}
