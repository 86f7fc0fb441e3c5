//! Virtual environments for Python programs, in `target`.

use crate::shell;
use std::fs;
use std::path::{Path, PathBuf};

/// The packages of the tunnel's tests, for the environment `python`.
const TUNNEL_TESTS: &str = "cli/tests/tunnel/python/requirements.txt";

/// Makes the environment of the tunnel's tests.
pub(crate) fn run() -> Result<(), String> {
    environment("python", TUNNEL_TESTS).map(drop)
}

/// The folder of the environment `name` with the packages of the file `requirements`; it is made unless it already has them.
pub(crate) fn environment(name: &str, requirements: &str) -> Result<PathBuf, String> {
    let (folder, wanted) = (shell::target().join(name), shell::root().join(requirements));
    let io_error = |error: std::io::Error| format!("{}: {error}", folder.display());
    let wanted = fs::read(&wanted).map_err(io_error)?;
    let installed = folder.join("requirements.txt");
    if fs::read(&installed).is_ok_and(|text| text == wanted) {
        return Ok(folder);
    }
    create(&folder)?;
    let pip = folder.join("bin/pip");
    shell::run(&format!("{} install --quiet --disable-pip-version-check -r {requirements}", pip.display()))?;
    fs::write(&installed, wanted).map_err(io_error)?;
    Ok(folder)
}

/// Makes an empty environment in `folder`, replacing any other.
pub(crate) fn create(folder: &Path) -> Result<(), String> {
    shell::run(&format!("python3 -m venv --clear {}", folder.display()))
}
