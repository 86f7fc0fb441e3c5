//! Errors of algorithms whose code is not built in.

use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// An error of an algorithm's own code, such as an exception of Python: the run ends with it.
///
/// Controllers and schedulers answer each event, without a way to fail, since built-in ones do not. An algorithm that
/// can fail unwinds with this error up to whoever started the run.
#[derive(Debug)]
pub struct AlgorithmError(pub Box<dyn Error + Send + Sync>);

impl AlgorithmError {
    /// Ends the run. Unlike a panic it prints nothing.
    pub fn raise(self) -> ! {
        resume_unwind(Box::new(self))
    }

    /// The result of `run`, or the error with which an algorithm ended it. What `run` has changed is to be dropped then.
    ///
    /// # Errors
    /// The error of an algorithm; panics pass.
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
