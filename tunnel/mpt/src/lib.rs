//! MPT's tunnel (draft-lencse-tsvwg-mpt, and the published behaviour of its implementation `mptsrv`), sans-IO.
//!
//! ```text
//! packet -> Sender: sequence number, path -> GRE-in-UDP ... GRE-in-UDP -> Receiver: resequencer -> packet
//!           liveness of paths              keepalives                     (or as they arrive)
//! ```
//!
//! Packets of all flows share one sequence number space over all paths, in plain GRE-in-UDP without encryption,
//! authentication or acknowledgements: the sender learns of its paths by the peer's keepalives alone. The daemon adds
//! sockets and a clock, the simulator virtual time. [`import`] converts MPT's configuration files to Ropewalk's.

mod config;
pub mod import;
mod keepalive;
mod liveness;
mod path_assigner;
mod receiver;
mod resequencer;
mod sender;
mod sequence;

pub use config::{DEFAULT_MTU, DEFAULT_REORDER_TIMEOUT, DEFAULT_SCHEDULER, KeepaliveConfig, ReorderConfig};
pub use keepalive::Keepalive;
pub use path_assigner::PathAssigner;
pub use receiver::{Content, Receiver};
pub use resequencer::{Delivery, Resequencer, ResequencerCounters};
pub use sender::{PathStatus, Sender};
