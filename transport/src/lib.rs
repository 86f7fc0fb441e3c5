//! Transport machines, sans-IO. The driver gives one input and then polls until nothing more is due before a deadline;
//! only then may the next input follow.
//!
//! The sender of a path ([`path`]) and loss recovery ([`recovery`]) are those of `ropewalk-sender`, which the tunnel's
//! machine uses, too. Addresses, sockets and clocks belong to the driver. Machines exchange typed segments; nothing is
//! serialised.

pub mod mptcp;
pub mod quic;
pub mod tcp;

mod send_queue;

pub use sender::{path, recovery};
