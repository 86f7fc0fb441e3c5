//! Transport machines, sans-IO. The driver gives one input and then polls until nothing more is due before a deadline;
//! only then may the next input follow.
//!
//! [`recovery`] measures a path and detects its losses, in the same way for every machine. Simulations run the machines
//! [`tcp`], [`mptcp`] and [`quic`]; the tunnel's machine uses [`path`] and [`recovery`], too. Addresses, sockets and
//! clocks belong to the driver. Machines exchange typed segments; nothing is serialised.

pub mod mptcp;
pub mod path;
pub mod quic;
pub mod recovery;
pub mod tcp;

mod send_queue;
