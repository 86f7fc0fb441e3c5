//! Panics and errors of the checked code, as violations.

use crate::Violation;
use params::AlgorithmError;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of `check`; a violation if the code that it calls panics or raises an error, which may be a violation.
pub(crate) fn caught<T>(check: impl FnOnce() -> Result<T, Violation>) -> Result<T, Violation> {
    let failed = |message| Violation { rule: "it never fails", message, steps: Vec::new() };
    catch_unwind(AssertUnwindSafe(check)).unwrap_or_else(|payload| {
        Err(match payload.downcast::<AlgorithmError>() {
            Ok(error) => match error.0.downcast::<Violation>() {
                Ok(violation) => *violation,
                Err(error) => failed(error.to_string()),
            },
            Err(payload) => failed(match payload.downcast_ref::<String>() {
                Some(text) => text.clone(),
                None => payload.downcast_ref::<&str>().copied().unwrap_or("a panic without a message").to_owned(),
            }),
        })
    })
}
