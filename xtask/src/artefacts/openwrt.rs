//! `cargo xtask openwrt`: a package for OpenWrt 25.12 and later, whose package manager is apk.
//!
//! It has the second format of such packages: a gzip stream with the description and scripts, then one with the files. Not
//! signed, as OpenWrt's own build leaves single packages: `apk add --allow-untrusted FILE`.

use super::archive::{self, File, Files};
use super::static_program::{Program, write};
use crate::shell;
use std::path::PathBuf;

/// OpenWrt's name of a processor, by the compiler's name. The package manager refuses others; `--arch` names a subtype such
/// as `aarch64_cortex-a53`, which runs the same program.
const ARCHITECTURES: &[(&str, &str)] =
    &[("x86_64", "x86_64"), ("aarch64", "aarch64_generic"), ("armv7", "arm_cortex-a7")];
/// Files of the package, and their sources.
const FILES: &[(&str, u32, &str)] = &[
    ("etc/config/ropewalk", 0o600, "packaging/openwrt/ropewalk.config"),
    ("etc/init.d/ropewalk", 0o755, "packaging/openwrt/ropewalk.init"),
    ("etc/uci-defaults/99-ropewalk", 0o755, "packaging/openwrt/uci-defaults"),
    ("lib/netifd/proto/ropewalk.sh", 0o755, "packaging/openwrt/proto.sh"),
    ("lib/upgrade/keep.d/ropewalk", 0o644, "packaging/openwrt/keep"),
    ("usr/share/ropewalk/rw0.toml.example", 0o644, "packaging/rw0.toml.example"),
    ("www/luci-static/resources/protocol/ropewalk.js", 0o644, "packaging/openwrt/luci.js"),
];

/// Writes `ropewalk-VERSION-TARGET.apk`.
pub(super) fn build(program: &Program, architecture: Option<&str>) -> Result<PathBuf, String> {
    let default = ARCHITECTURES.iter().find(|(processor, _)| *processor == program.processor());
    let architecture = architecture
        .or(default.map(|(_, name)| *name))
        .ok_or_else(|| format!("OpenWrt's name of {} is not known: --arch NAME", program.processor()))?;
    write(program.artefact(".apk"), &package(&files(program)?, &apk_version(&program.version), architecture)?)
}

/// A version in the form of apk-package(5): a build before the release is `_pre`, one after it `_git`, with the time.
fn apk_version(version: &str) -> String {
    let build = version.split_once("~git").map(|parts| (parts, "pre"));
    match build.or_else(|| version.split_once("+git").map(|parts| (parts, "git"))) {
        Some(((base, commit), suffix)) => {
            format!("{base}_{suffix}{}", commit.split('.').next().unwrap_or_default())
        }
        None => version.to_owned(),
    }
}

/// All files of the package.
fn files(program: &Program) -> Result<Files, String> {
    let mut files = Files::from([
        ("usr/bin/ropewalk".to_owned(), File::Regular(0o755, archive::read(&program.file)?)),
        ("etc/ropewalk".to_owned(), File::Folder(0o700)),
        ("etc/rc.d/S95ropewalk".to_owned(), File::Link("../init.d/ropewalk".to_owned())),
    ]);
    for (path, mode, source) in FILES {
        files.insert((*path).to_owned(), File::Regular(*mode, archive::read(&shell::root().join(source))?));
    }
    Ok(files)
}

/// The bytes of a package with these files.
fn package(files: &Files, version: &str, architecture: &str) -> Result<Vec<u8>, String> {
    let size: usize =
        files.values().map(|file| if let File::Regular(_, content) = file { content.len() } else { 0 }).sum();
    let data = archive::gzip(&archive::tar(files, true)?)?;
    let description = format!(
        "pkgname = ropewalk\npkgver = {version}-r1\npkgdesc = Several uplinks as one encrypted link\n\
         size = {size}\narch = {architecture}\nlicense = MIT OR Apache-2.0\ndepend = kmod-tun\ndatahash = {}\n",
        archive::sha256(&data)
    );
    let control = Files::from([(".PKGINFO".to_owned(), File::Regular(0o644, description.into_bytes()))]);
    let mut package = archive::gzip(&archive::tar_segment(&control)?)?;
    package.extend(data);
    Ok(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_builds_keep_their_order() {
        assert_eq!(apk_version("0.1.0"), "0.1.0");
        assert_eq!(apk_version("0.1.0~git20261127135423.06ae08f7ab.changed"), "0.1.0_pre20261127135423");
        assert_eq!(apk_version("0.1.0+git20261127135423.06ae08f7ab"), "0.1.0_git20261127135423");
    }
}
