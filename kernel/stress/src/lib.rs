//! Stress on the kernel's congestion control programs: MPTCP connections in network namespaces, over links that lose and
//! reorder packets. Their subflows come and go, and their algorithm is switched and unloaded while they run. Afterwards
//! the kernel is checked for leftovers. For tests, benchmarks and the virtual machines of `cargo xtask kernel-matrix`.

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
