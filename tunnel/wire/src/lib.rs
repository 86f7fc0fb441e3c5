//! Bytes and headers of the tunnel: GRE-in-UDP, the frames inside a sealed datagram, and as much of inner packets as a
//! tunnel must know. No state.

#[doc(hidden)]
pub mod check;
pub mod checksum;
pub mod coalesce;
pub mod frame;
pub mod gre;
pub mod inner;
mod malformed;
pub mod mpt;
pub mod offload;
mod reader;
#[cfg(test)]
mod samples;
pub mod segment;
pub mod varint;

pub use malformed::Malformed;
