//! The tests of the Python package: the wheel in a virtual environment, types, formatting, and pytest.

use super::totals::TestTotals;
use crate::{python, shell, wheel};
use std::path::{Path, PathBuf};

/// The profile of the wheel: that of `cargo test`, which has built the program and most of the crates.
const PROFILE: &str = "dev";
/// Settings of the tools.
const CONFIG: &str = "python/pyproject.toml";
/// The check of a new environment that contains only the wheel and its dependencies.
const SMOKE: &str = "python/tests/smoke.py";
/// What tries frameworks that need PyTorch, and the packages of its environment.
const FRAMEWORKS: &str = "python/tests/frameworks.py";
const FRAMEWORKS_REQUIREMENTS: &str = "python/requirements-frameworks.txt";

/// The environment of the tests with the tools in it; it is made first, because that fails without a network.
pub(super) fn environment() -> Result<PathBuf, String> {
    wheel::tools()
}

/// The environment with the frameworks of reinforcement learning, which take gigabytes.
pub(super) fn frameworks_environment() -> Result<PathBuf, String> {
    python::environment("python-frameworks", FRAMEWORKS_REQUIREMENTS)
}

/// Builds the wheel, installs it into `environment`, and runs the tests and the parts of [`FRAMEWORKS`].
pub(super) fn run_frameworks(
    environment: &Path,
    variables: &[(&str, &Path)],
    total: &mut TestTotals,
) -> Result<(), String> {
    let wheel = wheel::build(environment, PROFILE)?;
    let tests = pytest(environment, &wheel, variables, total);
    let line = format!("{} {FRAMEWORKS}", environment.join("bin/python").display());
    total.begin_binary("frameworks".to_owned());
    let parts = shell::run_watched("frameworks", variables, &line, |line| total.add_part(line));
    total.end_binary();
    tests.and(parts)
}

/// Builds the wheel, installs it into `environment` and into a new one, and runs the tests, which note skipped tests in the
/// file of `variables`.
pub(super) fn run(environment: &Path, variables: &[(&str, &Path)], total: &mut TestTotals) -> Result<(), String> {
    let bin = environment.join("bin");
    let bin = bin.display();
    let ruff =
        ["format --check", "check"].map(|verb| format!("{bin}/ruff {verb} --config {CONFIG} python docs/notebooks"));
    ruff.iter().try_for_each(|line| shell::run(line))?;
    shell::run(&format!("{bin}/mypy --config-file {CONFIG} python/ropewalk python/tests"))?;
    let wheel = wheel::build(environment, PROFILE)?;
    let new = new_environment(&wheel.display().to_string())?;
    shell::run(&format!("{} {SMOKE}", new.join("bin/python").display()))?;
    pytest(environment, &wheel, variables, total)
}

/// Installs the wheel into `environment`, and runs the tests.
fn pytest(environment: &Path, wheel: &Path, variables: &[(&str, &Path)], total: &mut TestTotals) -> Result<(), String> {
    let bin = environment.join("bin");
    let (bin, wheel) = (bin.display(), wheel.display());
    shell::run(&format!("{bin}/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps {wheel}"))?;
    let line = format!("{bin}/pytest -c {CONFIG} -p no:cacheprovider -rfE --durations=20 python/tests");
    total.begin_binary("pytest".to_owned());
    let tests = shell::run_watched("pytest", variables, &line, |line| total.add_pytest(line));
    total.end_binary();
    tests
}

/// An environment with the wheel and its dependencies.
fn new_environment(wheel: &str) -> Result<PathBuf, String> {
    let folder = shell::target().join("python-new");
    python::create(&folder)?;
    let pip = folder.join("bin/pip");
    shell::run(&format!("{} install --quiet --disable-pip-version-check {wheel}", pip.display()))?;
    Ok(folder)
}
