//! Delivery of a peer's packet to the TUN device: nothing that the peer states about the packet reaches the kernel
//! unless it was checked against the packet itself.

use crate::Malformed;
use crate::inner::{Inner, addresses, ecn};
use crate::segment::{Segmenter, complete_checksum};
use crate::virtio::{Gso, VirtioNetHeader};
use core::net::IpAddr;

/// Maximum length of a packet, bytes. The payload of IPv6 may be 40 bytes longer, which no device sends.
pub const MAX_PACKET_BYTES: usize = 65_535;

/// A TUN device to write packets to.
pub trait Device {
    /// Whether packets begin with a virtio_net_hdr.
    fn has_header(&self) -> bool;
    /// Whether super-packets of this type can be written.
    fn accepts(&self, gso: Gso) -> bool;
    /// Writes one packet with a complete checksum.
    fn write_packet(&mut self, packet: &[u8]);
    /// Writes a virtio_net_hdr and its packet. False if the kernel refuses it: then the packet must be segmented.
    fn write_super_packet(&mut self, bytes: &[u8]) -> bool;
}

/// Why a received packet is not written to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Not an IP packet, inconsistent with its virtio_net_hdr, or marked CE though not ECN-capable.
    Malformed,
    /// The pair of source and destination is not allowed.
    UnallowedSource,
}

/// Writes a packet, `bytes`, to the device; segments it if the device does not accept such super-packets. `has_header`:
/// whether it begins with a virtio_net_hdr. `ce` is copied from its fragments to its header (RFC 6040, section 4.2).
/// `is_allowed` gets source and destination. Bytes after the length in the IP header are padding, as in Ethernet, and
/// not written. `buffer` is for segments.
///
/// # Errors
/// Why nothing is written.
///
/// # Panics
/// If `buffer` is shorter than [`MAX_PACKET_BYTES`].
pub fn deliver(
    bytes: &mut [u8],
    has_header: bool,
    ce: bool,
    is_allowed: impl Fn(IpAddr, IpAddr) -> bool,
    device: &mut impl Device,
    buffer: &mut [u8],
) -> Result<(), Rejection> {
    let start = if has_header { VirtioNetHeader::LEN } else { 0 };
    let header = if has_header { VirtioNetHeader::parse(bytes).map(|parsed| parsed.0) } else { Ok(<_>::default()) };
    let header = header.map_err(|_| Rejection::Malformed)?;
    let packet = bytes.get_mut(start..).unwrap_or_default();
    if ce && !ecn::set_ce(packet) {
        return Err(Rejection::Malformed);
    }
    let inner = Inner::parse(packet).map_err(|_| Rejection::Malformed)?;
    if inner.len > MAX_PACKET_BYTES {
        return Err(Rejection::Malformed);
    }
    let bytes = &mut bytes[..start + inner.len];
    let header = header.rebuild(&bytes[start..]).map_err(|_| Rejection::Malformed)?;
    if !is_allowed(inner.source, inner.destination) {
        return Err(Rejection::UnallowedSource);
    }
    if header.checksum.is_none() {
        device.write_packet(&bytes[start..]);
        return Ok(());
    }
    bytes[..start].copy_from_slice(&header.to_bytes());
    let is_accepted = header.gso.map_or(device.has_header(), |gso| device.accepts(gso));
    if is_accepted && device.write_super_packet(bytes) {
        return Ok(());
    }
    let mut segments = Segmenter::new(header, &bytes[start..]).map_err(|_| Rejection::Malformed)?;
    while let Some(len) = segments.next_into(buffer) {
        // The packet that is written has the addresses that were checked.
        if addresses(&buffer[..len]) == addresses(&bytes[start..]) {
            device.write_packet(&buffer[..len]);
        }
    }
    Ok(())
}

/// Prepares a packet of this host's device for a peer, which [`deliver`]s it: completes a checksum that a peer would refuse
/// to complete, such as that of an inner header. Returns whether the packet is sent with its virtio_net_hdr.
///
/// # Errors
/// As [`VirtioNetHeader::rebuild`] of a super-packet.
pub fn prepare(header: &VirtioNetHeader, packet: &mut [u8]) -> Result<bool, Malformed> {
    if header.checksum.is_none() && header.gso.is_none() {
        return Ok(false);
    }
    match header.rebuild(packet) {
        Ok(_) => Ok(true),
        Err(error) if header.gso.is_some() => Err(error),
        Err(_) => complete_checksum(header, packet).map(|()| false),
    }
}

#[cfg(test)]
mod tests;
