//! Panics and errors of the checked code, turned into violations.

use crate::Violation;
use params::AlgorithmError;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of `check`. A panic or an error of the checked code becomes a violation; an error may already be one.
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
