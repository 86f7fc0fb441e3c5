//! Real kernels for the lab: one whose time is virtual, and what it does, stored.
//!
//! Debian's User-Mode Linux runs in real time: good for a look, but the load of the machine gets into its results. The
//! same Linux, built with `CONFIG_UML_TIME_TRAVEL_SUPPORT`, has a clock that stands still while it computes.

use crate::setup::Package;
use crate::{bench, setup, shell};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// What is built, below the workspace.
const KERNEL: &str = "target/kernel/linux";
/// Where its sources are unpacked.
const SOURCE: &str = "target/kernel/source";
/// Where the traces are collected, so that a broken-off run can go on.
const COLLECTED: &str = "target/kernel/traces";
/// Where they are kept.
const TRACES: &str = "scenarios/validation/kernel-6.1";
/// What the kernel has beyond User-Mode Linux's own defaults.
const CONFIG: &str = include_str!("kernel.config");
/// Debian's sources.
const ARCHIVE: &str = "/usr/src/linux-source-6.1.tar.xz";

const PACKAGES: &[Package] = &[
    Package { name: "linux-source-6.1", command: ARCHIVE, why: "the kernel: its sources" },
    Package { name: "xz-utils", command: "xz", why: "the kernel: unpacking it" },
    Package { name: "gcc", command: "gcc", why: "the kernel: compiling it" },
    Package { name: "make", command: "make", why: "the kernel: building it" },
    Package { name: "flex", command: "flex", why: "the kernel: its configuration" },
    Package { name: "bison", command: "bison", why: "the kernel: its configuration" },
    Package { name: "bc", command: "bc", why: "the kernel: its configuration" },
];

/// Builds the kernel; some minutes, and two gigabytes while it lasts.
pub(crate) fn build() -> Result<(), String> {
    if let Some(by_hand) = setup::install(PACKAGES)? {
        return Err(by_hand);
    }
    let io = |why: std::io::Error| format!("{SOURCE}: {why}");
    let source = shell::root().join(SOURCE);
    let _ = fs::remove_dir_all(&source);
    fs::create_dir_all(&source).map_err(io)?;
    shell::run(&format!("tar --extract --file {ARCHIVE} --directory {SOURCE} --strip-components=1"))?;
    shell::run(&format!("make -C {SOURCE} ARCH=um defconfig"))?;
    let config = fs::read_to_string(source.join(".config")).map_err(io)?;
    fs::write(source.join(".config"), config + CONFIG).map_err(io)?;
    shell::run(&format!("make -C {SOURCE} ARCH=um olddefconfig"))?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    shell::run(&format!("make --silent -C {SOURCE} ARCH=um -j{jobs} linux"))?;
    shell::run(&format!("strip -o {KERNEL} {SOURCE}/linux"))?;
    fs::remove_dir_all(source).map_err(io)
}

/// Builds the kernel if it is not there. Without it the lab has Debian's, so nothing fails where it cannot be built.
pub(crate) fn ensure() -> Result<(), String> {
    if shell::root().join(KERNEL).exists() {
        return shell::say("kernel: it is there\n");
    }
    shell::say("kernel: it is built; without it the lab runs in real time\n")?;
    build().or_else(|why| shell::say(&format!("kernel: not built; {why}\n")))
}

/// Runs the validation scenario on that kernel and keeps its tables; the page can be made from them again.
pub(crate) fn traces() -> Result<(), String> {
    let root = shell::root();
    if !root.join(KERNEL).exists() {
        build()?;
    }
    setup::run()?;
    shell::run("cargo build --release --package ropewalk")?;
    let status = Command::new(bench::release_folder()?.join("ropewalk"))
        .arg0("ropewalk") // it stands in the manifest, which names no folder of this machine
        .args(["run", "scenarios/validation/kernel.toml", "--on", "kernel", "--seed", "1", "--out", COLLECTED])
        .env("ROPEWALK_LINUX", root.join(KERNEL))
        .current_dir(&root)
        .status();
    if !status.map_err(|why| format!("cannot run ropewalk: {why}"))?.success() {
        return Err("the runs failed; the same command goes on where it was".to_owned());
    }
    replace(&root.join(COLLECTED), &root.join(TRACES)).map_err(|why| format!("{TRACES}: {why}"))
}

fn replace(from: &Path, to: &Path) -> std::io::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() != "report.html" {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    fs::remove_dir_all(from)
}
