//! The tunnel daemon: sockets, devices and clocks for the sans-IO machines, configuration and status.

pub mod config;
pub mod control_plane;
pub mod dashboard;
pub mod data_plane;
pub mod event;
mod handshake_times;
mod journal;
mod kept_file;
pub mod keys;
pub mod log;
mod nat64;
pub mod notify;
#[cfg(test)]
mod planted;
mod quota;
pub mod show;
pub mod speed_test;
pub mod status;
mod top;
mod up;

pub use top::top;
pub use up::{end_with_parent, up};
