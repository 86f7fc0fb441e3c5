//! `cargo xtask wheel`: the Python package as a wheel, with the program `ropewalk` as a command.
//!
//! The program goes into the wheel as it is (not a script that calls Python), so that root can run it from a virtual
//! environment.

use crate::artefacts::archive;
use crate::{python, shell};
use std::fs;
use std::path::{Path, PathBuf};

/// The profile of a wheel that is released.
const RELEASED: &str = "dist";
/// The packages that build and test the package.
const REQUIREMENTS: &str = "python/requirements.txt";
/// The folder in which maturin looks for files that become commands of the environment. It exists only while a wheel is
/// built.
const DATA: &str = "python/ropewalk._native.data";

/// The tools with which a wheel is linked by zig.
const ZIG_REQUIREMENTS: &str = "python/requirements-zig.txt";
/// The digest of the schema that the classes of a scenario were made of.
const TYPES_SOURCE: &str = "python/schema.sha256";
/// The C library that a wheel linked by zig requires, and the name of the platforms that have it.
const GLIBC: (&str, &str) = ("2.17", "manylinux2014");

/// `cargo xtask wheel [--profile NAME] [--target TRIPLE]`.
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let (mut profile, mut target) = (RELEASED, None);
    for option in arguments.chunks(2) {
        match *option {
            ["--profile", name] => profile = name,
            ["--target", triple] => target = Some(triple),
            _ => return Err(format!("no option `{}` of wheel: --profile NAME, --target TRIPLE", option.join(" "))),
        }
    }
    let wheel = match target {
        Some(triple) => build_for(triple, profile)?,
        None => {
            shell::run(&format!("cargo build --locked --profile {profile} --package ropewalk --all-features"))?;
            build(&tools()?, profile)?
        }
    };
    shell::print(&format!("{}\n", wheel.display()))
}

/// Builds a wheel for a target, which may be of another processor, and for older systems than this one: linked by zig.
fn build_for(triple: &str, profile: &str) -> Result<PathBuf, String> {
    let (glibc, platform) = GLIBC;
    let tools = python::environment("python-zig", ZIG_REQUIREMENTS)?;
    // maturin and cargo-zigbuild find zig by the first python3 of the path.
    let path = format!("{}:{}", tools.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let variables = [("PATH", path.as_str())];
    let line = format!("cargo-zigbuild zigbuild --locked --profile {profile} --target {triple}.{glibc}");
    shell::run_with(&variables, &format!("{line} --package ropewalk --all-features"))?;
    let options = format!("--zig --target {triple} --compatibility {platform}");
    package(&variables, &tools, &shell::target().join(triple), profile, &options)
}

/// `cargo xtask python-types`: writes `python/ropewalk/build.py` and the modules of its parts from a scenario's schema.
pub(crate) fn types() -> Result<(), String> {
    let python = tools()?.join("bin/python");
    let schema = shell::output("cargo run --quiet --locked -p ropewalk -- schema")?;
    shell::run_with_input(&format!("{} python/generate.py", python.display()), &schema)?;
    let path = shell::root().join(TYPES_SOURCE);
    fs::write(&path, digest(&schema)).map_err(|error| format!("{}: {error}", path.display()))
}

/// Fails when the classes for Python were made of another schema than this program's.
pub(crate) fn check_types(program: &Path) -> Result<(), String> {
    let schema = shell::output(&format!("{} schema", program.display()))?;
    let stored = fs::read_to_string(shell::root().join(TYPES_SOURCE)).unwrap_or_default();
    if stored == digest(&schema) {
        Ok(())
    } else {
        Err(format!("{TYPES_SOURCE} is of another schema: run `cargo xtask python-types`"))
    }
}

fn digest(schema: &str) -> String {
    archive::sha256(schema.as_bytes()) + "\n"
}

/// The environment with the tools.
pub(crate) fn tools() -> Result<PathBuf, String> {
    python::environment("python-tools", REQUIREMENTS)
}

/// Builds a wheel with the program that this profile's build has made, as the only one in `target/wheels`; returns its path.
pub(crate) fn build(tools: &Path, profile: &str) -> Result<PathBuf, String> {
    package(&[], tools, &shell::target(), profile, "")
}

/// Makes a wheel with the program in `built`, by maturin with these options.
fn package(
    variables: &[(&str, &str)],
    tools: &Path,
    built: &Path,
    profile: &str,
    options: &str,
) -> Result<PathBuf, String> {
    let (wheels, data) = (shell::target().join("wheels"), shell::root().join(DATA));
    let _ = fs::remove_dir_all(&wheels);
    let folder = if profile == "dev" { "debug" } else { profile };
    let (program, scripts) = (built.join(folder).join("ropewalk"), data.join("scripts"));
    let io_error = |error: std::io::Error| format!("{}: {error}", scripts.display());
    fs::create_dir_all(&scripts).map_err(io_error)?;
    fs::copy(&program, scripts.join("ropewalk")).map_err(io_error)?;
    let (maturin, out) = (tools.join("bin/maturin"), wheels.display());
    let line = format!(
        "{} build --quiet --locked --profile {profile} {options} --manifest-path python/Cargo.toml --out {out}",
        maturin.display()
    );
    let packaged = shell::run_with(variables, &line);
    fs::remove_dir_all(&data).map_err(io_error)?;
    packaged?;
    let wheel = fs::read_dir(&wheels).map_err(io_error)?.next().ok_or("maturin made no wheel")?;
    Ok(wheel.map_err(io_error)?.path())
}
