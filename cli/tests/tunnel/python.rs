//! The Python programs of these tests.

use std::path::{Path, PathBuf};
use testing::{Reason, skip};

/// The folder of the programs.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tunnel/python")
}

/// The interpreter of the virtual environment that `cargo xtask setup` makes. `None`, and the test is skipped, without
/// it.
pub(crate) fn interpreter() -> Option<PathBuf> {
    let interpreter = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("python/bin/python3");
    if !interpreter.is_file() {
        skip(Reason::Missing, "the virtual environment of Python that `cargo xtask setup` makes");
        return None;
    }
    Some(interpreter)
}
