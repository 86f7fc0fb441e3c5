//! `cargo xtask kernel`: builds the lab's kernel, which has virtual time.
//!
//! Debian's User-Mode Linux runs in real time: good for a quick look, but the load of the machine affects its results. The
//! same Linux, built with `CONFIG_UML_TIME_TRAVEL_SUPPORT`, has a clock that stands still while it computes.

use crate::setup::Package;
use crate::{setup, shell};
use std::fs;

/// The kernel that is built, relative to the workspace.
pub(crate) const KERNEL: &str = "target/kernel/linux";
/// Folder of the unpacked sources.
const SOURCE: &str = "target/kernel/source";
/// Options of the kernel in addition to the defaults of User-Mode Linux.
const CONFIG: &str = include_str!("kernel.config");
/// The place of the size of a processor's floating-point registers, bytes, and its new value: those of processors with AMX
/// take 11 008 bytes, and with less room no program starts.
const REGISTERS: &str = "arch/x86/um/user-offsets.c";
const REGISTER_SIZES: [&str; 2] = ["DEFINE_LONGS(HOST_FP_SIZE, 2696)", "DEFINE_LONGS(HOST_FP_SIZE, 12288)"];
/// Debian's sources.
const ARCHIVE: &str = "/usr/src/linux-source-6.1.tar.xz";

const PACKAGES: &[Package] = &[
    Package { name: "linux-source-6.1", command: ARCHIVE, purpose: "the kernel: its sources" },
    Package { name: "xz-utils", command: "xz", purpose: "the kernel: unpacking it" },
    Package { name: "gcc", command: "gcc", purpose: "the kernel: compiling it" },
    Package { name: "make", command: "make", purpose: "the kernel: building it" },
    Package { name: "flex", command: "flex", purpose: "the kernel: its configuration" },
    Package { name: "bison", command: "bison", purpose: "the kernel: its configuration" },
    Package { name: "bc", command: "bc", purpose: "the kernel: its configuration" },
];

/// Builds the kernel, which takes a few minutes, and two gigabytes of disk space during the build.
pub(crate) fn build() -> Result<(), String> {
    if let Some(manual_command) = setup::install(PACKAGES)? {
        return Err(manual_command);
    }
    let io_error = |error: std::io::Error| format!("{SOURCE}: {error}");
    let source = shell::root().join(SOURCE);
    let _ = fs::remove_dir_all(&source);
    fs::create_dir_all(&source).map_err(io_error)?;
    shell::run(&format!("tar --extract --file {ARCHIVE} --directory {SOURCE} --strip-components=1"))?;
    let registers = fs::read_to_string(source.join(REGISTERS)).map_err(io_error)?;
    fs::write(source.join(REGISTERS), registers.replace(REGISTER_SIZES[0], REGISTER_SIZES[1])).map_err(io_error)?;
    shell::run(&format!("make -C {SOURCE} ARCH=um defconfig"))?;
    let config = fs::read_to_string(source.join(".config")).map_err(io_error)?;
    fs::write(source.join(".config"), config + CONFIG).map_err(io_error)?;
    shell::run(&format!("make -C {SOURCE} ARCH=um olddefconfig"))?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    shell::run(&format!("make --silent -C {SOURCE} ARCH=um -j{jobs} linux"))?;
    shell::run(&format!("strip -o {KERNEL} {SOURCE}/linux"))?;
    fs::remove_dir_all(source).map_err(io_error)
}

/// Builds the kernel if it does not exist. Without it the lab uses Debian's, so nothing fails if it cannot be built.
pub(crate) fn ensure() -> Result<(), String> {
    if shell::root().join(KERNEL).exists() {
        return shell::print("kernel: already built\n");
    }
    shell::print("kernel: building it; without it the lab runs in real time\n")?;
    build().or_else(|error| shell::print(&format!("kernel: not built; {error}\n")))
}
