//! `cargo xtask deb`: Debian packages, by `dpkg-deb` alone.
//!
//! - `ropewalk`: the whole program, its units, the daemon's user, and an empty `/etc/ropewalk` that only root and this user
//!   may read.
//! - `ropewalk-kernel`: congestion control for the kernel alone, as a small program, and its eBPF objects as files.
//!
//! The version of a package is that of its program. The two have no file in common, so that a host may have one or both.

mod control;
mod package;
mod tree;

use crate::artefacts::archive;
use crate::{dist, shell};
use control::Control;
use package::{KERNEL, Package, ROPEWALK};
use std::path::{Path, PathBuf};
use tree::Tree;

/// `cargo xtask deb [--out FOLDER] [kernel] [--profile FILE | --program FILE]`: packs the program into
/// `FOLDER/PACKAGE_VERSION_ARCH.deb`, by default in `target/debian`. It builds the program (the whole one with a new profile
/// if none is given, as `dist` does), or packs a given one.
pub(crate) fn build(options: &[&str]) -> Result<(), String> {
    let (folder, options) = match options {
        ["--out", folder, rest @ ..] => (PathBuf::from(folder), rest),
        _ => (default_folder(), options),
    };
    let (package, program) = match options {
        ["kernel", "--program", file] => (&KERNEL, PathBuf::from(file)),
        ["kernel"] => (&KERNEL, dist::build_loader()?),
        ["kernel", other, ..] => return Err(format!("no option `{other}`: --program FILE")),
        ["--program", file] => (&ROPEWALK, PathBuf::from(file)),
        profile => (&ROPEWALK, dist::build(profile)?),
    };
    shell::print(&format!("{}\n", pack(package, &program, &folder)?.display()))
}

fn default_folder() -> PathBuf {
    shell::target().join("debian")
}

/// Packs the program of `ropewalk-kernel`; returns the package's path.
pub(crate) fn pack_loader(program: &Path) -> Result<PathBuf, String> {
    pack(&KERNEL, program, &default_folder())
}

/// Packs a program into a folder, in which no other process packs at the same time.
fn pack(package: &'static Package, program: &Path, folder: &Path) -> Result<PathBuf, String> {
    let tree = Tree::new(folder.join(package.name))?;
    tree.write(&package.program(), 0o755, &archive::read(program)?)?;
    // Called by the name under which it is installed.
    let program = tree.root().join(package.program());
    let version = version_of(&program)?;
    for (path, mode, source) in package.files {
        tree.write(path, *mode, &archive::read(&shell::root().join(source))?)?;
    }
    (package.write_more)(&tree)?;
    write_manual(package, &program, &tree)?;
    // No file is newer than the commit, so that the same program makes the same package.
    let time = shell::output("git log -1 --format=%ct")?;
    let architecture = shell::output("dpkg --print-architecture")?.trim().to_owned();
    let control = Control::new(package, &version, &architecture)?;
    write_changes(&tree, &control, time.trim())?;
    tree.write("DEBIAN/control", 0o644, control.text(tree.installed_kib()?).as_bytes())?;
    let deb = folder.join(format!("{}_{version}_{architecture}.deb", package.name));
    let line = format!("dpkg-deb --root-owner-group --build {} {}", tree.root().display(), deb.display());
    shell::run_with(&[("SOURCE_DATE_EPOCH", time.trim())], &line)?;
    Ok(deb)
}

/// The version that a program prints.
fn version_of(program: &Path) -> Result<String, String> {
    let printed = shell::output(&format!("{} --version", program.display()))?;
    let version = printed.trim().split_once(' ').map(|(_, version)| version.to_owned());
    version.ok_or_else(|| format!("`{} --version` printed `{}`", program.display(), printed.trim()))
}

/// Writes manual pages and completions, which the program makes.
fn write_manual(package: &Package, program: &Path, tree: &Tree) -> Result<(), String> {
    let pages = tree.folder(&format!("usr/share/man/man{}", package.section), 0o755)?;
    shell::run(&format!("{} man {}", program.display(), pages.display()))?;
    for (shell_name, file) in package.completions() {
        let script = shell::output(&format!("{} completions {shell_name}", program.display()))?;
        tree.write(&file, 0o644, script.as_bytes())?;
    }
    Ok(())
}

/// Writes the changes of all versions, and those of the package (Debian policy, sections 12.7 and 4.4).
fn write_changes(tree: &Tree, control: &Control, time: &str) -> Result<(), String> {
    let changes = archive::read(&shell::root().join("CHANGELOG.md"))?;
    let folder = format!("usr/share/doc/{}", control.package());
    tree.write(&format!("{folder}/changelog.gz"), 0o644, &archive::gzip(&changes)?)?;
    let date = shell::output(&format!("date --utc --rfc-email --date=@{time}"))?;
    let changes = control.changelog(date.trim());
    tree.write(&format!("{folder}/changelog.Debian.gz"), 0o644, &archive::gzip(changes.as_bytes())?)
}
