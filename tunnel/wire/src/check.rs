//! Properties of the decoders that must hold for any bytes; they panic if one does not. The fuzz targets (`fuzz/`) call
//! them, and so do the tests of this crate, with random bytes and with the saved inputs of fuzzing.

use crate::coalesce::Coalescer;
use crate::delivery::{self, deliver};
use crate::frame::{Body, Bundle, Frame, MAX_BUNDLE_ENTRIES};
use crate::gre;
use crate::inner::{Inner, addresses, ecn, mss, protocol};
use crate::segment::{Segmenter, trim_first};
use crate::virtio::{Gso, GsoType, MAX_TCP_SEGMENTS, VirtioNetHeader};
use core::net::IpAddr;

/// The ones' complement sum by a plain loop, for comparison.
#[must_use]
pub fn reference_sum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Whether all checksums of an unfragmented IP packet are correct, by the slow sum.
#[must_use]
pub fn has_correct_checksums(packet: &[u8]) -> bool {
    let Ok(inner) = Inner::parse(packet) else { return false };
    let is_header_correct = inner.is_v6() || reference_sum(&packet[..usize::from(packet[0] & 15) * 4]) == 0xffff;
    let body = &packet[inner.transport..inner.len];
    let mut summed = addresses(packet).unwrap_or_default().to_vec();
    summed.extend_from_slice(&[0, inner.protocol]);
    summed.extend_from_slice(&(body.len() as u32).to_be_bytes());
    summed.extend_from_slice(body);
    let summed = if inner.protocol == protocol::ICMP { body } else { &summed };
    is_header_correct && reference_sum(summed) == 0xffff
}

/// GRE: a decoded header is encoded as it was, except for ignored bits.
///
/// # Panics
/// If that does not hold.
pub fn gre(data: &[u8]) {
    if let Ok((header, payload)) = gre::Header::parse(data) {
        assert_eq!(header.len() + payload.len(), data.len());
        let mut encoded = data.to_vec();
        header.write(&mut encoded);
        assert_eq!(gre::Header::parse(&encoded), Ok((header, payload)));
    }
    if let Some(sealed) = gre::Sealed::parse(data) {
        assert_eq!(sealed.to_bytes(), data[..gre::Sealed::LEN]);
    }
}

/// Relay messages: a decoded header is encoded as it was.
///
/// # Panics
/// If that does not hold.
pub fn relay(data: &[u8]) {
    if let Ok((header, bytes)) = crate::relay::Header::parse(data) {
        let mut encoded = Vec::new();
        header.write(&mut encoded);
        assert_eq!(encoded, data[..header.len()]);
        assert_eq!(bytes, &data[header.len()..][..bytes.len()]);
    }
}

/// Frames: decoded frames are encoded and decoded to the same.
///
/// # Panics
/// If that does not hold.
pub fn frames(data: &[u8]) {
    let decode = |body: &[u8]| match Body::parse(body) {
        Ok(Body::Control(frames)) => frames.filter_map(Result::ok).collect::<Vec<Frame>>(),
        Ok(Body::Bundle(bundle)) => check_bundle(body, bundle),
        Ok(Body::Data(header, fragment)) => {
            assert_eq!([&header.to_bytes()[..], fragment].concat(), body);
            Vec::new()
        }
        Err(_) => Vec::new(),
    };
    let frames = decode(data);
    let mut encoded = Vec::new();
    for frame in &frames {
        frame.write(&mut encoded);
    }
    assert_eq!(encoded.len(), frames.iter().map(Frame::len).sum::<usize>());
    assert_eq!(decode(&encoded), frames);
}

/// A bundle: its entries are within the body, no more than a bundle may have, and encoded and decoded to the same.
/// Returns its frames.
fn check_bundle(body: &[u8], bundle: Bundle<'_>) -> Vec<Frame> {
    let entries: Vec<_> = bundle.entries.map_while(Result::ok).map(|(header, range)| (header, &body[range])).collect();
    assert!(entries.len() <= MAX_BUNDLE_ENTRIES);
    let mut encoded = vec![0; Bundle::frames_len(0)];
    Bundle::write_frames(&mut encoded, &[]);
    for (header, fragment) in &entries {
        assert!(!fragment.is_empty() && header.first && header.last);
        let start = encoded.len();
        encoded.resize(start + Bundle::entry_len(fragment.len()), 0);
        Bundle::write_entry(&mut encoded[start..], fragment.len(), |buffer| {
            buffer.copy_from_slice(fragment);
            *header
        });
    }
    let Ok(Body::Bundle(decoded)) = Body::parse(&encoded) else { panic!("its own encoding") };
    let decoded = decoded.entries.map(|entry| entry.expect("its own encoding"));
    assert!(decoded.map(|(header, range)| (header, &encoded[range])).eq(entries));
    bundle.frames.filter_map(Result::ok).collect()
}

/// Inner packets: lengths are within the packet, and correct checksums stay correct when a packet is marked or its MSS
/// is clamped.
///
/// # Panics
/// If that does not hold.
pub fn inner(data: &[u8]) {
    let Ok(parsed) = Inner::parse(data) else { return };
    assert!(parsed.transport <= parsed.len && parsed.len <= data.len());
    let mut packet = data[..parsed.len].to_vec();
    let is_correct = has_correct_checksums(&packet);
    let is_marked = ecn::set_ce(&mut packet);
    let is_clamped = mss::clamp(&mut packet, 1280, false);
    assert!(!is_clamped || !mss::clamp(&mut packet, 1280, false), "clamping is idempotent");
    let reparsed = Inner::parse(&packet).expect("still a packet");
    assert_eq!(Inner { tos: if is_marked { parsed.tos | 3 } else { parsed.tos }, ..parsed }, reparsed);
    assert!(!is_correct || has_correct_checksums(&packet));
}

/// Segmentation: segments have correct checksums; a trimmed super-packet has one segment less.
///
/// # Panics
/// If that does not hold.
pub fn segment(data: &[u8]) {
    let Ok((offload, packet)) = VirtioNetHeader::parse(data) else { return };
    let Ok(segmenter) = Segmenter::new(offload, packet) else { return };
    let segments = all_segments(segmenter);
    assert_eq!(segments.len(), offload.segment_count(packet));
    assert!(offload.gso.is_none() || segments.iter().all(|segment| has_correct_checksums(segment)));
    let mut super_packet = data.to_vec();
    if let Some(start) = trim_first(&mut super_packet) {
        let (offload, packet) = VirtioNetHeader::parse(&super_packet[start..]).expect("its own header");
        let trimmed = all_segments(Segmenter::new(offload, packet).expect("its own offload"));
        assert_eq!(trimmed.len(), segments.len() - 1);
    }
}

/// Choices drawn from the bytes of a fuzzer: zeros after the last byte.
#[derive(Clone, Copy, Debug)]
pub struct Choices<'a>(pub &'a [u8]);

impl<'a> Choices<'a> {
    /// Whether no bytes are left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// A number below `end`, which is at most 2^32, from as few bytes as can hold it.
    pub fn below(&mut self, end: u64) -> u64 {
        let count = (64 - end.saturating_sub(1).leading_zeros()).div_ceil(8);
        (0..count).fold(0, |number, _| number << 8 | u64::from(self.byte())) % end.max(1)
    }

    /// The next bytes, at most `count`.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        bytes
    }
}

/// A TUN device that keeps all written packets, and refuses those that Linux refuses.
#[derive(Debug, Default)]
pub struct TestDevice {
    /// Whether packets begin with a virtio_net_hdr.
    pub has_header: bool,
    /// Whether it takes super-packets.
    pub accepts_super_packets: bool,
    /// Refuses every virtio_net_hdr.
    pub refuses: bool,
    /// Packets written without one.
    pub packets: Vec<Vec<u8>>,
    /// Packets written with one.
    pub super_packets: Vec<Vec<u8>>,
    /// Writes of the last kind that were refused.
    pub refused: usize,
}

impl delivery::Device for TestDevice {
    fn has_header(&self) -> bool {
        self.has_header
    }

    fn accepts(&self, _: Gso) -> bool {
        self.has_header && self.accepts_super_packets
    }

    fn write_packet(&mut self, packet: &[u8]) {
        self.packets.push(packet.to_vec());
    }

    fn write_super_packet(&mut self, bytes: &[u8]) -> bool {
        assert!(self.has_header);
        // As `tun_get_user` does.
        let (header, packet) = VirtioNetHeader::parse(bytes).expect("a header");
        let end_of_checksum =
            header.checksum.map_or(0, |checksum| usize::from(checksum.start) + usize::from(checksum.offset) + 2);
        let is_refused = self.refuses || end_of_checksum.max(header.hdr_len.into()) > packet.len();
        self.refused += usize::from(is_refused);
        if !is_refused {
            self.super_packets.push(bytes.to_vec());
        }
        !is_refused
    }
}

/// The only sources that [`delivery`] allows: those of 192.0.2.0/24 and 2001:db8::/32.
#[must_use]
pub fn is_allowed(source: IpAddr) -> bool {
    match source {
        IpAddr::V4(source) => source.octets()[..3] == [192, 0, 2],
        IpAddr::V6(source) => source.octets()[..4] == [0x20, 1, 0x0d, 0xb8],
    }
}

/// Delivery: written packets have an allowed source, and their virtio_net_hdr follows from the packet alone, except for
/// the size of segments. The first byte holds the properties of the device and of the datagram.
///
/// # Panics
/// If that does not hold.
pub fn delivery(data: &[u8]) {
    let Some((options, bytes)) = data.split_first() else { return };
    let option = |bit: u8| options & 1 << bit != 0;
    let mut device =
        TestDevice { has_header: option(0), accepts_super_packets: option(1), refuses: option(2), ..<_>::default() };
    let mut buffer = vec![0; delivery::MAX_PACKET_BYTES];
    let result =
        deliver(&mut bytes.to_vec(), !option(3), option(4), |source, _| is_allowed(source), &mut device, &mut buffer);
    let written = device.packets.len() + device.super_packets.len();
    assert_eq!(written > 0, result.is_ok());
    assert!(written <= MAX_TCP_SEGMENTS);
    for packet in &device.packets {
        let inner = Inner::parse(packet).expect("only IP is written");
        assert!(inner.len == packet.len() && is_allowed(inner.source), "{inner:?}");
    }
    device.super_packets.iter().for_each(|bytes| check_super_packet(bytes));
}

/// Checks a virtio_net_hdr written to a device against its packet, and the packet's source.
///
/// # Panics
/// If it is another.
pub fn check_super_packet(bytes: &[u8]) {
    let (header, packet) = VirtioNetHeader::parse(bytes).expect("a header");
    let inner = Inner::parse(packet).expect("only IP is written");
    assert!(inner.len == packet.len() && is_allowed(inner.source) && !inner.fragment, "{inner:?}");
    let transport = &packet[inner.transport..];
    let (offset, header_len, gso_type) = match inner.protocol {
        protocol::TCP if inner.is_v6() => (16, usize::from(transport[12] >> 4) * 4, GsoType::TcpV6),
        protocol::TCP => (16, usize::from(transport[12] >> 4) * 4, GsoType::TcpV4),
        protocol::UDP => (6, 8, GsoType::UdpL4),
        other => panic!("protocol {other}"),
    };
    let checksum = header.checksum.expect("a checksum to complete");
    assert_eq!((usize::from(checksum.start), checksum.offset), (inner.transport, offset));
    assert_eq!(usize::from(header.hdr_len), inner.transport + header_len);
    assert!(!header.data_valid);
    if let Some(gso) = header.gso {
        assert_eq!(gso.gso_type, gso_type);
        assert!((1..transport.len() - header_len).contains(&usize::from(gso.size)));
        assert_eq!(gso.cwr, gso_type != GsoType::UdpL4 && transport[13] & 0x80 != 0);
    }
}

/// Coalescing: coalesced packets are segmented into the same packets, except for identifications without meaning. The
/// packets are the segments of a super-packet, whose checksums are correct, and chunks of the data.
///
/// # Panics
/// If that does not hold.
pub fn coalesce(data: &[u8]) {
    let mut packets = match VirtioNetHeader::parse(data).and_then(|(offload, packet)| Segmenter::new(offload, packet)) {
        Ok(segmenter) => all_segments(segmenter),
        Err(_) => Vec::new(),
    };
    packets.extend(data.chunks(60).map(<[u8]>::to_vec));
    let mut position = 0;
    for (count, super_packet) in super_packets(&packets) {
        let (offload, packet) = VirtioNetHeader::parse(&super_packet).expect("its own header");
        let packets_of_super_packet = &packets[position..position + count];
        match count {
            1 => assert_eq!(packet, packets_of_super_packet[0]),
            _ => {
                let encoded = all_segments(Segmenter::new(offload, packet).expect("its own offload"));
                assert!(encoded.iter().all(|packet| has_correct_checksums(packet)));
                assert_eq!(
                    encoded.iter().map(without_identification).collect::<Vec<_>>(),
                    packets_of_super_packet.iter().map(without_identification).collect::<Vec<_>>()
                );
            }
        }
        position += count;
    }
    assert_eq!(position, packets.len());
}

/// The packet without the identification of an atomic IPv4 datagram, and without the header checksum that covers it.
fn without_identification(packet: impl AsRef<[u8]>) -> Vec<u8> {
    let mut packet = packet.as_ref().to_vec();
    if packet[0] >> 4 == 4 && packet[6] & 0x40 != 0 {
        packet[4..6].fill(0);
        packet[10..12].fill(0);
    }
    packet
}

/// Coalesces packets; returns the number of packets and the bytes of each super-packet as written to a device.
pub(crate) fn super_packets(mut packets: &[Vec<u8>]) -> Vec<(usize, Vec<u8>)> {
    let mut coalescer = Coalescer::new(true, true);
    let mut super_packets = Vec::new();
    while !packets.is_empty() {
        let (coalesced, remaining) = packets.split_at(coalescer.coalesce(packets));
        let payloads = coalesced.iter().flat_map(|packet| &packet[coalescer.skip()..]);
        super_packets.push((coalesced.len(), coalescer.header().iter().chain(payloads).copied().collect()));
        packets = remaining;
    }
    super_packets
}

/// All packets of a segmenter.
pub(crate) fn all_segments(mut segmenter: Segmenter<'_>) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; segmenter.max_len()];
    core::iter::from_fn(|| segmenter.next_into(&mut buffer).map(|len| buffer[..len].to_vec())).collect()
}

#[cfg(test)]
mod tests;
