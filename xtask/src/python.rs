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

/// The folder of the environment `name` with the packages of the file `requirements`, and of those that its first lines
/// name (`-r FILE`); it is made unless it already has them.
pub(crate) fn environment(name: &str, requirements: &str) -> Result<PathBuf, String> {
    let (folder, wanted) = (shell::target().join(name), shell::root().join(requirements));
    let io_error = |error: std::io::Error| format!("{}: {error}", folder.display());
    let wanted = text(&wanted).map_err(io_error)?;
    let installed = folder.join("requirements.txt");
    if fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
        return Ok(folder);
    }
    create(&folder)?;
    let pip = folder.join("bin/pip");
    shell::run(&format!("{} install --quiet --disable-pip-version-check -r {requirements}", pip.display()))?;
    fs::write(&installed, wanted).map_err(io_error)?;
    Ok(folder)
}

/// The text of a file of requirements, after those of the files that it names.
fn text(file: &Path) -> std::io::Result<String> {
    let own = fs::read_to_string(file)?;
    let named = own.lines().filter_map(|line| line.strip_prefix("-r "));
    let mut texts: Vec<String> = named.map(|name| text(&file.with_file_name(name.trim()))).collect::<Result<_, _>>()?;
    texts.push(own);
    Ok(texts.concat())
}

/// Makes an empty environment in `folder`, replacing any other.
pub(crate) fn create(folder: &Path) -> Result<(), String> {
    shell::run(&format!("python3 -m venv --clear {}", folder.display()))
}
