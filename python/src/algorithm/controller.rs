//! Controllers whose code is a Python class.

use super::decision::Decision;
use super::events;
use super::failure::{PythonError, expect};
use super::window::WindowOps;
use control::common::CwndController;
use control::{Constructor, Context, Controller, PathController, PathEvent};
use control::{ParamKind, Parameter, Params};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::sync::Arc;
use units::{Instant, PathId};

/// A class, and the arguments of its instances.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) class: Py<PyAny>,
    pub(crate) name: &'static str,
    pub(crate) parameters: &'static [Parameter],
}

impl Class {
    /// An instance with these parameters and further arguments.
    pub(crate) fn instance(&self, params: &Params, more: impl Fn(&Bound<'_, PyDict>) -> PyResult<()>) -> Instance {
        let instance = Python::attach(|py| {
            let make = || {
                let keywords = PyDict::new(py);
                keywords.set_item("parameters", self.values(py, params)?)?;
                more(&keywords)?;
                self.class.call(py, (), Some(&keywords))
            };
            make().map_err(|error| PythonError::new(py, &format!("`{}` cannot be made:", self.name), &error))
        });
        Instance { instance, name: self.name }
    }

    fn values<'py>(&self, py: Python<'py>, params: &Params) -> PyResult<Bound<'py, PyDict>> {
        let values = PyDict::new(py);
        for parameter in self.parameters {
            match parameter.kind {
                ParamKind::Number { .. } => values.set_item(parameter.name, params.number(parameter.name))?,
                ParamKind::Choice(_) | ParamKind::File => {
                    values.set_item(parameter.name, params.choice(parameter.name))?;
                }
            }
        }
        Ok(values)
    }

    /// The constructor of a kind of class.
    pub(crate) fn constructor(self, kind: Kind) -> Constructor {
        match kind {
            Kind::Path => Constructor::PerPathDyn(Arc::new(move |params| {
                Box::new(PyPathController { instance: self.instance(params, |_| Ok(())), decision: None })
            })),
            Kind::Window => Constructor::PerPathDyn(Arc::new(move |params| {
                CwndController::boxed(WindowOps::new(self.instance(params, |_| Ok(()))))
            })),
            Kind::Group => Constructor::CoupledDyn(Arc::new(move |params| {
                Box::new(PyController { instance: self.instance(params, |_| Ok(())), decisions: BTreeMap::new() })
            })),
        }
    }
}

/// A kind of controller class.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// `PathController`: one instance per path.
    Path,
    /// `CongestionOps`: one instance per path, whose window `control::common` keeps.
    Window,
    /// `Controller`: one instance for the paths of a connection.
    Group,
}

/// An instance, or the reason why there is none, which ends the run at its first use.
#[derive(Debug)]
pub(crate) struct Instance {
    instance: Result<Py<PyAny>, PythonError>,
    pub(crate) name: &'static str,
}

impl Instance {
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.instance.as_ref().unwrap_or_else(|error| error.raise()).bind(py)
    }

    /// The instance, if it could be made.
    pub(crate) fn made<'py>(&self, py: Python<'py>) -> Option<&Bound<'py, PyAny>> {
        self.instance.as_ref().ok().map(|instance| instance.bind(py))
    }

    /// The decision for an event of a path; an exception ends the run.
    fn decide(&self, path: Option<PathId>, event: &PathEvent, cx: &mut Context<'_>) -> control::Decision {
        Python::attach(|py| {
            let decide = |event: &Bound<'_, PyAny>| {
                let now = cx.now.0;
                let answer = match path {
                    None => self.get(py).call_method1("on_event", (event, now))?,
                    Some(path) => self.get(py).call_method1("on_event", (path.0, event, now))?,
                };
                match answer.cast::<Decision>() {
                    Ok(decision) => Ok(decision.get().0),
                    Err(_) => {
                        Err(PyTypeError::new_err(format!("on_event returned {}, not a Decision", answer.repr()?)))
                    }
                }
            };
            let event = events::to_python(py, event, || cx.rng.bits());
            let event = expect(py, event, || format!("`{}`", self.name));
            let decision = decide(&event);
            expect(py, decision, || self.failed_on(&event, path, cx.now))
        })
    }

    fn failed_on(&self, event: &Bound<'_, PyAny>, path: Option<PathId>, now: Instant) -> String {
        let path = path.map_or(String::new(), |path| format!(" of path {}", path.0));
        let seconds = now.0 as f64 / 1e9;
        let event = event.repr().map_or_else(|error| error.to_string(), |text| text.to_string());
        format!("`{}` failed at {seconds} s on {event}{path}:", self.name)
    }
}

#[derive(Debug)]
struct PyPathController {
    instance: Instance,
    decision: Option<control::Decision>,
}

impl PathController for PyPathController {
    fn on_event(&mut self, event: &PathEvent, cx: &mut Context<'_>) {
        self.decision = Some(self.instance.decide(None, event, cx));
    }

    fn decision(&self) -> control::Decision {
        self.decision.expect("senders read it after an event")
    }
}

#[derive(Debug)]
struct PyController {
    instance: Instance,
    decisions: BTreeMap<PathId, control::Decision>,
}

impl Controller for PyController {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        self.decisions.insert(path, self.instance.decide(Some(path), event, cx));
    }

    fn decision(&self, path: PathId) -> control::Decision {
        self.decisions[&path]
    }
}
