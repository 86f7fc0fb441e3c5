//! The tunnel daemon: real time for the protocol machines, and what people need to run them.

pub mod config;
pub mod control;
mod fill;
pub mod import;
pub mod keys;
pub mod log;
pub mod show;
pub mod status;
mod top;

pub use fill::Meter;
pub use top::top;
