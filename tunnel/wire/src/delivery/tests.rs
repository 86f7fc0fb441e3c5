use super::*;
use crate::check::{TestDevice, has_correct_checksums, is_allowed};
use crate::samples::{Sample, any_sample};
use crate::virtio::{GsoType, PartialChecksum, probe};
use proptest::prelude::*;

const DEVICE: TestDevice = TestDevice {
    has_header: true,
    accepts_super_packets: true,
    refuses: false,
    packets: Vec::new(),
    super_packets: Vec::new(),
    refused: 0,
};

/// Delivers a packet of a peer with this header to `device`.
fn deliver_with(device: &mut TestDevice, header: VirtioNetHeader, packet: &[u8]) -> Result<(), Rejection> {
    let mut bytes = [&header.to_bytes()[..], packet].concat();
    deliver(&mut bytes, true, false, |source, _| is_allowed(source), device, &mut [0; MAX_PACKET_BYTES])
}

/// A datagram of the allowed 192.0.2.1 whose bytes from 14 on have the checksum `words`: completed there, it is from
/// 192.0.x.y.
fn packet_with_checksum_over_source(words: [u8; 2]) -> Vec<u8> {
    let mut packet = Sample { tcp: false, payload: vec![0; 4], ..Sample::tcp(0) }.packet();
    let other = crate::checksum::Sum::of(&packet[14..]).checksum();
    let wanted = u16::from_be_bytes(words);
    let difference = crate::checksum::Sum::default().add_word(other).add_word(!wanted).folded();
    packet[28..30].copy_from_slice(&difference.to_be_bytes());
    packet
}

#[test]
fn a_checksum_is_not_completed_over_the_source_address() {
    let packet = packet_with_checksum_over_source([2, 99]);
    let checksum = Some(PartialChecksum { start: 14, offset: 0 });
    let header = VirtioNetHeader { checksum, hdr_len: 0xffff, ..VirtioNetHeader::default() };
    let mut completed = packet.clone();
    complete_checksum(&header, &mut completed).unwrap();
    assert_eq!(Inner::parse(&completed).unwrap().source.to_string(), "192.0.2.99", "the attack is a good one");
    for device in [DEVICE, TestDevice { has_header: false, ..DEVICE }, TestDevice { refuses: true, ..DEVICE }] {
        let mut device = device;
        assert_eq!(deliver_with(&mut device, header, &packet), Err(Rejection::Malformed));
        assert!(device.packets.is_empty() && device.super_packets.is_empty() && device.refused == 0);
    }
}

#[test]
fn the_length_of_the_headers_is_not_taken_from_the_peer() {
    let (honest, packet) = Sample::tcp(3000).with_offload(1000);
    let mut device = DEVICE;
    let claims = VirtioNetHeader { hdr_len: 0xffff, data_valid: true, ..honest };
    assert_eq!(deliver_with(&mut device, claims, &packet), Ok(()));
    assert_eq!(device.refused, 0, "the kernel would refuse such a length");
    assert_eq!(device.super_packets, [[&honest.to_bytes()[..], &packet].concat()]);
    let plain = VirtioNetHeader { hdr_len: 0xffff, data_valid: true, ..VirtioNetHeader::default() };
    let packet = Sample::tcp(10).packet();
    assert_eq!(deliver_with(&mut device, plain, &packet), Ok(()));
    assert_eq!((device.packets, device.super_packets.len()), (vec![packet], 1));
}

#[test]
fn a_checksum_to_complete_is_that_of_tcp_or_udp_in_an_unfragmented_packet() {
    let (valid, packet) = Sample::tcp(100).with_offload(1000);
    let error = |header: VirtioNetHeader, packet: &[u8]| header.rebuild(packet).unwrap_err();
    for (start, offset) in [(20, 15), (20, 6), (0, 10), (10, 0), (14, 0), (40, 0), (0xffff, 0xffff)] {
        let checksum = Some(PartialChecksum { start, offset });
        assert_eq!(error(VirtioNetHeader { checksum, ..valid }, &packet), Malformed::Length, "{checksum:?}");
    }
    let mut fragment = packet.clone();
    fragment[6] = 0x20;
    assert_eq!(error(valid, &fragment), Malformed::Type);
    let mut icmp = packet.clone();
    icmp[9] = 1;
    assert_eq!(error(valid, &icmp), Malformed::Type);
    let (valid, mut udp) = Sample { tcp: false, ..Sample::tcp(100) }.with_offload(1000);
    udp[25] -= 1;
    assert_eq!(error(valid, &udp), Malformed::Length, "UDP's length");
}

#[test]
fn segments_have_a_size_that_makes_no_more_of_them_than_a_host_sends() {
    for (tcp, max) in [(true, 1024), (false, 128)] {
        let (valid, packet) = Sample { tcp, ..Sample::tcp(8 * max) }.with_offload(8);
        assert_eq!(valid.rebuild(&packet), Ok(valid));
        assert_eq!(valid.segment_count(&packet), max);
        let size = |size| VirtioNetHeader { gso: valid.gso.map(|gso| Gso { size, ..gso }), ..valid };
        assert_eq!(size(7).rebuild(&packet), Err(Malformed::Value));
        assert_eq!(size(0).rebuild(&packet), Err(Malformed::Value));
        for longer in [8 * max as u16, 0xffff] {
            assert_eq!(size(longer).rebuild(&packet), Ok(VirtioNetHeader { gso: None, ..valid }), "one segment");
        }
    }
}

#[test]
fn a_packet_longer_than_any_device_sends_is_rejected() {
    let sample = Sample { v6: true, tcp: false, ..Sample::tcp(65_535 - 8) };
    let (header, packet) = sample.with_offload(u16::MAX);
    assert_eq!(packet.len(), 65_575);
    for has_header in [true, false] {
        let mut device = TestDevice { has_header, ..DEVICE };
        assert_eq!(deliver_with(&mut device, header, &packet), Err(Rejection::Malformed));
    }
}

#[test]
fn bytes_after_the_length_of_the_ip_header_are_cut_off() {
    // IPv4, 20 bytes of header, 28 in all.
    let mut bytes = [0; 40];
    bytes[..4].copy_from_slice(&[0x45, 0, 0, 28]);
    let mut device = DEVICE;
    assert_eq!(deliver(&mut bytes, false, false, |_, _| true, &mut device, &mut []), Ok(()));
    assert_eq!(device.packets, [bytes[..28].to_vec()]);
    assert_eq!(deliver(&mut bytes[..6], false, false, |_, _| true, &mut device, &mut []), Err(Rejection::Malformed));
}

#[test]
fn a_checksum_that_a_peer_would_refuse_is_completed_before() {
    // UDP in IPv4 in GRE in IPv4: the checksum to complete is the inner one.
    let (header, inner) = Sample { tcp: false, ..Sample::tcp(100) }.with_offload(1000);
    let mut packet = Sample { tcp: false, payload: vec![0; 16], ..Sample::tcp(0) }.packet()[..20].to_vec();
    packet[9] = 47;
    packet.extend_from_slice(&[0, 0, 8, 0]);
    packet.extend_from_slice(&inner);
    let len = packet.len() as u16;
    packet[2..4].copy_from_slice(&len.to_be_bytes());
    let shifted = VirtioNetHeader { checksum: Some(PartialChecksum { start: 44, offset: 6 }), ..header };
    assert_eq!(prepare(&shifted, &mut packet), Ok(false));
    assert!(has_correct_checksums(&packet[24..]));
    let mut plain = inner.clone();
    assert_eq!((prepare(&header, &mut plain), prepare(&VirtioNetHeader::default(), &mut plain)), (Ok(true), Ok(false)));
    assert_eq!(plain, inner);
}

#[test]
fn a_probe_is_valid_but_for_the_checksum_of_its_ip_header() {
    for (tcp, gso_type) in [(true, GsoType::TcpV4), (false, GsoType::UdpL4)] {
        let bytes = probe(tcp);
        let (header, packet) = VirtioNetHeader::parse(&bytes).unwrap();
        assert_eq!(header.rebuild(packet), Ok(header));
        assert_eq!((header.gso.unwrap().gso_type, header.segment_count(packet)), (gso_type, 2));
        assert_ne!(crate::check::reference_sum(&packet[..20]), 0xffff);
    }
}

prop_compose! {
    /// Any header; its values are often those of a packet or next to them.
    fn any_header()(flags in 0..4_u8, gso_type in prop_oneof![Just(0), Just(1), Just(4), Just(5), any::<u8>()],
                    gso_ecn: bool, hdr_len: u16, size in prop_oneof![0..2000_u16, any::<u16>()],
                    start in prop_oneof![Just(20), Just(40), 0..80_u16, any::<u16>()],
                    offset in prop_oneof![Just(6), Just(16), 0..80_u16, any::<u16>()]) -> [u8; 10] {
        let words = [hdr_len, size, start, offset].map(u16::to_le_bytes).concat();
        [&[flags, gso_type | if gso_ecn { 0x80 } else { 0 }][..], &words].concat().try_into().unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// [`crate::check::delivery`] asserts it.
    #[test]
    fn whatever_the_header_of_a_peer_the_source_is_allowed_and_the_header_our_own(
        options: u8, header in any_header(), sample in any_sample(), changes in proptest::collection::vec((0..60_usize, any::<u8>()), 0..3)
    ) {
        let mut packet = sample.with_offload(1000).1;
        for (offset, value) in changes {
            packet.iter_mut().skip(offset).take(1).for_each(|byte| *byte = value);
        }
        crate::check::delivery(&[&[options & !8][..], &header, &packet].concat());
    }

    #[test]
    fn a_super_packet_of_a_host_is_delivered_as_it_was(sample in any_sample(), size in 24..1500_u16) {
        let (header, packet) = sample.with_offload(size);
        let mut device = DEVICE;
        prop_assert_eq!(deliver_with(&mut device, header, &packet), Ok(()));
        prop_assert_eq!(&device.super_packets, &[[&header.to_bytes()[..], &packet].concat()]);
        let mut device = TestDevice { refuses: true, ..DEVICE };
        prop_assert_eq!(deliver_with(&mut device, header, &packet), Ok(()));
        prop_assert_eq!(device.packets, sample.sent(sample.segments(size)));
    }
}
