//! Delivery of a received packet: validation, and the write to the device.

use super::packet::PacketBytes;
use crate::data_plane::device::{Device, WriteOutcome};
use machine::ReassembledPacket;
use std::io::IoSlice;
use std::net::IpAddr;
use wire::inner::Inner;
use wire::inner::ecn;
use wire::segment::Segmenter;
use wire::virtio::VirtioNetHeader;

/// Why a received packet is not written to the device.
pub(super) enum Rejection {
    /// Not an IP packet, inconsistent with its virtio-net header, or marked CE though not ECN-capable.
    Malformed,
    /// The source is not in the peer's allowed IPs.
    UnallowedSource,
}

/// Validates a packet; returns its virtio-net header, its bytes without padding, and the offset of the IP header.
/// Copies a CE mark of its fragments to the inner header (RFC 6040, section 4.2).
pub(super) fn validate(
    ReassembledPacket { buffer, ce }: ReassembledPacket<'_, PacketBytes>,
    is_allowed: impl Fn(IpAddr) -> bool,
) -> Result<(VirtioNetHeader, &[u8], usize), Rejection> {
    let PacketBytes { bytes, offload } = buffer;
    let offload = *offload;
    let start = if offload { VirtioNetHeader::LEN } else { 0 };
    let header =
        if offload { VirtioNetHeader::parse(bytes).map(|(header, _)| header) } else { Ok(VirtioNetHeader::default()) };
    let header = header.map_err(|_| Rejection::Malformed)?;
    let inner = Inner::parse(bytes.get(start..).unwrap_or_default()).map_err(|_| Rejection::Malformed)?;
    // Bytes after the packet are padding, as in Ethernet.
    let bytes = &mut bytes[..start + inner.len];
    let packet = &mut bytes[start..];
    header.validate(packet).map_err(|_| Rejection::Malformed)?;
    if !is_allowed(inner.source) {
        return Err(Rejection::UnallowedSource);
    }
    if ce && !ecn::set_ce(packet) {
        return Err(Rejection::Malformed);
    }
    Ok((header, bytes, start))
}

/// Writes a packet to the device, segmented if the device does not accept such super-packets.
pub(super) fn write(device: &mut Device, header: VirtioNetHeader, bytes: &[u8], start: usize, buffer: &mut [u8]) {
    let packet = &bytes[start..];
    let is_super_packet = header.gso.is_some();
    if start == 0 {
        return device.write_packet(packet);
    }
    let is_accepted = if is_super_packet { device.accepts(header.gso) } else { device.has_header() };
    if is_accepted && device.write_super_packet(&[IoSlice::new(bytes)]) == WriteOutcome::Written {
        return;
    }
    let Ok(mut segments) = Segmenter::new(header, packet) else { return };
    while let Some(len) = segments.next_into(buffer) {
        device.write_packet(&buffer[..len]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_after_the_length_of_the_ip_header_are_cut_off() {
        // IPv4, 20 bytes of header, 28 in all.
        let mut bytes = vec![0x45, 0, 0, 28];
        bytes.resize(40, 0);
        let mut padded = PacketBytes { bytes, offload: false };
        let packet = ReassembledPacket { buffer: &mut padded, ce: false };
        let (_, bytes, start) = validate(packet, |_| true).ok().expect("the packet is valid");
        assert_eq!((bytes.len(), start), (28, 0));
        padded.bytes.truncate(6);
        let truncated = ReassembledPacket { buffer: &mut padded, ce: false };
        assert!(matches!(validate(truncated, |_| true), Err(Rejection::Malformed)));
    }
}
