//! From the layout in the file to the resolved one: keys must be swept, values must be among the swept ones.
//!
//! Beside the swept keys there is `flow`, whose values are the flows and subflows. A `--set` or `--quick` may have
//! taken swept keys or values away. Then a table, figure or claim shows what is left, and is left out where nothing is.

use super::file::{ClaimFile, FitFile, HeatMapFile, LayoutFile, ScopeFile, TableFile, Values};
use super::fit::Fit;
use super::model::{BY_FLOW, Claim, Column, Layout, Scope, Table, Test};
use super::reference::ReferenceTable;
use parse::{Diagnostic, Error, Spanned};
use scenario::model::{Experiment, Subflow};
use scenario::{Scenario, Sweep};
use std::collections::BTreeSet;
use std::ops::Range;

/// The layout of a scenario's report.
pub(crate) fn read(scenario: &Scenario) -> Result<Layout, Error> {
    scenario.section(|file: &LayoutFile, sweep| layout(scenario, sweep, file))
}

/// The fitted constants of a scenario; without those whose cells a `--set` or `--quick` has taken away.
pub(crate) fn read_fits(scenario: &Scenario) -> Result<Vec<Fit>, Error> {
    scenario.section(|file: &LayoutFile, sweep| {
        let context = Context::new(scenario, sweep);
        file.fit.iter().map(|fit| context.fit(fit)).filter_map(Result::transpose).collect()
    })
}

fn layout(scenario: &Scenario, sweep: &Sweep, file: &LayoutFile) -> Result<Layout, Diagnostic> {
    let context = Context::new(scenario, sweep);
    let tables = file.table.iter().map(|table| context.table(table));
    let figures = file.figure.iter().map(|figure| context.figure(figure));
    let claims = file.claim.iter().map(|claim| context.claim(claim));
    Ok(Layout {
        tables: tables.filter_map(Result::transpose).collect::<Result<_, _>>()?,
        figures: figures.filter_map(Result::transpose).collect::<Result<_, _>>()?,
        claims: claims.filter_map(Result::transpose).collect::<Result<_, _>>()?,
    })
}

/// The names of all flows and subflows, the latter as `FLOW/PATH`; of copies also the name of all.
fn flows<'e>(experiments: impl Iterator<Item = &'e Experiment>) -> Vec<String> {
    let mut names = Vec::new();
    for experiment in experiments {
        for flow in &experiment.flows {
            for name in flow.copy_of.iter().chain([&flow.name]) {
                let of_path = |subflow: &Subflow| format!("{name}/{}", experiment.paths[subflow.path].name);
                names.extend(std::iter::once(name.clone()).chain(flow.kind.subflows().iter().map(of_path)));
            }
        }
    }
    without_repeats(names)
}

fn without_repeats(mut names: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// A key of a table, figure or claim that names a swept key, and its place.
pub(super) type KeyUse<'k> = (&'k str, Range<usize>);

pub(super) fn key_use(key: &Spanned<String>) -> KeyUse<'_> {
    (key.get(), key.span())
}

pub(super) struct Context<'a> {
    sweep: &'a Sweep,
    pub(super) flows: Vec<String>,
    /// The flows that have copies.
    copied: Vec<String>,
    /// Interval of the time series, nanoseconds.
    pub(super) sample: Option<u64>,
}

impl<'a> Context<'a> {
    fn new(scenario: &Scenario, sweep: &'a Sweep) -> Self {
        let experiments = || scenario.cells.iter().map(|cell| &cell.experiment);
        let sample = experiments().next().and_then(|experiment| experiment.sample).map(|sample| sample.0);
        let copied = experiments().flat_map(|experiment| &experiment.flows).filter_map(|flow| flow.copy_of.clone());
        Self { sweep, flows: flows(experiments()), copied: without_repeats(copied.collect()), sample }
    }

    fn fit(&self, given: &FitFile) -> Result<Option<Fit>, Diagnostic> {
        let scope = self.scope_with(&given.scope(), &[])?;
        scope.map(|scope| Fit::checked(given, scope)).transpose()
    }

    fn table(&self, given: &TableFile) -> Result<Option<Table>, Diagnostic> {
        let values = match given.value.get() {
            Values::One(value) => vec![Column { value: value.clone(), ..Column::default() }],
            Values::Several(values) => values.iter().map(Column::from).collect(),
        };
        if values.is_empty() || (given.columns.is_some() && values.len() > 1) {
            let diagnostic = Diagnostic::new(given.value.span(), "a table with `columns` shows one value");
            return Err(diagnostic.with_help("leave out `columns`, or write a table for each value"));
        }
        let rows = given.rows.get().list();
        if rows.is_empty() {
            return Err(Diagnostic::new(given.rows.span(), "a table has rows").with_help("rows = \"KEY\""));
        }
        let row_keys = rows.iter().map(|key| (key.as_str(), given.rows.span()));
        let keys: Vec<KeyUse<'_>> = row_keys.chain(given.columns.as_ref().map(key_use)).collect();
        let Some(scope) = self.scope_with(&given.scope(), &keys)? else { return Ok(None) };
        let mut flows = values.iter().filter_map(|column| column.flow.as_ref());
        flows.try_for_each(|flow| self.flow(flow, given.value.span()))?;
        let references = given.reference.iter().map(ReferenceTable::checked).collect::<Result<_, _>>()?;
        let heat_map = given.heat_map.as_ref().map(HeatMapFile::checked).transpose()?;
        let columns = given.columns.as_ref().map(|key| key.get().clone());
        let (title, rows) = (given.title.clone(), rows.to_vec());
        Ok(Some(Table { title, rows, columns, values, scope, references, heat_map }))
    }

    fn claim(&self, given: &ClaimFile) -> Result<Option<Claim>, Diagnostic> {
        let test = given.test()?;
        let keys = std::iter::once(&given.of).chain(&given.each).chain(&given.unknown);
        let keys: Vec<KeyUse<'_>> = keys.map(key_use).collect();
        for (index, (key, span)) in keys.iter().enumerate() {
            if keys[..index].iter().any(|(earlier, _)| earlier == key) {
                let diagnostic = Diagnostic::new(span.clone(), format!("the claim names `{key}` twice"));
                return Err(diagnostic.with_help("`of`, `each` and `unknown` are different keys"));
            }
        }
        let Some(mut scope) = self.scope_with(&given.scope(), &keys)? else { return Ok(None) };
        let key = |key: &Option<Spanned<String>>| key.as_ref().map(|key| key.get().clone());
        let (of, each, unknown) = (given.of.get().clone(), key(&given.each), key(&given.unknown));
        let labels = self.labels(&of);
        if let Some(name) = test.names().iter().find(|name| !labels.contains(&name.as_str())) {
            return self.check_absent(given.says.span(), &of, name, &labels).map(|()| None);
        }
        if of == BY_FLOW && !scope.only.contains_key(BY_FLOW) {
            // All flows, and the named subflows.
            let is_in_scope = |name: &&String| !name.contains('/') || test.names().contains(name);
            scope.only.insert(of.clone(), self.flows.iter().filter(is_in_scope).cloned().collect());
        }
        let within = if matches!(test, Test::Alike { .. }) { 0.0 } else { given.within() };
        let ClaimFile { says, source, published, note, expected_failure, value, .. } = given.clone();
        let says = says.get().clone();
        Ok(Some(Claim {
            says,
            source,
            value,
            of,
            each,
            unknown,
            scope,
            test,
            within,
            published,
            note,
            expected_failure,
        }))
    }

    /// The scope of what shows these swept keys; none if a `--set` has removed a key or all values of the scope.
    pub(super) fn scope_with(&self, scope: &ScopeFile<'_>, keys: &[KeyUse<'_>]) -> Result<Option<Scope>, Diagnostic> {
        if let Some(flows) = scope.only.get(BY_FLOW)
            && !keys.iter().any(|(key, _)| *key == BY_FLOW)
        {
            let diagnostic = Diagnostic::new(flows.span(), "nothing here goes by flow");
            return Err(diagnostic.with_help("`flow = \"NAME\"` chooses whose result is shown"));
        }
        for (key, span) in keys {
            if !self.is_swept(key, span)? {
                return Ok(None);
            }
        }
        self.scope(scope)
    }

    fn scope(&self, given: &ScopeFile<'_>) -> Result<Option<Scope>, Diagnostic> {
        let mut scope = Scope { copied: self.copied.clone(), section: given.section.to_owned(), ..Scope::default() };
        for (key, values) in given.only {
            if !self.is_swept(key, &values.span())? {
                continue;
            }
            let labels = self.labels(key);
            let (swept, absent): (Vec<&String>, Vec<&String>) =
                values.get().iter().partition(|value| labels.contains(&value.as_str()));
            absent.iter().try_for_each(|value| self.check_absent(values.span(), key, value, &labels))?;
            if swept.is_empty() {
                return Ok(None);
            }
            scope.only.insert(key.clone(), swept.into_iter().cloned().collect());
        }
        if let Some(flow) = given.flow {
            self.flow(flow.get(), flow.span())?;
            scope.flow = Some(flow.get().clone());
        }
        [scope.from_s, scope.until_s] = [self.instant(given.times[0])?, self.instant(given.times[1])?];
        if let Some(share) = given.attainable {
            if share.get().0 == 0.0 {
                return Err(Diagnostic::new(share.span(), "`attainable` must be more than zero"));
            }
            scope.attainable = Some(share.get().0);
        }
        Ok(Some(scope))
    }

    fn flow(&self, flow: &String, span: Range<usize>) -> Result<(), Diagnostic> {
        if self.flows.contains(flow) {
            return Ok(());
        }
        let known: Vec<&str> = self.flows.iter().map(String::as_str).collect();
        Err(Diagnostic::unknown_name(span, "flow", flow, &known))
    }

    /// An instant at which there is a sample, seconds.
    fn instant(&self, given: &Option<Spanned<parse::Time>>) -> Result<Option<f64>, Diagnostic> {
        let Some(time) = given else { return Ok(None) };
        match self.sample {
            Some(sample) if sample > 0 && time.get().0.0.is_multiple_of(sample) => Ok(Some(time.get().0.as_secs_f64())),
            Some(_) => {
                Err(Diagnostic::new(time.span(), "there is no sample at this instant")
                    .with_help("a multiple of `sample`"))
            }
            None => {
                Err(Diagnostic::new(time.span(), "a part of the run needs the time series").with_help("set `sample`"))
            }
        }
    }

    /// Whether a key is swept. A key that never was is an error; one that a `--set` fixed is not.
    fn is_swept(&self, key: &str, span: &Range<usize>) -> Result<bool, Diagnostic> {
        let swept: Vec<&str> = self.sweep.keys.iter().map(|swept| swept.key.as_str()).collect();
        match () {
            () if key == BY_FLOW || swept.contains(&key) => Ok(true),
            () if self.sweep.is_derived || self.sweep.removed.iter().any(|removed| removed == key) => Ok(false),
            () => Err(Diagnostic::unknown_name(span.clone(), "swept key", key, &swept)),
        }
    }

    /// The values of a swept key, in all cases together.
    pub(super) fn labels(&self, key: &str) -> Vec<&str> {
        if key == BY_FLOW {
            return self.flows.iter().map(String::as_str).collect();
        }
        let keys = self.sweep.keys.iter().filter(|swept| swept.key == key);
        keys.flat_map(|swept| swept.values.iter().map(String::as_str)).collect()
    }

    /// Refuses a value that is not swept, unless a `--set` or `--quick` has changed the sweep.
    fn check_absent(&self, span: Range<usize>, key: &str, value: &str, known: &[&str]) -> Result<(), Diagnostic> {
        match self.sweep.is_unmodified {
            true => Err(Diagnostic::unknown_name(span, &format!("value of `{key}`"), value, known)),
            false => Ok(()),
        }
    }
}
