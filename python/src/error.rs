//! Errors as exceptions. The classes are Python's (`ropewalk/errors.py`), so that they have attributes and can be pickled.

use ::learning::ActionError;
use pyo3::prelude::*;

/// The exception `name` of `ropewalk.errors`, made from `arguments`.
fn exception<'py>(py: Python<'py>, name: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let class = py.import("ropewalk.errors").and_then(|errors| errors.getattr(name));
    class.and_then(|class| class.call1(arguments)).map_or_else(|error| error, PyErr::from_value)
}

/// `ScenarioError`, with the text that the command line shows and the location of the error.
pub(crate) fn scenario(py: Python<'_>, error: &::scenario::Error) -> PyErr {
    let arguments = (error.to_string(), error.file_name(), error.line(), error.key(), error.message(), error.help());
    exception(py, "ScenarioError", arguments)
}

/// `ConfigError` with this message.
pub(crate) fn environment(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "ConfigError", (message,))
}

/// `ActionError` for an action that is not finite, of so many worlds and learners in each.
pub(crate) fn action(py: Python<'_>, fault: &ActionError, worlds: usize, learners: usize) -> PyErr {
    let ActionError { world, learner, path, step, value } = fault;
    let world = if worlds > 1 { format!("world {world}, ") } else { String::new() };
    let flow = if learners > 1 { format!("flow_{learner}, ") } else { String::new() };
    let message = format!("{world}{flow}path {path}, step {step}: the action is {value}; it has to be a finite number");
    exception(py, "ActionError", (message,))
}

/// `PolicyError` with this message.
pub(crate) fn policy(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "PolicyError", (message,))
}

/// `ResultsError`: a fault in a results folder, or in a query of results.
pub(crate) fn results(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "ResultsError", (message,))
}

/// The exception of a study that does not start, or that stops.
pub(crate) fn runner(py: Python<'_>, error: &runner::Error) -> PyErr {
    match error {
        runner::Error::Scenario(error) => scenario(py, error),
        runner::Error::Run(message) => exception(py, "RunError", (message,)),
        runner::Error::Environment(message) => results(py, message),
    }
}
