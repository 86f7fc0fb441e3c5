//! `cargo xtask deb`: the Debian package, by `dpkg-deb` alone.
//!
//! It holds the program, its systemd units, the daemon's user, an empty `/etc/ropewalk` that only root and this user may
//! read, and the licences. Its version is the program's.

mod control;
mod tree;

use crate::artefacts::archive;
use crate::{dist, shell};
use control::Control;
use std::path::{Path, PathBuf};
use tree::Tree;

/// Which eBPF programs are loaded at boot: a file that administrators change.
const KERNEL_DEFAULT: &str = "etc/default/ropewalk-kernel";

/// Files of the package with their modes, and where they come from.
const FILES: &[(&str, u32, &str)] = &[
    ("usr/lib/systemd/system/ropewalk@.service", 0o644, "packaging/ropewalk@.service"),
    ("usr/lib/systemd/system/ropewalk-keep@.service", 0o644, "packaging/ropewalk-keep@.service"),
    ("usr/lib/systemd/system/ropewalk-kernel.service", 0o644, "packaging/ropewalk-kernel.service"),
    (KERNEL_DEFAULT, 0o644, "packaging/ropewalk-kernel.default"),
    ("usr/lib/sysusers.d/ropewalk.conf", 0o644, "packaging/sysusers.conf"),
    ("usr/share/doc/ropewalk/copyright", 0o644, "packaging/copyright"),
    ("usr/share/doc/ropewalk/LICENSE-MIT", 0o644, "LICENSE-MIT"),
    ("usr/share/doc/ropewalk/examples/rw0.toml", 0o644, "packaging/rw0.toml.example"),
    ("DEBIAN/postinst", 0o755, "packaging/postinst"),
    ("DEBIAN/prerm", 0o755, "packaging/prerm"),
    ("DEBIAN/postrm", 0o755, "packaging/postrm"),
];

/// Shells, and where Debian's packages have completions for them.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/ropewalk"),
    ("fish", "usr/share/fish/vendor_completions.d/ropewalk.fish"),
    ("zsh", "usr/share/zsh/vendor-completions/_ropewalk"),
];

/// `cargo xtask deb [--profile FILE | --program FILE]`: packs the program into `target/debian/ropewalk_VERSION_ARCH.deb`.
/// It builds the program, with a new profile if none is given, as `dist` does; or it packs another one.
pub(crate) fn build(options: &[&str]) -> Result<(), String> {
    let program = match options {
        ["--program", file] => PathBuf::from(file),
        profile => dist::build(profile)?,
    };
    let version = version_of(&program)?;
    let architecture = shell::output("dpkg --print-architecture")?.trim().to_owned();
    let target = shell::target();
    let tree = Tree::new(target.join("debian/ropewalk"))?;
    tree.write("usr/bin/ropewalk", 0o755, &archive::read(&program)?)?;
    for (path, mode, source) in FILES {
        tree.write(path, *mode, &archive::read(&shell::root().join(source))?)?;
    }
    tree.folder("etc/ropewalk", 0o700)?;
    write_manual(&program, &tree)?;
    // No file is newer than the commit, so that the same program gives the same package.
    let time = shell::output("git log -1 --format=%ct")?;
    let control = Control::new(&version, &architecture)?;
    write_changes(&tree, &control, time.trim())?;
    tree.write("DEBIAN/conffiles", 0o644, format!("/{KERNEL_DEFAULT}\n").as_bytes())?;
    tree.write("DEBIAN/control", 0o644, control.text(tree.installed_kib()?).as_bytes())?;
    let deb = target.join(format!("debian/ropewalk_{version}_{architecture}.deb"));
    let line = format!("dpkg-deb --root-owner-group --build {} {}", tree.root().display(), deb.display());
    shell::run_with(&[("SOURCE_DATE_EPOCH", time.trim())], &line)?;
    shell::print(&format!("{}\n", deb.display()))
}

/// The version that a program says it is.
fn version_of(program: &Path) -> Result<String, String> {
    let printed = shell::output(&format!("{} --version", program.display()))?;
    let version = printed.trim().strip_prefix("ropewalk ").map(str::to_owned);
    version.ok_or_else(|| format!("`{} --version` printed `{}`", program.display(), printed.trim()))
}

/// Writes manual pages and completions, which the program makes.
fn write_manual(program: &Path, tree: &Tree) -> Result<(), String> {
    let pages = tree.folder("usr/share/man/man1", 0o755)?;
    shell::run(&format!("{} man {}", program.display(), pages.display()))?;
    for (name, file) in COMPLETIONS {
        let script = shell::output(&format!("{} completions {name}", program.display()))?;
        tree.write(file, 0o644, script.as_bytes())?;
    }
    Ok(())
}

/// Writes the changes of all versions, and those of the package (Debian policy, sections 12.7 and 4.4).
fn write_changes(tree: &Tree, control: &Control, time: &str) -> Result<(), String> {
    let changes = archive::read(&shell::root().join("CHANGELOG.md"))?;
    tree.write("usr/share/doc/ropewalk/changelog.gz", 0o644, &archive::gzip(&changes)?)?;
    let date = shell::output(&format!("date --utc --rfc-email --date=@{time}"))?;
    let changes = control.changelog(date.trim());
    tree.write("usr/share/doc/ropewalk/changelog.Debian.gz", 0o644, &archive::gzip(changes.as_bytes())?)
}
