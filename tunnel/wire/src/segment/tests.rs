use super::*;
use crate::Malformed;
use crate::check::{all, sums_are_right};
use crate::offload::Kind;
use crate::samples::{Sample, any_sample};
use proptest::prelude::*;

fn segments(sample: &Sample, size: u16) -> Vec<Vec<u8>> {
    let (offload, packet) = sample.left_to_do(size);
    all(Segmenter::new(offload, &packet).unwrap())
}

#[test]
fn a_super_packet_of_64_kilobytes_is_cut_as_the_field_knows_it() {
    let sample = Sample { flags: 0x99, sequence: u32::MAX - 5, id: 0xffff, ..Sample::tcp(65_495) };
    let segments = segments(&sample, 1448);
    assert_eq!(segments.len(), 46);
    assert!(segments.iter().all(|segment| sums_are_right(segment)));
    let flags: Vec<_> = segments.iter().map(|segment| segment[33]).collect();
    assert_eq!((flags[0], flags[1], flags[44], flags[45]), (0x90, 0x10, 0x10, 0x19), "CWR first; PSH and FIN last");
    assert_eq!(tcp_sequence(&segments[1], 20), 1442, "modulo 2^32");
    assert_eq!(word(&segments[1], 4), 0, "identification counts modulo 2^16");
    assert_eq!(segments[45].len(), 40 + 65_495 - 45 * 1448);
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_ones() {
    let mut sample = Sample { tcp: false, payload: vec![0; 4], ..Sample::tcp(0) };
    let word_of_sum = word(&sample.whole(), 26);
    sample.payload[..2].copy_from_slice(&word_of_sum.to_be_bytes());
    sample.payload.extend_from_slice(&sample.payload.clone());
    let packets = segments(&sample, 4);
    assert_eq!(word(&packets[0], 26), 0xffff);
    let (offload, mut packet) = Sample { payload: sample.payload[..4].to_vec(), ..sample }.left_to_do(9);
    complete(&offload, &mut packet).unwrap();
    assert_eq!(packet, packets[0]);
}

#[test]
fn offloads_that_lie_are_refused() {
    let (good, packet) = Sample::tcp(3000).left_to_do(1000);
    let cut = good.cut.unwrap();
    let refused = |offload: Offload, packet: &[u8]| Segmenter::new(offload, packet).map(|_| ()).unwrap_err();
    assert_eq!(refused(Offload { cut: Some(Cut { size: 0, ..cut }), ..good }, &packet), Malformed::Value);
    assert_eq!(refused(Offload { cut: Some(Cut { kind: Kind::Udp, ..cut }), ..good }, &packet), Malformed::Type);
    assert_eq!(refused(Offload { checksum: None, ..good }, &packet), Malformed::Length);
    let far = Some(Partial { start: 0xffff, offset: 0xffff });
    assert_eq!(refused(Offload { checksum: far, cut: None, ..good }, &packet), Malformed::Length);
    assert_eq!(refused(good, &packet[..packet.len() - 1]), Malformed::Truncated);
    assert_eq!(complete(&Offload { checksum: far, ..good }, &mut packet.clone()), Err(Malformed::Length));
    let mut short = packet.clone();
    short[32] = 0x40;
    assert_eq!(refused(good, &short), Malformed::Length, "a TCP header of 16 bytes");
    short[32] = 0x50;
    short[6] = 0x20;
    assert_eq!(refused(good, &short), Malformed::Type, "a fragment");
}

proptest! {
    #[test]
    fn segments_are_the_packets_that_the_sender_would_have_made(sample in any_sample(), size in 1..1500_u16) {
        prop_assert_eq!(segments(&sample, size), sample.cut(size));
    }

    #[test]
    fn a_trimmed_super_packet_is_the_same_without_its_first(sample in any_sample(), size in 1..1500_u16) {
        let (offload, packet) = sample.left_to_do(size);
        let mut parcel = [&offload.to_bytes()[..], &packet].concat();
        let untouched = parcel.clone();
        let mut expected = sample.cut(size);
        match trim_first(&mut parcel) {
            Some(start) => {
                let (offload, packet) = Offload::parse(&parcel[start..]).unwrap();
                prop_assert_eq!(offload.packets(packet), expected.len() - 1);
                expected.remove(0);
                prop_assert_eq!(all(Segmenter::new(offload, packet).unwrap()), expected);
            }
            None => prop_assert!(expected.len() == 1 && parcel == untouched),
        }
    }
}
