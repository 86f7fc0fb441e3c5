//! The sweep: a grid over dotted keys, and `--set`, which uses the same keys.
//!
//! A `--set` of a swept key leaves one entry of that axis; a `--set` above a swept key does away with the axis. The
//! cases of a scenario are an axis too, called `case`: its entries are fragments, laid over the file before the rest. A case
//! may have a sweep of its own beside that of the file: the cells are then a grid for each case, one after the other.

use crate::keys::{self, Key};
use crate::source::{Set, Source};
use parse::Fault;
use parse::Node;
use toml::Spanned;
use toml::de::DeValue;

/// What describes a scenario, and so cannot differ between its cells.
const FIXED: [&str; 13] = [
    "name",
    "title",
    "about",
    "source",
    "seeds",
    "repetitions",
    SWEEP,
    "table",
    "figure",
    "claim",
    "baseline",
    CASE,
    QUICK,
];

/// The axis of the cases, and where they stand in the file.
const CASE: &str = "case";

/// Where the axes stand, in the file and in a case.
const SWEEP: &str = "sweep";

/// The fragment for `--quick`.
const QUICK: &str = "quick";

/// Most runs (cells times seeds) of a scenario.
const MAX_RUNS: u64 = 100_000;

/// Refuses too many runs, before anything is made of them.
pub(crate) fn affordable(cells: u64, seeds: u64) -> Result<(), Fault> {
    let runs = cells.saturating_mul(seeds);
    if runs <= MAX_RUNS {
        return Ok(());
    }
    let message = format!("{cells} cells with {seeds} seeds each are {runs} runs; at most {MAX_RUNS}");
    Err(Fault::at(0..0, message).help("sweep fewer values, or split the scenario"))
}

/// A scenario's tree with its sweep taken out, from which the tree of each cell is made.
#[derive(Debug)]
pub(crate) struct Draft<'t> {
    root: Node<'t>,
    /// In file order; the first turns slowest.
    pub(crate) axes: Vec<Axis<'t>>,
    sets: Vec<(Key<'t>, Node<'t>)>,
    /// Swept keys that a `--set` above them did away with, or that belong to a case that is not run.
    gone: Vec<String>,
    as_written: bool,
}

/// What is swept, for those who refer to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// Swept keys in file order; a key that two cases sweep stands here twice.
    pub keys: Vec<SweptKey>,
    /// Keys that the file sweeps, and a `--set`, or the choice of cases, does not.
    pub removed: Vec<String>,
    /// The sweep is the file's own: no `--set`, no `--quick`.
    pub as_written: bool,
}

/// A swept key with its values as they are shown.
#[derive(Clone, Debug, PartialEq)]
pub struct SweptKey {
    /// The dotted key, such as `path.eno2.delay`.
    pub key: String,
    /// Its values, or their labels.
    pub values: Vec<String>,
}

/// One swept key and its values.
#[derive(Debug)]
pub(crate) struct Axis<'t> {
    pub(crate) key: Key<'t>,
    entries: Vec<Entry<'t>>,
    /// The case that alone sweeps it.
    case: Option<String>,
}

#[derive(Clone, Debug)]
struct Entry<'t> {
    shown: String,
    value: Node<'t>,
}

/// One cell: what it shows of the sweep, and its tree.
pub(crate) type Variant<'t> = (Vec<(String, String)>, Node<'t>);

impl<'t> Draft<'t> {
    pub(crate) fn read(source: &'t Source) -> Result<Self, Fault> {
        let mut root = parse::parse(&source.text)?;
        let quick = take(&mut root, QUICK);
        if source.quick {
            let none = || Fault::at(0..0, "the scenario has no short form").help("give it a [quick] table");
            keys::overlay(&mut root, quick.ok_or_else(none)?);
        }
        let mut axes = Vec::new();
        let (cases, sweep) = (take(&mut root, CASE), take(&mut root, SWEEP));
        sweep.map_or(Ok(()), |sweep| collect(source, None, None, sweep, &mut axes))?;
        lay_out_cases(source, cases, &mut axes)?;
        let as_written = source.sets.is_empty() && !source.quick;
        let mut draft = Self { root, axes, sets: Vec::new(), gone: Vec::new(), as_written };
        draft.forget_cases();
        for set in &source.sets {
            draft.set(source, set)?;
        }
        Ok(draft)
    }

    /// What is swept.
    pub(crate) fn sweep(&self) -> Sweep {
        let key = |axis: &Axis<'_>| SweptKey {
            key: axis.key.text.clone().into_owned(),
            values: axis.labels().into_iter().map(str::to_owned).collect(),
        };
        Sweep { keys: self.axes.iter().map(key).collect(), removed: self.gone.clone(), as_written: self.as_written }
    }

    /// Cells of all grids.
    pub(crate) fn cells(&self) -> u64 {
        let size = |case| self.grid(case).fold(1, |cells: u64, axis| cells.saturating_mul(axis.entries.len() as u64));
        self.cases().map(size).fold(0, u64::saturating_add)
    }

    /// The cell `index` of the grids in a row, rows first.
    pub(crate) fn cell(&self, mut index: u64) -> Result<Variant<'t>, Fault> {
        let (mut shown, mut root) = (Vec::new(), self.root.clone());
        for case in self.cases() {
            let mut rest = self.grid(case).map(|axis| axis.entries.len() as u64).product();
            if index >= rest {
                index -= rest;
                continue;
            }
            if let Some(case) = case {
                keys::overlay(&mut root, case.value.clone());
                shown.push((CASE.to_owned(), case.shown.clone()));
            }
            for axis in self.grid(case) {
                rest /= axis.entries.len() as u64;
                let entry = &axis.entries[(index / rest) as usize % axis.entries.len()];
                keys::put(&mut root, &axis.key, entry.value.clone())?;
                shown.push((axis.key.text.to_string(), entry.shown.clone()));
            }
            break;
        }
        for (key, value) in &self.sets {
            keys::put(&mut root, key, value.clone())?;
        }
        Ok((shown, root))
    }

    /// The cases that are run; `None` alone where there are none.
    fn cases(&self) -> impl Iterator<Item = Option<&Entry<'t>>> {
        let cases = self.axes.iter().find(|axis| axis.key.text == CASE);
        let none = cases.is_none().then_some(None);
        cases.into_iter().flat_map(|axis| &axis.entries).map(Some).chain(none)
    }

    /// What is swept in a case, but for the cases.
    fn grid(&self, case: Option<&Entry<'t>>) -> impl Iterator<Item = &Axis<'t>> {
        let name = case.map(|case| case.shown.clone());
        self.axes.iter().filter(move |axis| axis.key.text != CASE && (axis.case.is_none() || axis.case == name))
    }

    /// Takes away what only cases that are not run sweep.
    fn forget_cases(&mut self) {
        let run: Vec<String> = self.cases().flatten().map(|case| case.shown.clone()).collect();
        let idle = |axis: &mut Axis<'_>| axis.case.as_ref().is_some_and(|case| !run.contains(case));
        self.gone.extend(self.axes.extract_if(.., idle).map(|axis| axis.key.text.into()));
    }

    fn set(&mut self, source: &Source, set: &'t Set) -> Result<(), Fault> {
        let (text, span) = set.key()?;
        match text.split('.').next() {
            Some(SWEEP) => return self.narrow(source, set, text.trim_start_matches("sweep").trim_start_matches('.')),
            Some(first @ (CASE | QUICK)) if text != CASE || self.axes.iter().all(|axis| axis.key.text != CASE) => {
                let message = format!("`--set` cannot change `{first}`");
                return Err(Fault::at(span, message).help("`case=NAME` runs one case"));
            }
            _ => {}
        }
        let mut swept = false;
        for axis in self.axes.iter_mut().filter(|axis| axis.key.text == text) {
            axis.entries = vec![axis.choose(set)?];
            swept = true;
        }
        if swept {
            self.forget_cases();
            return Ok(());
        }
        self.gone
            .extend(self.axes.extract_if(.., |axis| keys::covers(text, &axis.key.text)).map(|a| a.key.text.into()));
        match text {
            "seeds" => self.forget("repetitions"),
            "repetitions" => self.forget("seeds"),
            _ => {}
        }
        self.sets.push((Key { text: text.into(), span }, value_of(set)));
        Ok(())
    }

    /// Sweeps `key` over these values: those that show as their text, or new ones. There are no new cases.
    fn narrow(&mut self, source: &Source, set: &'t Set, key: &str) -> Result<(), Fault> {
        let mut swept = false;
        for axis in self.axes.iter_mut().filter(|axis| axis.key.text == key) {
            let name = Key { text: axis.key.text.clone(), span: set.key()?.1 };
            let asked = Axis::read(source, axis.case.as_deref(), name, value_of(set))?;
            let chosen = asked.entries.into_iter().map(|entry| axis.own(entry));
            axis.entries = chosen.collect::<Result<_, _>>()?;
            swept = true;
        }
        if !swept {
            let known: Vec<String> = self.axes.iter().map(|axis| format!("`sweep.{}`", axis.key.text)).collect();
            let message = format!("`{key}` is not swept");
            return Err(Fault::at(set.key()?.1, message).help(format!("there is {}", known.join(", "))));
        }
        self.forget_cases();
        Ok(())
    }

    /// Removes a top-level key: `seeds` and `repetitions` say the same thing, and the last that is set holds.
    fn forget(&mut self, key: &str) {
        self.sets.retain(|(set, _)| set.text != key);
        if let DeValue::Table(table) = self.root.get_mut() {
            table.remove(key);
        }
    }
}

impl<'t> Axis<'t> {
    fn read(source: &Source, case: Option<&str>, key: Key<'t>, values: Node<'t>) -> Result<Self, Fault> {
        let first = key.text.split('.').next();
        if let Some(fixed) = FIXED.iter().find(|fixed| first == Some(fixed) && (key.text != CASE || case.is_some())) {
            return Err(Fault::at(key.span, format!("`{fixed}` is the same in every cell and cannot be swept")));
        }
        let span = values.span();
        let DeValue::Array(values) = values.into_inner() else {
            return Err(Fault::at(span, "a sweep takes a list").help("for example [\"10ms\", \"20ms\"]"));
        };
        if values.is_empty() {
            return Err(Fault::at(span, "a sweep over nothing makes no runs"));
        }
        let mut entries: Vec<Entry<'t>> = Vec::new();
        for value in values {
            let entry = Entry::read(source, value);
            if entries.iter().any(|other| other.shown == entry.shown) {
                let message = format!("`{}` is swept twice", entry.shown);
                return Err(
                    Fault::at(entry.value.span(), message).help("tell them apart: { label = ..., value = ... }")
                );
            }
            entries.push(entry);
        }
        Ok(Self { key, entries, case: case.map(str::to_owned) })
    }

    /// The axis's own entry of this name, if it has one.
    fn own(&self, entry: Entry<'t>) -> Result<Entry<'t>, Fault> {
        match self.entries.iter().find(|own| own.shown == entry.shown) {
            Some(own) => Ok(own.clone()),
            None if self.key.text == CASE => {
                Err(Fault::unknown(entry.value.span(), CASE, &entry.shown, &self.labels()))
            }
            None => Ok(entry),
        }
    }

    /// The entry that `--set` means: one that shows as its text, or a new one. There are no new cases.
    fn choose(&self, set: &'t Set) -> Result<Entry<'t>, Fault> {
        let value = value_of(set);
        let shown = value.get_ref().as_str().unwrap_or(set.value().0.trim()).to_owned();
        self.own(Entry { shown, value })
    }

    /// What its entries show.
    fn labels(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| entry.shown.as_str()).collect()
    }
}

impl<'t> Entry<'t> {
    /// `{ label, value }`, or a value that is its own label.
    fn read(source: &Source, mut node: Node<'t>) -> Self {
        if let DeValue::Table(table) = node.get_mut()
            && let Some(label) = table.get("label").and_then(|label| label.get_ref().as_str()).map(str::to_owned)
            && let Some(value) = table.remove("value")
        {
            return Self { shown: label, value };
        }
        let written = || source.slice(&node.span()).to_owned();
        Self { shown: node.get_ref().as_str().map_or_else(written, str::to_owned), value: node }
    }

    /// A case is a table, without the keys that are the same in every cell.
    fn only_what_may_differ(&self) -> Result<(), Fault> {
        let DeValue::Table(table) = self.value.get_ref() else {
            let fault = Fault::at(self.value.span(), "a case is a table of what differs");
            return Err(fault.key(format!("{CASE}.{}", self.shown)));
        };
        match table.keys().find(|key| FIXED.contains(&key.get_ref().as_ref())) {
            Some(key) => {
                let message = format!("`{}` is the same in every case", key.get_ref());
                Err(Fault::at(key.span(), message).key(format!("{CASE}.{}.{}", self.shown, key.get_ref())))
            }
            None => Ok(()),
        }
    }
}

/// Takes a top-level key out of the tree.
fn take<'t>(root: &mut Node<'t>, key: &str) -> Option<Node<'t>> {
    match root.get_mut() {
        DeValue::Table(table) => table.remove(key),
        _ => None,
    }
}

/// Turns the names in `sweep.case` into their fragments; without it all cases are swept. They turn slowest, and so come
/// under what else is swept.
fn lay_out_cases<'t>(source: &Source, cases: Option<Node<'t>>, axes: &mut Vec<Axis<'t>>) -> Result<(), Fault> {
    let axis = axes.iter().position(|axis| axis.key.text == CASE).map(|index| axes.remove(index));
    let Some(cases) = cases else {
        let none = |axis: Axis<'_>| Fault::at(axis.key.span, "the scenario has no [case.NAME]").key(CASE);
        return axis.map_or(Ok(()), |axis| Err(none(axis)));
    };
    let span = cases.span();
    let DeValue::Table(cases) = cases.into_inner() else {
        return Err(Fault::at(span, "cases are tables").help("[case.NAME], then what differs").key(CASE));
    };
    let mut all = Vec::new();
    for (name, fragment) in cases {
        let mut entry = Entry { shown: name.get_ref().to_string(), value: fragment };
        if let Some(sweep) = take(&mut entry.value, SWEEP) {
            let told = |fault: Fault| {
                let below = fault.key.clone();
                fault.key(format!("{CASE}.{}.{SWEEP}.{below}", entry.shown))
            };
            collect(source, Some(&entry.shown), None, sweep, axes).map_err(told)?;
        }
        entry.only_what_may_differ()?;
        all.push(entry);
    }
    let all = Axis { key: Key { text: CASE.into(), span }, entries: all, case: None };
    let chosen = match axis {
        Some(mut axis) => {
            for entry in &mut axis.entries {
                let case = all.entries.iter().find(|case| case.shown == entry.shown);
                let unknown = || Fault::unknown(entry.value.span(), CASE, &entry.shown, &all.labels()).key(CASE);
                *entry = case.ok_or_else(unknown)?.clone();
            }
            axis
        }
        None => all,
    };
    axes.insert(0, chosen);
    Ok(())
}

/// Collects the axes below `node`, of all cases or of one: `"a.b" = [...]` and `a.b = [...]` are the same.
fn collect<'t>(
    source: &Source,
    case: Option<&str>,
    above: Option<&Key<'t>>,
    node: Node<'t>,
    axes: &mut Vec<Axis<'t>>,
) -> Result<(), Fault> {
    let span = node.span();
    match (node.into_inner(), above) {
        (DeValue::Table(table), _) => table.into_iter().try_for_each(|(part, value)| {
            let text = above.map_or(part.to_string(), |above| format!("{}.{}", above.text, part.get_ref()));
            collect(source, case, Some(&Key { text: text.into(), span: part.span() }), value, axes)
        }),
        (value, Some(key)) => {
            let beside = |axis: &&Axis<'_>| axis.case.is_none() || axis.case.as_deref() == case;
            if let Some(other) = axes.iter().filter(beside).find(|other| keys::covers(&key.text, &other.key.text)) {
                let message = format!("`{}` would overwrite the sweep of `{}`", key.text, other.key.text);
                return Err(Fault::at(key.span.clone(), message).key(key.text.as_ref()));
            }
            let axis = Axis::read(source, case, key.clone(), Spanned::new(span, value));
            axes.push(axis.map_err(|fault| fault.key(key.text.as_ref()))?);
            Ok(())
        }
        (_, None) => Err(Fault::at(span, "[sweep] is a table").help("\"flow.tcp.congestion\" = [\"cubic\", \"reno\"]")),
    }
}

/// A set's value: TOML if it is TOML, else the text itself.
fn value_of(set: &Set) -> Node<'_> {
    let (text, span) = set.value();
    match parse::parse(&set.document).map(Spanned::into_inner) {
        Ok(DeValue::Table(mut table)) if table.len() == 1 => table.remove(Set::NAME),
        _ => None,
    }
    .unwrap_or_else(|| Spanned::new(span, DeValue::String(text.trim().into())))
}
