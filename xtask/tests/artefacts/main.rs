//! The artefacts for other machines, built by their chores and used as their users would.

mod deb;
mod hosts;
mod install;
mod oci;
mod openwrt;
mod openwrt_scripts;
mod static_program;
mod support;
