//! The virtual environment of the tests' Python programs, in `target/python`.

use crate::shell;
use std::fs;

/// What is installed into it.
const REQUIREMENTS: &str = "cli/tests/tunnel/python/requirements.txt";

/// Makes the environment, unless it has everything already.
pub(crate) fn run() -> Result<(), String> {
    let (folder, requirements) = (shell::target().join("python"), shell::root().join(REQUIREMENTS));
    let io_error = |error: std::io::Error| format!("{}: {error}", folder.display());
    let wanted = fs::read(&requirements).map_err(io_error)?;
    let installed = folder.join("requirements.txt");
    if fs::read(&installed).is_ok_and(|text| text == wanted) {
        return Ok(());
    }
    shell::run(&format!("python3 -m venv --clear {}", folder.display()))?;
    let pip = folder.join("bin/pip");
    shell::run(&format!("{} install --quiet --disable-pip-version-check -r {REQUIREMENTS}", pip.display()))?;
    fs::write(&installed, wanted).map_err(io_error)
}
