//! Transport machines, sans-IO: one input, then poll until nothing more is due before a deadline; only then the next
//! input.
//!
//! [`recovery`] measures a path and detects its losses, for every machine alike; [`tcp`] and [`mptcp`] are the machines
//! that simulations run; the tunnel's machine uses [`path`] and [`recovery`] too. Addresses, sockets and clocks belong
//! to the driver. Machines pass typed segments; no bytes are made.

pub mod mptcp;
pub mod path;
pub mod quic;
pub mod recovery;
pub mod tcp;

mod send_queue;
