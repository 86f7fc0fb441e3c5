//! Sans-IO machines: one input, then poll until nothing more is due before a deadline; only then the next input.
//!
//! Addresses, sockets and clocks belong to the driver. Machines pass typed frames; a codec, where there is one, stands
//! at the driver's edge.

pub mod mptcp;
pub mod tcp;
pub mod tunnel;
