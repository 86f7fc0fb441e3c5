//! `cargo xtask wheel`: the Python package as a wheel, with the program `ropewalk` as a command.
//!
//! The program goes into the wheel as it is (not a script that calls Python), so that root can run it from a virtual
//! environment.

use crate::{python, shell};
use std::fs;
use std::path::{Path, PathBuf};

/// The profile of a wheel that is released.
const RELEASED: &str = "dist";
/// What builds and tests the package.
const REQUIREMENTS: &str = "python/requirements.txt";
/// Where maturin looks for files that become commands of the environment. There only while a wheel is built.
const DATA: &str = "python/ropewalk._native.data";

/// `cargo xtask wheel [--profile NAME]`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let profile = match arguments {
        [] => RELEASED,
        ["--profile", profile] => profile,
        _ => return Err(format!("no option `{}` of wheel: --profile NAME", arguments.join(" "))),
    };
    shell::run(&format!("cargo build --locked --profile {profile} --package ropewalk --all-features"))?;
    shell::print(&format!("{}\n", build(&tools()?, profile)?.display()))
}

/// `cargo xtask python-types`: writes `python/ropewalk/build.py` from the schema of a scenario.
pub(crate) fn types() -> Result<(), String> {
    let python = tools()?.join("bin/python");
    let schema = shell::output("cargo run --quiet --locked -p ropewalk -- schema")?;
    shell::run_with_input(&format!("{} python/generate.py", python.display()), &schema)
}

/// The environment with the tools.
pub(crate) fn tools() -> Result<PathBuf, String> {
    python::environment("python-tools", REQUIREMENTS)
}

/// Builds a wheel with the program that this profile's build has made, in `target/wheels`, the only one there; returns
/// its path.
pub(crate) fn build(tools: &Path, profile: &str) -> Result<PathBuf, String> {
    let (wheels, data) = (shell::target().join("wheels"), shell::root().join(DATA));
    let _ = fs::remove_dir_all(&wheels);
    let folder = if profile == "dev" { "debug" } else { profile };
    let (program, scripts) = (shell::target().join(folder).join("ropewalk"), data.join("scripts"));
    let io_error = |error: std::io::Error| format!("{}: {error}", scripts.display());
    fs::create_dir_all(&scripts).map_err(io_error)?;
    fs::copy(&program, scripts.join("ropewalk")).map_err(io_error)?;
    let (maturin, out) = (tools.join("bin/maturin"), wheels.display());
    let line = format!(
        "{} build --quiet --locked --profile {profile} --manifest-path python/Cargo.toml --out {out}",
        maturin.display()
    );
    let built = shell::run(&line);
    fs::remove_dir_all(&data).map_err(io_error)?;
    built?;
    let wheel = fs::read_dir(&wheels).map_err(io_error)?.next().ok_or("maturin made no wheel")?;
    Ok(wheel.map_err(io_error)?.path())
}
