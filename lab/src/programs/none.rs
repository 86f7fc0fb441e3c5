//! A build without the feature `kernel` has no programs.

use super::Programs;

/// Programs that a run uses: none.
#[derive(Debug)]
pub(crate) struct Hold;

impl Hold {
    /// Does nothing.
    #[expect(clippy::unnecessary_wraps, reason = "with the feature a kernel may refuse a program")]
    pub(crate) fn load(_: &[&str]) -> Result<Self, String> {
        Ok(Self)
    }

    /// Does nothing.
    pub(crate) fn join(_: &[&str]) -> Self {
        Self
    }
}

/// No programs, and the reason.
pub(crate) fn find() -> Programs {
    let reason = "this build has none: cargo install --path cli --features kernel,lab";
    Programs { names: Vec::new(), unavailable_reason: Some(reason.into()) }
}
