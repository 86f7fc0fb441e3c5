//! The tunnel's encodings, without any state: GRE-in-UDP headers (RFC 2784, 2890, 8086), the frames of a sealed
//! datagram, the headers of inner packets and relay messages, and the segmentation and checksum offload of TUN devices
//! (virtio_net_hdr, GSO and GRO).

#[doc(hidden)]
pub mod check;
pub mod checksum;
pub mod coalesce;
pub mod delivery;
pub mod frame;
pub mod gre;
pub mod inner;
mod malformed;
mod reader;
pub mod relay;
#[cfg(test)]
mod samples;
pub mod segment;
pub mod varint;
pub mod virtio;

pub use malformed::Malformed;
