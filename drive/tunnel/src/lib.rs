//! The tunnel daemon: real time for the protocol machines, and what people need to run them.

pub mod config;
pub mod control;
pub mod import;
pub mod show;
pub mod status;
