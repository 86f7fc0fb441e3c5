//! Congestion control for the running Linux kernel, as eBPF `struct_ops` programs: coupled algorithms for MPTCP, which
//! upstream Linux lacks, and single-path ones that a kernel may lack.
//!
//! The programs are C, in `kernel/bpf`; their objects are built with `cargo xtask bpf` and embedded, so that no compiler
//! is needed. A loaded program is a congestion control of the kernel, in every network namespace, until it is unloaded or
//! the machine restarts. It does not depend on this process.

mod catalogue;
mod check;
mod generation;
mod group;
mod hooks;
mod loader;

pub use catalogue::{PROGRAMS, Program, program};
pub use check::{Condition, OLDEST, check, leaves_programs_out};
pub use generation::{Loaded, kept, loaded};
pub use group::{Attached, attach};
pub use hooks::{Hook, hooks};
pub use loader::{Audience, Error, load, load_for, registered, replace, unload};
