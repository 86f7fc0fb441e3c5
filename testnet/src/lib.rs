//! The test network, on the simulator's own pipes: links with rate, delay, queue, loss, reordering, duplication,
//! corruption and outages, drawn by seed; a virtual clock; two hosts that exchange datagrams over them. For tests only:
//! nothing but dev-dependencies leads here.
//!
//! - `link_config`: one direction of a path. `network`: packets in transit.
//! - `simulation`: two hosts and the network between them.
//! - `hostile_peer`, `attack`: a peer with a session that sends anything.
//! - `tunnel`: endpoints of the tunnel with random algorithms.

mod attack;
mod hostile_peer;
mod link_config;
mod network;
mod simulation;
mod tunnel;

pub use attack::{Attack, InnerAddresses};
pub use hostile_peer::HostilePeer;
pub use link_config::{LinkConfig, ms, random_paths};
pub use network::{Arrival, Network};
pub use simulation::{Host, Simulation};
pub use tunnel::{MEMORY_BYTES, PATH_CONFIG, is_drained, memory_bytes, options, random_options};
