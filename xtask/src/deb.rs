//! `cargo xtask deb`: the Debian package, by `dpkg-deb` alone.
//!
//! It holds the program, its systemd units, the daemon's user, an empty `/etc/ropewalk` that only root and this user may
//! read, and the licences.

use crate::{dist, shell};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Dependencies of the package: the libraries that the program links. iproute2 is not one, because the daemon uses
/// netlink. `systemd-sysusers` makes the daemon's user.
const DEPENDS: &str = "libc6 (>= 2.36), libgcc-s1, systemd | systemd-standalone-sysusers | systemd-sysusers";

/// Which eBPF programs are loaded at boot: a file that administrators change.
const KERNEL_DEFAULT: &str = "etc/default/ropewalk-kernel";

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
    let version = shell::version()?;
    let architecture = shell::output("dpkg --print-architecture")?.trim().to_owned();
    let target = shell::target();
    let (root, package) = (shell::root(), target.join("debian/ropewalk"));
    let _ = fs::remove_dir_all(&package);
    let files = [
        (program.clone(), "usr/bin/ropewalk", 0o755),
        (root.join("packaging/ropewalk@.service"), "usr/lib/systemd/system/ropewalk@.service", 0o644),
        (root.join("packaging/ropewalk-kernel.service"), "usr/lib/systemd/system/ropewalk-kernel.service", 0o644),
        (root.join("packaging/ropewalk-kernel.default"), KERNEL_DEFAULT, 0o644),
        (root.join("packaging/sysusers.conf"), "usr/lib/sysusers.d/ropewalk.conf", 0o644),
        (root.join("packaging/copyright"), "usr/share/doc/ropewalk/copyright", 0o644),
        (root.join("LICENSE-MIT"), "usr/share/doc/ropewalk/LICENSE-MIT", 0o644),
        (root.join("packaging/rw0.toml.example"), "usr/share/doc/ropewalk/examples/rw0.toml", 0o644),
        (root.join("packaging/postinst"), "DEBIAN/postinst", 0o755),
        (root.join("packaging/prerm"), "DEBIAN/prerm", 0o755),
    ];
    for (source, target_path, mode) in files {
        copy(&source, &package.join(target_path), mode)?;
    }
    write_manual(&program, &package)?;
    let configurations = package.join("etc/ropewalk");
    fs::create_dir_all(&configurations).map_err(|error| io_error(&configurations, &error))?;
    fs::set_permissions(&configurations, Permissions::from_mode(0o700))
        .map_err(|error| io_error(&configurations, &error))?;
    let settings = package.join("DEBIAN/conffiles");
    fs::write(&settings, format!("/{KERNEL_DEFAULT}\n")).map_err(|error| io_error(&settings, &error))?;
    let control = package.join("DEBIAN/control");
    fs::write(&control, control_file(&version, &architecture)).map_err(|error| io_error(&control, &error))?;
    let deb = target.join(format!("debian/ropewalk_{version}_{architecture}.deb"));
    // No file is newer than the commit, so that the same program gives the same package.
    let time = shell::output("git log -1 --format=%ct")?;
    let line = format!("dpkg-deb --root-owner-group --build {} {}", package.display(), deb.display());
    shell::run_with(&[("SOURCE_DATE_EPOCH", time.trim())], &line)?;
    shell::print(&format!("{}\n", deb.display()))
}

/// Writes manual pages and completions, which the program makes.
fn write_manual(program: &Path, package: &Path) -> Result<(), String> {
    let pages = package.join("usr/share/man/man1");
    fs::create_dir_all(&pages).map_err(|error| io_error(&pages, &error))?;
    shell::run(&format!("{} man {}", program.display(), pages.display()))?;
    for (name, file) in COMPLETIONS {
        let (file, script) = (package.join(file), shell::output(&format!("{} completions {name}", program.display()))?);
        let folder = file.parent().unwrap_or(package);
        fs::create_dir_all(folder).and_then(|()| fs::write(&file, script)).map_err(|error| io_error(&file, &error))?;
    }
    Ok(())
}

fn control_file(version: &str, architecture: &str) -> String {
    format!(
        "Package: ropewalk\nVersion: {version}\nArchitecture: {architecture}\nSection: net\nPriority: optional\n\
         Maintainer: The Ropewalk authors <ropewalk@localhost>\nDepends: {DEPENDS}\n\
         Description: several uplinks as one encrypted link\n \
         A multipath GRE-in-UDP tunnel with congestion control on each path, striping of single\n \
         flows, loss repair and bounded reordering; and the simulator that it was studied with.\n"
    )
}

fn copy(source: &Path, destination: &Path, mode: u32) -> Result<(), String> {
    let folder = destination.parent().unwrap_or(destination);
    fs::create_dir_all(folder).map_err(|error| io_error(folder, &error))?;
    fs::copy(source, destination).map_err(|error| io_error(source, &error))?;
    fs::set_permissions(destination, Permissions::from_mode(mode)).map_err(|error| io_error(destination, &error))
}

fn io_error(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
