//! The tunnel daemon: real time for the protocol machines, and what people need to run them.

pub mod config;
pub mod control;
mod fill;
pub mod import;
pub mod keys;
pub mod log;
pub mod plane;
pub mod show;
pub mod status;
mod top;
mod up;

pub use fill::Meter;
pub use top::top;
pub use up::up;
