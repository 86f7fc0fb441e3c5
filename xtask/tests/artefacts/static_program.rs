//! The static program, and the archive that `cargo binstall` fetches.

use crate::support::{artefact, run, static_program, version};
use std::fs;

/// The segment type of the path of a dynamic linker (System V ABI, "Program Header").
const PT_INTERP: u32 = 3;

#[test]
fn it_needs_no_library() {
    let Some(program) = static_program() else { return };
    let bytes = fs::read(program).unwrap();
    // ELF64, little-endian: `e_phoff` at 32, `e_phentsize` at 54, `e_phnum` at 56.
    let number = |at: usize, length: usize| {
        bytes[at..at + length].iter().rev().fold(0_usize, |value, byte| value << 8 | usize::from(*byte))
    };
    let (start, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    let kinds: Vec<u32> = (0..count).map(|index| number(start + index * size, 4) as u32).collect();
    assert!(!kinds.is_empty() && !kinds.contains(&PT_INTERP), "{kinds:?}");
    // A release's own, or with the commit of the build.
    let base = env!("CARGO_PKG_VERSION");
    let version = version();
    let rest = version.strip_prefix(base).unwrap_or_else(|| panic!("{version} is not of {base}"));
    assert!(rest.is_empty() || rest.starts_with("~git") || rest.starts_with("+git"), "{version}");
}

#[test]
fn its_archive_has_the_name_that_binstall_asks_for() {
    let Some(program) = static_program() else { return };
    let archive = artefact("static").unwrap();
    let archive = archive.to_str().unwrap();
    let target = program.iter().rev().nth(2).unwrap().to_str().unwrap();
    let metadata = run(env!("CARGO"), &["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "ropewalk").unwrap();
    let url = package["metadata"]["binstall"]["pkg-url"].as_str().unwrap();
    let url = url.replace("{ version }", &version()).replace("{ target }", target);
    assert_eq!(url.rsplit('/').next(), archive.rsplit('/').next());
    assert_eq!(run("tar", &["--list", "--file", archive]), "LICENSE-APACHE\nLICENSE-MIT\nropewalk\n");
}
