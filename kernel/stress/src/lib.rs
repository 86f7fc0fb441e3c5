//! Stress on the kernel's congestion control programs: MPTCP connections in network namespaces, over links that lose and
//! reorder, whose subflows come and go, whose algorithm is switched and unloaded meanwhile; and what is left of them in the
//! kernel afterwards. For tests, benchmarks and the virtual machines of `cargo xtask kernel-matrix`.

pub mod backup;
pub mod churn;
pub mod exercise;
pub mod network;
pub mod observe;
pub mod remains;
pub mod soak;
pub mod traffic;
pub mod trial;

pub use network::Network;
pub use observe::KernelLog;
