//! The lab: runs experiments on real Linux kernels. It takes the same experiment as the simulator and makes the same record.
//!
//! The kernel is User-Mode Linux, a kernel as an ordinary program, which needs no root and changes nothing on the machine.
//! Each run boots one, which takes about a second. An image for PCs can be booted in a virtual machine instead. Or the
//! kernel is the machine's own, in network namespaces, if that has features which the other lacks. [`testbed`] makes such
//! hosts and shaped links for other users than the lab.
//!
//! - `support`: what a kernel can run; everything else is refused with an explanation.
//! - `backend`: the kernels; `guest_kernel` and `guest`: the one that is booted, and a guest; `kernel_image`: an image for
//!   PCs; `host_kernel`: the machine's own kernel.
//! - `programs`: congestion controls that the machine's kernel lacks, loaded into it for a run.
//! - `lab`: a run from experiment to record.
//! - `network`: an experiment as `ip`, `tc` and `sysctl` commands, in namespaces; `script`: those of a whole study.
//! - `agent`: the process inside the kernel under test: traffic, events at their instants, samples of TCP's state;
//!   `protocol`: its messages; `generator`: external programs that make traffic.
//! - `testbed`: hosts as network namespaces, joined by links; `emulator`: a link in real time.
//! - `summary`, `series`, `fairness`, `tunnel`: the results as a [`record::Run`]; `mptcp`: refuses a connection that
//!   lacks a subflow.
//! - `packet_size`: sizes of packets. `processes`: finds and ends those of a run. `shell`: comments of scripts.
//! - `replay`: a kernel as the judge of random situations of our TCP sender.
//! - `doctor`: the kernels and features that this machine can run, and the missing packages.

pub mod testbed;

mod agent;
mod backend;
mod doctor;
mod emulator;
mod error;
mod fairness;
mod generator;
mod guest;
mod guest_kernel;
mod host_kernel;
mod kernel_image;
mod lab;
mod mptcp;
mod namespace;
mod network;
mod packet_size;
mod processes;
mod processor;
mod programs;
mod protocol;
mod replay;
mod script;
mod series;
mod shell;
mod summary;
mod support;
mod tunnel;

pub use agent::main as agent;
pub use backend::BackendChoice;
pub use doctor::{BackendReport, Diagnosis, Program, doctor};
pub use error::Error;
pub use generator::Generator;
pub use lab::Lab;
pub use replay::Judge;
