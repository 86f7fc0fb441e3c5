//! Congestion controllers and schedulers whose code is Python: registered, and checked by the same rules as the built-in
//! ones. `ropewalk/algorithm.py` has the base classes.

mod controller;
mod decision;
mod events;
mod failure;
mod scheduler;
mod window;

use ::schedule::{Fill, Needs, SchedulerEntry};
use control::{AlgorithmEntry, Deviation, Ecn, Kept, ParamKind, Parameter, Properties, RegisterError, kept_text};
use controller::{Class, Kind};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The declarations of a class.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Facts {
    name: String,
    aliases: Vec<String>,
    title: String,
    source: String,
    parameters: Vec<Declared>,
    code_version: String,
}

/// A declared parameter: a number with default and range, or choices.
#[derive(FromPyObject)]
struct Declared(String, String, Option<(f64, f64, f64)>, Vec<String>);

/// The declarations of a class of controllers in addition to [`Facts`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ControllerFacts {
    kind: String,
    per_packet_ecn: bool,
    min_cwnd: u32,
    deviations: Vec<(String, String)>,
    single_path: Option<String>,
}

/// The declarations of a class of schedulers in addition to [`Facts`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct SchedulerFacts {
    needs_measurements: bool,
    fills_send_buffer: bool,
}

/// A rule that a class breaks.
#[pyclass(frozen, get_all, module = "ropewalk.algorithm")]
#[derive(Clone)]
struct Violation {
    rule: String,
    message: String,
    steps: Vec<String>,
    text: String,
}

#[pymethods]
impl Violation {
    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("<Violation: {}>", self.rule)
    }
}

impl From<conformance::Violation> for Violation {
    fn from(violation: conformance::Violation) -> Self {
        let text = violation.to_string();
        Self { rule: violation.rule.to_owned(), message: violation.message, steps: violation.steps, text }
    }
}

fn kept_texts(texts: Vec<String>) -> &'static [&'static str] {
    static LISTS: Kept<Vec<&str>> = Kept::new();
    LISTS.keep(texts.into_iter().map(kept_text).collect())
}

fn kept_parameters(declared: Vec<Declared>) -> &'static [Parameter] {
    static LISTS: Kept<Vec<Parameter>> = Kept::new();
    LISTS.keep(declared.into_iter().map(parameter).collect())
}

fn parameter(Declared(name, description, number, choices): Declared) -> Parameter {
    let kind = match number {
        Some((default, min, max)) => ParamKind::Number { default, min, max },
        None => ParamKind::Choice(kept_texts(choices)),
    };
    Parameter { name: kept_text(name), description: kept_text(description), kind }
}

fn deviation((name, reason): (String, String)) -> PyResult<(Deviation, &'static str)> {
    let deviation = match name.as_str() {
        "raises-unfilled-cwnd" => Deviation::RaisesUnfilledCwnd,
        "keeps-cwnd-on-undo" => Deviation::KeepsCwndOnUndo,
        "sets-cwnd-on-recovered" => Deviation::SetsCwndOnRecovered,
        "reduces-on-loss-after-mark" => Deviation::ReducesOnLossAfterMark,
        _ => return Err(PyValueError::new_err(format!("there is no deviation `{name}`"))),
    };
    Ok((deviation, kept_text(reason)))
}

fn algorithm_entry(class: Py<PyAny>, facts: Facts, more: ControllerFacts) -> PyResult<AlgorithmEntry> {
    static DEVIATIONS: Kept<Vec<(Deviation, &str)>> = Kept::new();
    let kind = match more.kind.as_str() {
        "path" => Kind::Path,
        "window" => Kind::Window,
        _ => Kind::Group,
    };
    let (name, parameters) = (kept_text(facts.name), kept_parameters(facts.parameters));
    let deviations = more.deviations.into_iter().map(deviation).collect::<PyResult<Vec<_>>>()?;
    Ok(AlgorithmEntry {
        name,
        aliases: kept_texts(facts.aliases),
        title: kept_text(facts.title),
        source: kept_text(facts.source),
        parameters,
        properties: Properties {
            ecn: if more.per_packet_ecn { |_| Ecn::PerPacket } else { |_| Ecn::Classic },
            min_cwnd: more.min_cwnd,
            deviations: DEVIATIONS.keep(deviations),
            single_path: more.single_path.map(kept_text),
            code_version: Some(kept_text(facts.code_version)),
            ..Properties::DEFAULT
        },
        constructor: Class { class, name, parameters }.constructor(kind),
    })
}

fn scheduler_entry(class: Py<PyAny>, facts: Facts, more: &SchedulerFacts) -> SchedulerEntry {
    let (name, parameters) = (kept_text(facts.name), kept_parameters(facts.parameters));
    SchedulerEntry {
        name,
        aliases: kept_texts(facts.aliases),
        title: kept_text(facts.title),
        source: kept_text(facts.source),
        code_version: Some(kept_text(facts.code_version)),
        needs: if more.needs_measurements { Needs::Measurements } else { Needs::Nothing },
        fill: if more.fills_send_buffer { Fill::SendBuffer } else { Fill::Cwnd },
        parameters,
        constructor: Class { class, name, parameters }.scheduler(),
    }
}

fn refused(error: &RegisterError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pyfunction]
fn register_controller(class: Py<PyAny>, facts: Facts, more: ControllerFacts) -> PyResult<()> {
    let entry = algorithm_entry(class, facts, more)?;
    control::registry::register(entry).map(drop).map_err(|error| refused(&error))
}

#[pyfunction]
fn register_scheduler(class: Py<PyAny>, facts: Facts, more: SchedulerFacts) -> PyResult<()> {
    ::schedule::register(scheduler_entry(class, facts, &more)).map(drop).map_err(|error| refused(&error))
}

#[pyfunction]
fn check_controller(py: Python<'_>, class: Py<PyAny>, facts: Facts, more: ControllerFacts) -> PyResult<Vec<Violation>> {
    let entry = algorithm_entry(class, facts, more)?;
    Ok(py.detach(|| conformance::controller::check(&entry)).into_iter().map(Violation::from).collect())
}

#[pyfunction]
fn check_scheduler(py: Python<'_>, class: Py<PyAny>, facts: Facts, more: SchedulerFacts) -> Vec<Violation> {
    let entry = scheduler_entry(class, facts, &more);
    py.detach(|| conformance::scheduler::check(&entry)).into_iter().map(Violation::from).collect()
}

/// The names of all congestion controllers: the built-in ones, then the registered ones.
#[pyfunction]
fn controllers() -> Vec<&'static str> {
    control::registry::entries().into_iter().map(|entry| entry.name).collect()
}

/// The names of all schedulers: the built-in ones, then the registered ones.
#[pyfunction]
fn schedulers() -> Vec<&'static str> {
    ::schedule::entries().into_iter().map(|entry| entry.name).collect()
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    events::register(module)?;
    scheduler::register(module)?;
    module.add_class::<decision::Decision>()?;
    module.add_class::<window::CwndState>()?;
    module.add_class::<Violation>()?;
    module.add_function(wrap_pyfunction!(register_controller, module)?)?;
    module.add_function(wrap_pyfunction!(register_scheduler, module)?)?;
    module.add_function(wrap_pyfunction!(check_controller, module)?)?;
    module.add_function(wrap_pyfunction!(check_scheduler, module)?)?;
    module.add_function(wrap_pyfunction!(controllers, module)?)?;
    module.add_function(wrap_pyfunction!(schedulers, module)?)
}
