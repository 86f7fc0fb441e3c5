//! The lab: lends real Linux kernels a network. The experiment that the simulator takes in, the record it makes out.
//!
//! The kernel is User-Mode Linux: a kernel as an ordinary program, without root and without touching the machine it
//! runs on. Each run boots one, which takes about a second.
//!
//! Where no kernel of its own is wanted, [`bed`] makes hosts and shaped links of this machine's kernel.
//!
//! - `support`: what the lab can do; everything else is refused in words.
//! - `layout`: an experiment as `ip`, `tc` and `sysctl` commands, in namespaces.
//! - `kernel`: which kernel there is; whether its clock is virtual.
//! - `lab`: a run from experiment to record.
//! - `guest`: boots the kernel, watches it, collects what it found.
//! - `agent`: what runs inside: traffic, events at their instants, samples of TCP's state.
//! - `bed`: hosts as network namespaces, joined by links; `emulate`: a link in real time.
//! - `plan`: what the two sides tell each other.
//! - `script`: how a whole study was set up, as text.
//! - `summary`, `series`: what was observed as a [`record::Run`].

pub mod bed;

mod agent;
mod emulate;
mod error;
mod guest;
mod kernel;
mod lab;
mod layout;
mod namespace;
mod plan;
mod script;
mod series;
mod summary;
mod support;

pub use agent::main as agent;
pub use error::Error;
pub use lab::Lab;
pub use support::check;
