//! Reading a scenario: text in, every cell of its sweep out.

use crate::file::File;
use crate::files::{Base, Files};
use crate::free::{self, Free};
use crate::keys;
use crate::model::Experiment;
use crate::renamed::explained;
use crate::resolve;
use crate::sets;
use crate::several;
use crate::source::Source;
use crate::sweep::{Sweep, SweepTemplate, check_run_count, effective, has_short_form};
use crate::values;
use parse::{Diagnostic, Error, Node};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// The maximum size of a scenario file, bytes.
const MAX_LEN: u64 = 16 << 20;

/// A scenario file, read.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Short name.
    pub name: String,
    /// One line: the purpose of the scenario.
    pub title: String,
    /// A few sentences for the reader of a report.
    pub about: String,
    /// The publication or measurement that it follows.
    pub source: String,
    /// The seeds; each cell runs once with each of them.
    pub seeds: Vec<u64>,
    /// The cells of the sweep, the last key turning fastest; one cell if nothing is swept.
    pub cells: Vec<Cell>,
    /// The unknown keys, for `ropewalk fit`.
    pub free: Vec<Free>,
    /// A results folder of the same cells to compare with.
    pub baseline: Option<PathBuf>,
    /// The file.
    pub text: String,
    /// If there are overrides: the text that makes the same cells without them. `None` if there is no such text.
    pub effective_text: Option<String>,
    /// Whether it is the short form, `[quick]`.
    pub is_short: bool,
    /// 16 hexadecimal digits that change if the file, the sets or the files that it names change; the order of sets where it
    /// does not matter, and sets of seeds, change nothing.
    pub hash: String,
    positions: Source,
}

/// One cell of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Swept key and shown value, in sweep order.
    pub parameters: Vec<(String, String)>,
    /// The experiment.
    pub experiment: Experiment,
}

/// The command line's changes to a scenario.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// "KEY=VALUE" each, put into the scenario in this order; the last of a key counts.
    pub sets: Vec<String>,
    /// Whether the short form is read: `[quick]` is laid over the file, if it has one.
    pub quick: bool,
}

impl Overrides {
    /// Whether the text alone would make other cells.
    #[must_use]
    pub fn change_something(&self) -> bool {
        self.quick || !self.sets.is_empty()
    }

    /// The options of the command line.
    #[must_use]
    pub fn options(&self) -> Vec<String> {
        let sets = self.sets.iter().map(|set| format!("--set {set}"));
        self.quick.then(|| "--quick".to_owned()).into_iter().chain(sets).collect()
    }
}

/// Reads the scenario at `path`, with `overrides`.
///
/// # Errors
/// An error in the file, in a file that it names, or in a set; with line, key and a hint.
pub fn load(path: &Path, overrides: &Overrides) -> Result<Scenario, Error> {
    parse(&path.display().to_string(), &read_text(path)?, path.parent().unwrap_or(Path::new("")), overrides)
}

/// As [`load`], for a stranger's scenario: it may not name a file outside its folder, by a path or by a link. This does not
/// hold against a process that changes the folder during the call.
///
/// # Errors
/// As [`load`], or the scenario names such a file.
pub fn load_confined(path: &Path, overrides: &Overrides) -> Result<Scenario, Error> {
    let base = Base { folder: path.parent().unwrap_or(Path::new("")), is_confined: true };
    parse_in(&path.display().to_string(), &read_text(path)?, base, overrides)
}

/// The text of the scenario file at `path`.
///
/// # Errors
/// The file cannot be read, is longer than 16 MiB, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, Error> {
    let unreadable =
        |error| Error::unreadable(&path.display().to_string(), format!("cannot read the scenario: {error}"));
    filesystem::read_text_of_any(path, MAX_LEN).map_err(unreadable)
}

/// Reads a scenario from `text`, which errors call `origin`. Files that it names are looked for in `base`.
///
/// # Errors
/// As [`load`].
pub fn parse(origin: &str, text: &str, base: &Path, overrides: &Overrides) -> Result<Scenario, Error> {
    parse_in(origin, text, Base { folder: base, is_confined: false }, overrides)
}

pub(crate) fn parse_in(origin: &str, text: &str, base: Base<'_>, overrides: &Overrides) -> Result<Scenario, Error> {
    let is_short = overrides.quick && has_short_form(text);
    let overrides = &Overrides { quick: is_short, sets: sets::last(&overrides.sets) };
    let source = Source::new(origin, text, &overrides.sets, overrides.quick);
    let mut scenario = read(&source, base, overrides).map_err(|first| {
        let others = all_errors(&source, base).unwrap_or_default().into_iter();
        let others = others.filter(|other| (&other.span, &other.message) != (&first.span, &first.message));
        source.error(first.clone()).with_others(others.map(|other| source.error(other)).collect())
    })?;
    scenario.is_short = is_short;
    scenario.effective_text =
        overrides.change_something().then(|| effective_text(&scenario, base, overrides)).flatten();
    Ok(scenario)
}

/// The text that makes the cells of `scenario` without overrides; none if there is no such text.
fn effective_text(scenario: &Scenario, base: Base<'_>, overrides: &Overrides) -> Option<String> {
    let source = &scenario.positions;
    let file_name = Path::new(source.origin()).file_name().unwrap_or_default().to_string_lossy();
    let text = effective::text(source, &file_name, &overrides.options())?;
    let again = parse_in(source.origin(), &text, base, &Overrides::default()).ok()?;
    (again.cells == scenario.cells && again.seeds == scenario.seeds).then_some(text)
}

/// Reads; an error has its key, and a position inside `source`.
fn read(source: &Source, base: Base<'_>, overrides: &Overrides) -> Result<Scenario, Diagnostic> {
    let template = SweepTemplate::read(source)?;
    if let Some(axis) = template.axes.first() {
        check_run_count(template.cells(), 1)
            .map_err(|diagnostic| Diagnostic { span: axis.key.span.clone(), ..diagnostic }.with_key("sweep"))?;
    }
    let mut scenario = with_key(&template, 0, |template, _| without_cells(template, source, base))?;
    let mut files = Files::new(base);
    let cells = (0..template.cells())
        .map(|index| with_key(&template, index, |template, index| cell(template, index, &mut files)));
    scenario.cells = cells.collect::<Result<_, _>>()?;
    scenario.hash = hash(&source.text, overrides, &files);
    Ok(scenario)
}

/// All errors of the first cell that do not follow from one another.
fn all_errors(source: &Source, base: Base<'_>) -> Result<Vec<Diagnostic>, Diagnostic> {
    let template = SweepTemplate::read(source)?;
    check_run_count(template.cells(), 1)?;
    let tree = template.cell(0)?.1;
    let typed = |tree: &Node<'_>| parse::deserialize::<File>(tree.clone()).map_err(explained);
    let resolved = |tree: &Node<'_>| {
        let file = typed(tree)?;
        resolve::experiment(&file, &mut Files::new(base)).map(drop)
    };
    Ok(several::errors(tree, &|tree| typed(tree).map(drop), &resolved))
}

/// The scenario without its cells.
fn without_cells(template: &SweepTemplate<'_>, source: &Source, base: Base<'_>) -> Result<Scenario, Diagnostic> {
    let file: File = parse::deserialize(template.cell(0)?.1)?;
    let name = file.name.get().0.clone();
    let baseline = file
        .baseline
        .as_ref()
        .map(|folder| base.path(folder.get()).map_err(|refusal| Diagnostic { span: folder.span(), ..refusal }));
    Ok(Scenario {
        title: file.title.clone().unwrap_or_else(|| name.clone()),
        name,
        about: file.about.clone().unwrap_or_default(),
        source: file.source.clone().unwrap_or_default(),
        seeds: resolve::seeds(&file, template.cells())?,
        cells: Vec::new(),
        free: free::read(&file)?,
        baseline: baseline.transpose()?,
        text: source.text.clone(),
        effective_text: None,
        is_short: false,
        hash: String::new(),
        positions: source.clone(),
    })
}

fn cell(template: &SweepTemplate<'_>, index: u64, files: &mut Files) -> Result<Cell, Diagnostic> {
    let (parameters, tree) = template.cell(index)?;
    Ok(Cell { parameters, experiment: resolve::experiment(&parse::deserialize::<File>(tree)?, files)? })
}

/// The result of `work` on the cell `index`; an error gets the key at its position.
fn with_key<T>(
    template: &SweepTemplate<'_>,
    index: u64,
    work: impl FnOnce(&SweepTemplate<'_>, u64) -> Result<T, Diagnostic>,
) -> Result<T, Diagnostic> {
    let located = work(template, index).map_err(explained).map_err(|diagnostic| match template.cell(index) {
        Ok((_, tree)) if diagnostic.key.is_empty() => {
            let parts = [parse::key_at(&tree, &diagnostic.span), diagnostic.missing_key.clone()];
            diagnostic.with_key(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("."))
        }
        _ => diagnostic,
    });
    located.map_err(|diagnostic| match diagnostic.help.is_empty() && diagnostic.message.ends_with(TABLE_FOR_LIST) {
        true => {
            let help = format!("write `[[{}]]`, with double brackets, above each of them", diagnostic.key);
            diagnostic.with_help(help)
        }
        false => diagnostic,
    })
}

/// The end of the message for `[flow]` instead of `[[flow]]`.
const TABLE_FOR_LIST: &str = "a table, expected a list";

impl Scenario {
    /// Resolves the report's part of the file, typed as `T`, with the swept keys.
    ///
    /// # Errors
    /// An error in the types, or one that `resolve` finds; with line and key.
    pub fn section<T: DeserializeOwned, R>(
        &self,
        resolve: impl FnOnce(&T, &Sweep) -> Result<R, Diagnostic>,
    ) -> Result<R, Error> {
        let read = |template: &SweepTemplate<'_>, index| {
            resolve(&parse::deserialize(keys::report(template.cell(index)?.1))?, &template.sweep())
        };
        let result = SweepTemplate::read(&self.positions).and_then(|template| with_key(&template, 0, read));
        result.map_err(|diagnostic| self.positions.error(diagnostic))
    }

    /// The dotted keys of the first cell, with the values that the file, its sweep and the overrides give them, as a `--set`
    /// writes them. The report's part has none.
    #[must_use]
    pub fn values(&self) -> Vec<(String, String)> {
        let mut values = Vec::new();
        if let Ok((_, mut tree)) = SweepTemplate::read(&self.positions).and_then(|template| template.cell(0)) {
            keys::remove_report(&mut tree);
            values::collect(&tree, "", &mut values);
        }
        values
    }

    /// An error at `key` (`flow.tcp.congestion`), for checks that only the caller can make, such as the names of algorithms.
    /// `help` may be empty.
    #[must_use]
    pub fn error_at(&self, key: &str, message: &str, help: &str) -> Error {
        self.error_in(0, key, message, help)
    }

    /// As [`Scenario::error_at`], for the value that `key` has in the cell `index`: points at the right entry of the
    /// sweep.
    #[must_use]
    pub fn error_in(&self, index: usize, key: &str, message: &str, help: &str) -> Error {
        let tree = SweepTemplate::read(&self.positions).and_then(|template| template.cell(index as u64));
        let span = tree.map_or(0..0, |(_, tree)| keys::locate(&tree, key));
        self.positions.error(Diagnostic::new(span, message).with_key(key).with_help(help))
    }
}

/// The scenario's hash, in hexadecimal digits. Sets of seeds are not in it: more seeds are more of the same study.
fn hash(text: &str, overrides: &Overrides, files: &Files) -> String {
    let quick = overrides.quick.then_some(1);
    let sets = sets::in_normal_order(&overrides.sets);
    let sets = sets.into_iter().flat_map(|set| [0].into_iter().chain(set.bytes())).chain(quick);
    let bytes = text.bytes().chain(sets).chain(files.contents());
    format!("{:016x}", strings::fnv1a(bytes))
}
