//! Errors of algorithms whose code is not built in.

use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// An error of an algorithm's own code, such as a Python exception. It ends the run.
///
/// Controllers and schedulers return no errors, because built-in ones never fail. An algorithm that can fail unwinds
/// with this error to the caller that started the run.
#[derive(Debug)]
pub struct AlgorithmError(pub Box<dyn Error + Send + Sync>);

impl AlgorithmError {
    /// Ends the run. Unlike a panic, it prints nothing.
    pub fn raise(self) -> ! {
        resume_unwind(Box::new(self))
    }

    /// Returns the result of `run`, or the error with which an algorithm ended it. After an error the caller discards
    /// whatever `run` has changed.
    ///
    /// # Errors
    /// The error of an algorithm. Panics are not caught.
    pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, Self> {
        catch_unwind(AssertUnwindSafe(run)).map_err(|payload| match payload.downcast::<Self>() {
            Ok(error) => *error,
            Err(panic) => resume_unwind(panic),
        })
    }
}

impl fmt::Display for AlgorithmError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for AlgorithmError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}
