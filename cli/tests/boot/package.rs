//! The Debian packages of the program under test.

use crate::debian;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The package.
pub(crate) fn current() -> &'static Path {
    static PACKAGE: OnceLock<PathBuf> = OnceLock::new();
    PACKAGE.get_or_init(|| pack(&[], &stripped("current", |bytes| bytes), "current.deb"))
}

/// The package of the kernel's congestion control, with the same program.
#[cfg(feature = "kernel")]
pub(crate) fn kernel() -> &'static Path {
    static PACKAGE: OnceLock<PathBuf> = OnceLock::new();
    PACKAGE.get_or_init(|| pack(&["kernel"], &stripped("kernel", |bytes| bytes), "kernel.deb"))
}

/// An earlier version of it: the same program, which says that it is one.
pub(crate) fn earlier() -> &'static Path {
    static PACKAGE: OnceLock<PathBuf> = OnceLock::new();
    PACKAGE.get_or_init(|| pack(&[], &stripped("earlier", earlier_version), "earlier.deb"))
}

/// Replaces the version in a program, `0.1.0~git...`, by `0.0.0~git...`.
fn earlier_version(mut program: Vec<u8>) -> Vec<u8> {
    let printed = Command::new(env!("CARGO_BIN_EXE_ropewalk")).arg("--version").output().unwrap().stdout;
    let version = printed.trim_ascii().strip_prefix(b"ropewalk ").unwrap();
    let places: Vec<_> = (0..program.len() - version.len()).filter(|at| program[*at..].starts_with(version)).collect();
    let patch = env!("CARGO_PKG_VERSION").replace(|c: char| c.is_ascii_digit(), "0");
    places.iter().for_each(|at| program[*at..][..patch.len()].copy_from_slice(patch.as_bytes()));
    program
}

/// The program without symbols, which are nine tenths of it, after `edit`.
fn stripped(name: &str, edit: impl FnOnce(Vec<u8>) -> Vec<u8>) -> PathBuf {
    let program = debian::folder().join(format!("ropewalk-{name}-{}", std::process::id()));
    let strip = Command::new("strip").args([env!("CARGO_BIN_EXE_ropewalk"), "-o"]).arg(&program).status().unwrap();
    assert!(strip.success());
    fs::write(&program, edit(fs::read(&program).unwrap())).unwrap();
    program
}

/// Runs a chore, with a folder of GnuPG; returns what it prints.
pub(crate) fn chore(arguments: &[&str], gnupg: &Path) -> String {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--locked", "--package", "xtask", "--"]).args(arguments);
    // Compressing takes longer than all the rest.
    let output = command.env("DPKG_DEB_COMPRESSOR_TYPE", "none").env("GNUPGHOME", gnupg).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Packs a program as a chore does, as the package of this kind.
fn pack(kind: &[&str], program: &Path, name: &str) -> PathBuf {
    let _lock = debian::lock();
    let folder = debian::folder().join("packed");
    let [folder, program_path] = [folder.as_path(), program].map(|path| path.to_str().unwrap());
    let words = [&["deb", "--out", folder], kind, &["--program", program_path]].concat();
    let printed = chore(&words, &debian::folder());
    fs::remove_file(program).unwrap();
    let package = debian::folder().join(name);
    fs::rename(printed.lines().next_back().expect("it names the package"), &package).unwrap();
    package
}
