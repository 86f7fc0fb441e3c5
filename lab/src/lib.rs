//! The lab: lends real Linux kernels a network. The experiment that the simulator takes in, the record it makes out.
//!
//! The kernel is User-Mode Linux, a kernel as an ordinary program, without root and without touching the machine it runs
//! on: each run boots one, which takes about a second. Or it is the machine's own, in network namespaces, where that can
//! do what the other cannot. [`bed`] makes such hosts and shaped links for others than the lab.
//!
//! - `support`: what the lab can do; everything else is refused in words.
//! - `network`: an experiment as `ip`, `tc` and `sysctl` commands, in namespaces.
//! - `kernel`: which User-Mode Linux there is; whether its clock is virtual; what it can do.
//! - `lab`: a run from experiment to record.
//! - `guest`: boots that kernel, watches it, collects what it found. `host`: the same on the machine's own.
//! - `agent`: what runs there: traffic, events at their instants, samples of TCP's state. `generator`: other programs for
//!   the traffic.
//! - `bed`: hosts as network namespaces, joined by links; `emulate`: a link in real time.
//! - `packet`: how large packets are. `fairness`: how flows shared. `distribution`: many times in
//!   a few numbers.
//! - `plan`: what the two sides tell each other. `processes`: finds and ends those of a run.
//! - `doctor`: what this machine can run, and what would have to be added.
//! - `script`: how a whole study was set up, as text.
//! - `mptcp`: refuses a connection that lacks a subflow. `summary`, `series`, `tunnel`: what was observed as a [`record::Run`].

pub mod bed;

mod agent;
mod distribution;
mod doctor;
mod emulate;
mod error;
mod fairness;
mod generator;
mod guest;
mod host;
mod kernel;
mod lab;
mod mptcp;
mod namespace;
mod network;
mod packet;
mod plan;
mod processes;
mod script;
mod series;
mod summary;
mod support;
mod tunnel;

pub use agent::main as agent;
pub use doctor::{BackEnd, Diagnosis, Program, doctor};
pub use error::Error;
pub use generator::Generator;
pub use lab::{Choice, Lab};
