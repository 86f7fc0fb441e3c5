//! Bytes and headers of the tunnel: GRE-in-UDP, the frames inside a sealed datagram, and as much of inner packets as a
//! tunnel must know. No state.

pub mod checksum;
pub mod frame;
pub mod gre;
mod malformed;
mod reader;
pub mod varint;

pub use malformed::Malformed;
