//! `cargo xtask bpf`: the objects of the eBPF programs in `kernel/bpf`, which are in the tree.

use crate::shell;
use std::fs;
use std::path::{Path, PathBuf};

/// The version of clang that made the objects in the tree. Another version generates other instructions.
const CLANG: &str = "14.0";
/// `-mcpu=v3` is what Linux 5.1 and later understand; BTF is made of the debug information.
const FLAGS: &str = "-O2 -g -fdebug-compilation-dir=. -Wall -Wextra -Werror -Wno-unused-parameter -mcpu=v3 -target bpf";

/// Builds all objects into the tree.
pub(crate) fn build() -> Result<(), String> {
    if let Some(found) = other_clang()? {
        eprintln!("bpf: the objects in the tree were made with clang {CLANG}; this is `{found}`");
    }
    build_into(&sources().join("objects"))
}

/// Builds all objects into the target folder and compares them with those in the tree. With another clang, or none, nothing
/// is compared, and a message says so.
pub(crate) fn check() -> Result<(), String> {
    if let Some(missing) =
        ["clang", "llvm-strip"].into_iter().find(|tool| !shell::succeeds(&format!("{tool} --version")))
    {
        return shell::print(&format!("bpf: objects not compared: there is no {missing}\n"));
    }
    if let Some(found) = other_clang()? {
        return shell::print(&format!(
            "bpf: objects not compared: they were made with clang {CLANG}, this is `{found}`\n"
        ));
    }
    let built = shell::target().join("bpf");
    build_into(&built)?;
    let stored = sources().join("objects");
    let stale: Vec<String> = names(&built, "o")?
        .into_iter()
        .chain(names(&stored, "o")?)
        .filter(|name| {
            let bytes = |folder: &Path| fs::read(folder.join(format!("{name}.o"))).ok();
            bytes(&built) != bytes(&stored)
        })
        .collect();
    match stale.first() {
        None => shell::print("bpf: the objects match their sources\n"),
        Some(name) => Err(format!("kernel/bpf/objects/{name}.o does not match its source: cargo xtask bpf")),
    }
}

fn sources() -> PathBuf {
    shell::root().join("kernel/bpf")
}

/// The version that clang prints, if it is not [`CLANG`].
fn other_clang() -> Result<Option<String>, String> {
    let version = shell::output("clang --version")?;
    let first = version.lines().next().unwrap_or_default();
    Ok((!first.contains(&format!("version {CLANG}."))).then(|| first.to_owned()))
}

fn build_into(folder: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for name in names(&sources(), "bpf.c")? {
        let object = folder.join(format!("{name}.o"));
        // Relative, because the names of sources are in the object.
        shell::run(&format!("env -C kernel/bpf clang {FLAGS} -c {name}.bpf.c -o {}", object.display()))?;
        shell::run(&format!("llvm-strip -g {}", object.display()))?;
    }
    Ok(())
}

/// The names, without extension, of the files of a folder, sorted.
fn names(folder: &Path, extension: &str) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let file_names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> =
        file_names.filter_map(|name| Some(name.strip_suffix(&format!(".{extension}"))?.to_owned())).collect();
    names.sort();
    Ok(names)
}
