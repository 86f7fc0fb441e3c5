//! A test network made of the simulator's own pipes. It has links with rate, delay, queue, loss, reordering,
//! duplication, corruption and outages drawn by seed, a virtual clock, and two hosts that exchange datagrams. It is for
//! tests only: other crates may have it as a dev-dependency only.
//!
//! - `link_config`: one direction of a path. `network`: packets in transit.
//! - `simulation`: two hosts and the network between them.
//! - `hostile_peer`, `attack`: a peer with a session that sends arbitrary datagrams.
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
