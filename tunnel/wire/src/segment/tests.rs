use super::*;
use crate::Malformed;
use crate::check::{all_segments, has_correct_checksums};
use crate::samples::{Sample, any_sample};
use crate::virtio::GsoType;
use proptest::prelude::*;

fn segments(sample: &Sample, size: u16) -> Vec<Vec<u8>> {
    let (offload, packet) = sample.with_offload(size);
    all_segments(Segmenter::new(offload, &packet).unwrap())
}

#[test]
fn a_super_packet_of_64_kilobytes_is_segmented_as_by_a_network_card() {
    let sample = Sample { flags: 0x99, sequence: u32::MAX - 5, id: 0xffff, ..Sample::tcp(65_495) };
    let segments = segments(&sample, 1448);
    assert_eq!(segments.len(), 46);
    assert!(segments.iter().all(|segment| has_correct_checksums(segment)));
    let flags: Vec<_> = segments.iter().map(|segment| segment[33]).collect();
    assert_eq!((flags[0], flags[1], flags[44], flags[45]), (0x90, 0x10, 0x10, 0x19), "CWR first; PSH and FIN last");
    assert_eq!(tcp_sequence(&segments[1], 20), 1442, "modulo 2^32");
    assert_eq!(word(&segments[1], 4), 0, "identification counts modulo 2^16");
    assert_eq!(segments[45].len(), 40 + 65_495 - 45 * 1448);
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_ones() {
    let mut sample = Sample { tcp: false, payload: vec![0; 4], ..Sample::tcp(0) };
    let word_of_sum = word(&sample.packet(), 26);
    sample.payload[..2].copy_from_slice(&word_of_sum.to_be_bytes());
    sample.payload.extend_from_slice(&sample.payload.clone());
    let packets = segments(&sample, 4);
    assert_eq!(word(&packets[0], 26), 0xffff);
    let (offload, mut packet) = Sample { payload: sample.payload[..4].to_vec(), ..sample }.with_offload(9);
    complete_checksum(&offload, &mut packet).unwrap();
    assert_eq!(packet, packets[0]);
}

#[test]
fn inconsistent_headers_are_rejected() {
    let (valid, packet) = Sample::tcp(3000).with_offload(1000);
    let gso = valid.gso.unwrap();
    let error = |offload: VirtioNetHeader, packet: &[u8]| Segmenter::new(offload, packet).map(|_| ()).unwrap_err();
    assert_eq!(error(VirtioNetHeader { gso: Some(Gso { size: 0, ..gso }), ..valid }, &packet), Malformed::Value);
    assert_eq!(
        error(VirtioNetHeader { gso: Some(Gso { gso_type: GsoType::UdpL4, ..gso }), ..valid }, &packet),
        Malformed::Type
    );
    assert_eq!(error(VirtioNetHeader { checksum: None, ..valid }, &packet), Malformed::Length);
    let outside = Some(PartialChecksum { start: 0xffff, offset: 0xffff });
    assert_eq!(error(VirtioNetHeader { checksum: outside, gso: None, ..valid }, &packet), Malformed::Length);
    assert_eq!(error(valid, &packet[..packet.len() - 1]), Malformed::Truncated);
    assert_eq!(
        complete_checksum(&VirtioNetHeader { checksum: outside, ..valid }, &mut packet.clone()),
        Err(Malformed::Length)
    );
    let mut short = packet.clone();
    short[32] = 0x40;
    assert_eq!(error(valid, &short), Malformed::Length, "a TCP header of 16 bytes");
    short[32] = 0x50;
    short[6] = 0x20;
    assert_eq!(error(valid, &short), Malformed::Type, "a fragment");
}

/// One of 65 536 random packets: the properties below have to know it.
#[test]
fn a_tcp_checksum_of_0_is_completed_as_0xffff() {
    let mut sample = Sample { payload: vec![0; 4], ..Sample::tcp(0) };
    let checksum = word(&sample.packet(), 36).to_be_bytes();
    sample.payload[2..].copy_from_slice(&checksum);
    assert_eq!((word(&sample.packet(), 36), word(&segments(&sample, 4)[0], 36)), (0, 0xffff));
    assert_eq!(segments(&sample, 4), sample.sent(sample.segments(4)));
}

proptest! {
    #[test]
    fn segments_are_the_packets_of_a_sender_without_offload(sample in any_sample(), size in 1..1500_u16) {
        prop_assert_eq!(segments(&sample, size), sample.sent(sample.segments(size)));
    }

    #[test]
    fn a_trimmed_super_packet_lacks_its_first_segment(sample in any_sample(), size in 1..1500_u16) {
        let (offload, packet) = sample.with_offload(size);
        let mut super_packet = [&offload.to_bytes()[..], &packet].concat();
        let original = super_packet.clone();
        let mut expected = sample.segments(size);
        match trim_first(&mut super_packet) {
            Some(start) => {
                let (offload, packet) = VirtioNetHeader::parse(&super_packet[start..]).unwrap();
                prop_assert_eq!(offload.segment_count(packet), expected.len() - 1);
                expected.remove(0);
                prop_assert_eq!(all_segments(Segmenter::new(offload, packet).unwrap()), sample.sent(expected));
            }
            None => prop_assert!(expected.len() == 1 && super_packet == original),
        }
    }
}
