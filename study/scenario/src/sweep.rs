//! The sweep: a grid over dotted keys, and `--set`, which uses the same keys.
//!
//! A `--set` of a swept key leaves one entry of that axis; a `--set` above a swept key does away with the axis. The cases of
//! a scenario are an axis too, called `case`: its entries are fragments, laid over the file before the rest. A case may have
//! a separate sweep in addition to that of the file: the cells are then one grid per case, one after another.

pub(crate) mod effective;

use crate::keys::{self, Key};
use crate::source::{Set, Source};
use parse::Diagnostic;
use parse::Node;
use toml::Spanned;
use toml::de::DeValue;

/// The top-level keys of a scenario as a whole, which cannot differ between its cells.
const SCENARIO_KEYS: [&str; 16] = [
    "name",
    "title",
    "about",
    "source",
    "seeds",
    "repetitions",
    SWEEP,
    "free",
    "table",
    "figure",
    "claim",
    "fit",
    "baseline",
    CASE,
    QUICK,
    effective::DERIVED,
];

/// The axis of the cases, and their key in the file.
const CASE: &str = "case";

/// The key of the axes, in the file and in a case.
const SWEEP: &str = "sweep";

/// The fragment for `--quick`.
const QUICK: &str = "quick";

/// The maximum number of runs (cells times seeds) of a scenario.
const MAX_RUNS: u64 = 100_000;

/// Refuses too many runs before any cell is made.
pub(crate) fn check_run_count(cells: u64, seeds: u64) -> Result<(), Diagnostic> {
    let runs = cells.saturating_mul(seeds);
    if runs <= MAX_RUNS {
        return Ok(());
    }
    let message = format!("{cells} cells with {seeds} seeds each are {runs} runs; at most {MAX_RUNS}");
    Err(Diagnostic::new(0..0, message).with_help("sweep fewer values, or split the scenario"))
}

/// A scenario's tree without its sweep, and the sweep's axes: from them the tree of each cell is made.
#[derive(Debug)]
pub(crate) struct SweepTemplate<'t> {
    root: Node<'t>,
    /// The axes in file order; the first changes slowest from cell to cell.
    pub(crate) axes: Vec<Axis<'t>>,
    /// The cases of the file, of which a `--set` may choose others than the sweep does.
    cases: Vec<Entry<'t>>,
    sets: Vec<(Key<'t>, Node<'t>)>,
    /// Swept keys that a `--set` above them removed, or that only a skipped case sweeps.
    removed_keys: Vec<String>,
    is_unmodified: bool,
    is_derived: bool,
}

/// The swept keys and their values, for the report's layout.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// Swept keys in file order; a key that two cases sweep stands here twice.
    pub keys: Vec<SweptKey>,
    /// Keys that the file sweeps and that a `--set` or the choice of cases has removed.
    pub removed: Vec<String>,
    /// Whether the sweep is the file's own: no `--set`, no `--quick`, and no `[derived]` in the file.
    pub is_unmodified: bool,
    /// Whether the file is derived from another one, which may sweep other keys.
    pub is_derived: bool,
}

/// A swept key with its values as they are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct SweptKey {
    /// The dotted key, such as `path.eno2.delay`.
    pub key: String,
    /// The values of the key, or their labels.
    pub values: Vec<String>,
}

/// One swept key and its values.
#[derive(Debug)]
pub(crate) struct Axis<'t> {
    pub(crate) key: Key<'t>,
    entries: Vec<Entry<'t>>,
    /// The only case that sweeps the key, if not all do.
    case: Option<String>,
}

#[derive(Clone, Debug)]
struct Entry<'t> {
    label: String,
    value: Node<'t>,
    /// Whether the label is one of its own, and not the value.
    is_labelled: bool,
}

/// Whether the text of a scenario has a short form.
pub(crate) fn has_short_form(text: &str) -> bool {
    parse::parse(text).is_ok_and(|mut root| take(&mut root, QUICK).is_some())
}

/// A cell: swept keys with their labels, and the cell's tree.
pub(crate) type CellTree<'t> = (Vec<(String, String)>, Node<'t>);

impl<'t> SweepTemplate<'t> {
    pub(crate) fn read(source: &'t Source) -> Result<Self, Diagnostic> {
        let mut root = parse::parse(&source.text)?;
        let quick = take(&mut root, QUICK);
        if let Some(quick) = quick.filter(|_| source.quick) {
            keys::overlay(&mut root, quick);
        }
        let mut axes = Vec::new();
        let (cases, sweep) = (take(&mut root, CASE), take(&mut root, SWEEP));
        sweep.map_or(Ok(()), |sweep| collect(source, None, None, sweep, &mut axes))?;
        let cases = read_cases(source, cases, &mut axes)?;
        let is_derived = matches!(root.get_ref(), DeValue::Table(table) if table.contains_key(effective::DERIVED));
        let is_unmodified = source.sets.is_empty() && !source.quick && !is_derived;
        let (sets, removed_keys) = (Vec::new(), Vec::new());
        let mut template = Self { root, axes, cases, sets, removed_keys, is_unmodified, is_derived };
        for set in &source.sets {
            template.set(source, set)?;
        }
        template.remove_keys_of_skipped_cases();
        Ok(template)
    }

    /// The swept keys.
    pub(crate) fn sweep(&self) -> Sweep {
        let key = |axis: &Axis<'_>| SweptKey {
            key: axis.key.text.clone().into_owned(),
            values: axis.labels().into_iter().map(str::to_owned).collect(),
        };
        Sweep {
            keys: self.axes.iter().map(key).collect(),
            removed: self.removed_keys.clone(),
            is_unmodified: self.is_unmodified,
            is_derived: self.is_derived,
        }
    }

    /// The number of cells of all grids.
    pub(crate) fn cells(&self) -> u64 {
        let size = |case| self.grid(case).fold(1, |cells: u64, axis| cells.saturating_mul(axis.entries.len() as u64));
        self.run_cases().map(size).fold(0, u64::saturating_add)
    }

    /// The cell `index`, counted through the grids of all cases; the last axis varies fastest.
    pub(crate) fn cell(&self, mut index: u64) -> Result<CellTree<'t>, Diagnostic> {
        let (mut labels, mut root) = (Vec::new(), self.root.clone());
        for case in self.run_cases() {
            let mut stride = self.grid(case).map(|axis| axis.entries.len() as u64).product();
            if index >= stride {
                index -= stride;
                continue;
            }
            if let Some(case) = case {
                keys::overlay(&mut root, case.value.clone());
                labels.push((CASE.to_owned(), case.label.clone()));
            }
            for axis in self.grid(case) {
                stride /= axis.entries.len() as u64;
                let entry = &axis.entries[(index / stride) as usize % axis.entries.len()];
                keys::put(&mut root, &axis.key, entry.value.clone())?;
                labels.push((axis.key.text.to_string(), entry.label.clone()));
            }
            break;
        }
        for (key, value) in &self.sets {
            keys::put(&mut root, key, value.clone())?;
        }
        Ok((labels, root))
    }

    /// The cases that are run; a single `None` if the scenario has no cases.
    fn run_cases(&self) -> impl Iterator<Item = Option<&Entry<'t>>> {
        let cases = self.axes.iter().find(|axis| axis.key.text == CASE);
        let without_case = cases.is_none().then_some(None);
        cases.into_iter().flat_map(|axis| &axis.entries).map(Some).chain(without_case)
    }

    /// The axes of a case, without that of the cases.
    fn grid(&self, case: Option<&Entry<'t>>) -> impl Iterator<Item = &Axis<'t>> {
        let name = case.map(|case| case.label.clone());
        self.axes.iter().filter(move |axis| axis.key.text != CASE && (axis.case.is_none() || axis.case == name))
    }

    /// Removes the axes of cases that are not run.
    fn remove_keys_of_skipped_cases(&mut self) {
        let run = self.run_labels();
        self.removed_keys.extend(self.axes.extract_if(.., |axis| !axis.is_run(&run)).map(|axis| axis.key.text.into()));
    }

    fn run_labels(&self) -> Vec<String> {
        self.run_cases().flatten().map(|case| case.label.clone()).collect()
    }

    fn set(&mut self, source: &Source, set: &'t Set) -> Result<(), Diagnostic> {
        let (text, span) = set.key()?;
        match text.split('.').next() {
            Some(SWEEP) => {
                let key = text.trim_start_matches(SWEEP).trim_start_matches('.');
                return self.set_sweep(source, set, key);
            }
            Some(first @ (CASE | QUICK)) if text != CASE || self.axes.iter().all(|axis| axis.key.text != CASE) => {
                let message = format!("`--set` cannot change `{first}`");
                return Err(Diagnostic::new(span, message).with_help("`case=NAME` runs one case"));
            }
            _ => {}
        }
        let (mut swept, run) = (false, self.run_labels());
        for axis in self.axes.iter_mut().filter(|axis| axis.key.text == text && axis.is_run(&run)) {
            axis.entries = vec![axis.choose(set, &self.cases)?];
            swept = true;
        }
        if swept {
            return Ok(());
        }
        self.removed_keys
            .extend(self.axes.extract_if(.., |axis| keys::covers(text, &axis.key.text)).map(|a| a.key.text.into()));
        match text {
            "seeds" => self.remove_key("repetitions"),
            "repetitions" => self.remove_key("seeds"),
            _ => {}
        }
        self.sets.push((Key { text: text.into(), span }, value_of(set)));
        Ok(())
    }

    /// Sweeps `key`, or each key of a table if `key` is empty, over the values of `set`. An existing axis keeps its place,
    /// and a value that is the label of one of its entries keeps that entry; a new axis comes last. New cases are refused.
    fn set_sweep(&mut self, source: &Source, set: &'t Set, key: &'t str) -> Result<(), Diagnostic> {
        let (key, span) = (Some(key).filter(|key| !key.is_empty()), set.key()?.1);
        let mut axes = Vec::new();
        collect(source, None, key.map(|key| Key { text: key.into(), span }).as_ref(), value_of(set), &mut axes)?;
        for new in axes {
            let (mut is_new, run) = (true, self.run_labels());
            for axis in self.axes.iter_mut().filter(|axis| axis.key.text == new.key.text && axis.is_run(&run)) {
                let entries = new.entries.iter().map(|entry| axis.existing(entry.clone(), &self.cases));
                axis.entries = entries.collect::<Result<_, _>>()?;
                is_new = false;
            }
            if is_new {
                self.add(new)?;
            }
        }
        Ok(())
    }

    /// Adds an axis, which takes the place of what was set before.
    fn add(&mut self, axis: Axis<'t>) -> Result<(), Diagnostic> {
        let key = axis.key.text.clone();
        if key == CASE {
            return Err(Diagnostic::new(axis.key.span, "the scenario has no [case.NAME]").with_key(CASE));
        }
        let run = self.run_labels();
        let covers = |other: &Axis<'_>| keys::covers(&key, &other.key.text) || keys::covers(&other.key.text, &key);
        self.axes.retain(|other| other.is_run(&run) || !covers(other));
        if let Some(other) = self.axes.iter().find(|other| covers(other)) {
            let message = format!("`{key}` and `{}` set the same", other.key.text);
            return Err(Diagnostic::new(axis.key.span, message).with_key(key));
        }
        self.sets.retain(|(set, _)| !keys::covers(&key, &set.text));
        self.axes.push(axis);
        Ok(())
    }

    /// Removes a top-level key: if both `seeds` and `repetitions` are set, the last one counts.
    fn remove_key(&mut self, key: &str) {
        self.sets.retain(|(set, _)| set.text != key);
        if let DeValue::Table(table) = self.root.get_mut() {
            table.remove(key);
        }
    }
}

impl<'t> Axis<'t> {
    fn read(source: &Source, case: Option<&str>, key: Key<'t>, values: Node<'t>) -> Result<Self, Diagnostic> {
        let first = key.text.split('.').next();
        if let Some(fixed) =
            SCENARIO_KEYS.iter().find(|fixed| first == Some(fixed) && (key.text != CASE || case.is_some()))
        {
            return Err(Diagnostic::new(key.span, format!("`{fixed}` is the same in every cell and cannot be swept")));
        }
        let span = values.span();
        let DeValue::Array(values) = values.into_inner() else {
            return Err(Diagnostic::new(span, "a sweep takes a list").with_help("for example [\"10ms\", \"20ms\"]"));
        };
        if values.is_empty() {
            return Err(Diagnostic::new(span, "an empty sweep makes no runs"));
        }
        let mut entries: Vec<Entry<'t>> = Vec::new();
        for value in values {
            let entry = Entry::read(source, value);
            if entries.iter().any(|existing| existing.label == entry.label) {
                let message = format!("`{}` is swept twice", entry.label);
                return Err(Diagnostic::new(entry.value.span(), message)
                    .with_help("give them different labels: { label = ..., value = ... }"));
            }
            entries.push(entry);
        }
        Ok(Self { key, entries, case: case.map(str::to_owned) })
    }

    /// Whether it is swept in one of these cases.
    fn is_run(&self, cases: &[String]) -> bool {
        self.case.as_ref().is_none_or(|case| cases.contains(case))
    }

    /// The axis's entry, or the file's case, that a plain value names, if any. An entry with its own label replaces the
    /// one with that label.
    fn existing(&self, entry: Entry<'t>, cases: &[Entry<'t>]) -> Result<Entry<'t>, Diagnostic> {
        if self.key.text == CASE {
            return find_case(cases, &entry);
        }
        let existing = self.entries.iter().find(|existing| !entry.is_labelled && existing.label == entry.label);
        Ok(existing.cloned().unwrap_or(entry))
    }

    /// The entry that a `--set` chooses by its label, or a new one. There are no new cases.
    fn choose(&self, set: &'t Set, cases: &[Entry<'t>]) -> Result<Entry<'t>, Diagnostic> {
        let value = value_of(set);
        let label = value.get_ref().as_str().unwrap_or(set.value().0.trim()).to_owned();
        self.existing(Entry { label, value, is_labelled: false }, cases)
    }

    /// The labels of the entries.
    fn labels(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| entry.label.as_str()).collect()
    }
}

impl<'t> Entry<'t> {
    /// `{ label, value }`, or a value that is its own label.
    fn read(source: &Source, mut node: Node<'t>) -> Self {
        if let DeValue::Table(table) = node.get_mut()
            && let Some(label) = table.get("label").and_then(|label| label.get_ref().as_str()).map(str::to_owned)
            && let Some(value) = table.remove("value")
        {
            return Self { label, value, is_labelled: true };
        }
        let written = || source.slice(&node.span()).to_owned();
        let label = node.get_ref().as_str().map_or_else(written, str::to_owned);
        Self { label, value: node, is_labelled: false }
    }

    /// A case is a table, without the keys that are the same in every cell.
    fn check_keys(&self) -> Result<(), Diagnostic> {
        let DeValue::Table(table) = self.value.get_ref() else {
            let diagnostic = Diagnostic::new(self.value.span(), "a case is a table of the keys that differ");
            return Err(diagnostic.with_key(format!("{CASE}.{}", self.label)));
        };
        match table.keys().find(|key| SCENARIO_KEYS.contains(&key.get_ref().as_ref())) {
            Some(key) => {
                let message = format!("`{}` is the same in every case", key.get_ref());
                Err(Diagnostic::new(key.span(), message).with_key(format!("{CASE}.{}.{}", self.label, key.get_ref())))
            }
            None => Ok(()),
        }
    }
}

/// Removes a top-level key from the tree and returns it.
fn take<'t>(root: &mut Node<'t>, key: &str) -> Option<Node<'t>> {
    match root.get_mut() {
        DeValue::Table(table) => table.remove(key),
        _ => None,
    }
}

/// The case of the file that an entry names.
fn find_case<'t>(cases: &[Entry<'t>], entry: &Entry<'t>) -> Result<Entry<'t>, Diagnostic> {
    let labels = || cases.iter().map(|case| &*case.label).collect::<Vec<_>>();
    let unknown = || Diagnostic::unknown_name(entry.value.span(), CASE, &entry.label, &labels());
    cases.iter().find(|case| case.label == entry.label).cloned().ok_or_else(unknown)
}

/// Replaces the names in `sweep.case` by the cases' fragments; without `sweep.case` all cases are swept. Cases are the
/// first axis, which varies slowest: other swept values are put over them. Returns all cases.
fn read_cases<'t>(
    source: &Source,
    cases: Option<Node<'t>>,
    axes: &mut Vec<Axis<'t>>,
) -> Result<Vec<Entry<'t>>, Diagnostic> {
    let axis = axes.iter().position(|axis| axis.key.text == CASE).map(|index| axes.remove(index));
    let Some(cases) = cases else {
        let no_case_table =
            |axis: Axis<'_>| Diagnostic::new(axis.key.span, "the scenario has no [case.NAME]").with_key(CASE);
        return axis.map_or(Ok(Vec::new()), |axis| Err(no_case_table(axis)));
    };
    let span = cases.span();
    let DeValue::Table(cases) = cases.into_inner() else {
        return Err(Diagnostic::new(span, "cases are tables")
            .with_help("write [case.NAME], then the keys that differ")
            .with_key(CASE));
    };
    let mut entries = Vec::new();
    for (name, fragment) in cases {
        let mut entry = Entry { label: name.get_ref().to_string(), value: fragment, is_labelled: false };
        if let Some(sweep) = take(&mut entry.value, SWEEP) {
            let with_full_key = |diagnostic: Diagnostic| {
                let inner_key = diagnostic.key.clone();
                diagnostic.with_key(format!("{CASE}.{}.{SWEEP}.{inner_key}", entry.label))
            };
            collect(source, Some(&entry.label), None, sweep, axes).map_err(with_full_key)?;
        }
        entry.check_keys()?;
        entries.push(entry);
    }
    let case_axis = match axis {
        Some(mut axis) => {
            for entry in &mut axis.entries {
                *entry = find_case(&entries, entry).map_err(|diagnostic| diagnostic.with_key(CASE))?;
            }
            axis
        }
        None => Axis { key: Key { text: CASE.into(), span }, entries: entries.clone(), case: None },
    };
    axes.insert(0, case_axis);
    Ok(entries)
}

/// Collects the axes below `node`, of all cases or of one: `"a.b" = [...]` and `a.b = [...]` are the same.
fn collect<'t>(
    source: &Source,
    case: Option<&str>,
    parent: Option<&Key<'t>>,
    node: Node<'t>,
    axes: &mut Vec<Axis<'t>>,
) -> Result<(), Diagnostic> {
    let span = node.span();
    match (node.into_inner(), parent) {
        (DeValue::Table(table), _) => table.into_iter().try_for_each(|(part, value)| {
            let text = parent.map_or(part.to_string(), |parent| format!("{}.{}", parent.text, part.get_ref()));
            collect(source, case, Some(&Key { text: text.into(), span: part.span() }), value, axes)
        }),
        (value, Some(key)) => {
            let is_in_same_grid = |axis: &&Axis<'_>| axis.case.is_none() || axis.case.as_deref() == case;
            if let Some(overwritten) =
                axes.iter().filter(is_in_same_grid).find(|axis| keys::covers(&key.text, &axis.key.text))
            {
                let message = format!("`{}` would overwrite the sweep of `{}`", key.text, overwritten.key.text);
                return Err(Diagnostic::new(key.span.clone(), message).with_key(key.text.as_ref()));
            }
            let axis = Axis::read(source, case, key.clone(), Spanned::new(span, value));
            axes.push(axis.map_err(|diagnostic| diagnostic.with_key(key.text.as_ref()))?);
            Ok(())
        }
        (_, None) => {
            Err(Diagnostic::new(span, "[sweep] is a table")
                .with_help("\"flow.tcp.congestion\" = [\"cubic\", \"reno\"]"))
        }
    }
}

/// A set's value: parsed as TOML, or else the text itself.
fn value_of(set: &Set) -> Node<'_> {
    let (text, span) = set.value();
    match parse::parse(&set.document).map(Spanned::into_inner) {
        Ok(DeValue::Table(mut table)) if table.len() == 1 => table.remove(Set::NAME),
        _ => None,
    }
    .unwrap_or_else(|| Spanned::new(span, DeValue::String(text.trim().into())))
}
