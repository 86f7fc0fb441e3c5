//! Writes the table of built-in scenarios: the shipped ones and the files that they name, without those that compare with
//! a stored results folder and those that only time the simulator.

#![expect(clippy::disallowed_methods, reason = "a build script reads and writes files")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Folders that are left out.
const LEFT_OUT: [&str; 2] = ["bench", "validation"];
/// Endings of the files that are built in.
const ENDINGS: [&str; 3] = ["onnx", "toml", "trace"];

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    // A published package has none.
    if root.is_dir() {
        collect(&root, &mut files)?;
    }
    files.sort();
    let mut table = "&[\n".to_owned();
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).display().to_string();
        let _ = writeln!(table, "    ({name:?}, include_bytes!({:?})),", file.display().to_string());
    }
    table += "]\n";
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    std::fs::write(out.join("built_in.rs"), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for path in std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())) {
        let path = path?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_wanted = path.extension().is_some_and(|ending| ENDINGS.iter().any(|known| ending == *known));
        match path.is_dir() {
            true if LEFT_OUT.contains(&name.as_str()) => {}
            true => collect(&path, files)?,
            false if is_wanted => files.push(path),
            false => {}
        }
    }
    Ok(())
}
