//! The artefacts for other machines: a static program, an image for containers, a package for OpenWrt.

pub(crate) mod archive;
mod oci;
mod openwrt;
mod static_program;

use crate::shell;
use static_program::Options;

/// `cargo xtask static`: the program alone, and a compressed archive of it with the licences.
pub(crate) fn static_program(arguments: &[&str]) -> Result<(), String> {
    let program = static_program::build(&Options::parse(arguments)?)?;
    let archive = static_program::pack(&program)?;
    shell::print(&format!("{}\n{}\n", program.description(), archive.display()))
}

/// `cargo xtask oci`: the image.
pub(crate) fn oci(arguments: &[&str]) -> Result<(), String> {
    let program = static_program::build(&Options::parse(arguments)?)?;
    shell::print(&format!("{}\n", oci::build(&program)?.display()))
}

/// `cargo xtask openwrt`: the package.
pub(crate) fn openwrt(arguments: &[&str]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    let program = static_program::build(&options)?;
    shell::print(&format!("{}\n", openwrt::build(&program, options.architecture.as_deref())?.display()))
}
