//! `cargo xtask test`: everything that is checked before a change goes in.

use crate::{setup, shell, tidy};

/// Stops at the first failure. The tests come last, so that their summary is what one sees at the end.
pub(crate) fn run() -> Result<(), String> {
    setup::run()?;
    shell::run("cargo fmt --all --check")?;
    shell::run("cargo clippy --quiet --workspace --all-targets -- -D warnings")?;
    tidy::run(false)?;
    shell::run("cargo test --workspace")
}
