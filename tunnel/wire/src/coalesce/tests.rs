use super::*;
use crate::check::{all_segments, super_packets};
use crate::samples::{Sample, any_sample};
use crate::segment::Segmenter;
use proptest::prelude::*;

/// Number of packets in each super-packet.
fn counts(packets: &[Vec<u8>]) -> Vec<usize> {
    super_packets(packets).iter().map(|(count, _)| *count).collect()
}

/// Segments of one flow.
fn flow(index: u32) -> Sample {
    Sample { id: index as u16, sequence: 100 * index, flags: 0x10, ..Sample::tcp(100) }
}

/// The counts of super-packets for packets of one flow, of which `change` changes the one at `changed_index`.
fn counts_with_change(changed_index: usize, change: impl Fn(&mut Sample)) -> Vec<usize> {
    let packets = (0..4).map(|index| {
        let mut sample = flow(index as u32);
        if index == changed_index {
            change(&mut sample);
        }
        sample.packet()
    });
    counts(&packets.collect::<Vec<_>>())
}

#[test]
fn segments_of_a_super_packet_are_coalesced_to_it() {
    for (v6, tcp) in [(false, true), (true, true), (false, false), (true, false)] {
        let sample = Sample { v6, tcp, ..Sample::tcp(60_000) };
        let (offload, packet) = sample.with_offload(1400);
        let coalesced = super_packets(&sample.segments(1400));
        assert_eq!(coalesced, [(43, [&offload.to_bytes()[..], &packet].concat())]);
    }
}

#[test]
fn packets_that_differ_are_not_coalesced() {
    assert_eq!(counts_with_change(9, |_| ()), [4]);
    assert_eq!(counts_with_change(2, |sample| sample.sequence += 1), [2, 1, 1]);
    assert_eq!(counts_with_change(2, |sample| sample.tos = 3), [2, 1, 1]);
    assert_eq!(counts_with_change(2, |sample| sample.v6 = true), [2, 1, 1]);
    assert_eq!(counts_with_change(2, |sample| sample.tcp = false), [2, 1, 1]);
    assert_eq!(counts_with_change(2, |sample| sample.options = vec![1; 4]), [2, 1, 1]);
    assert_eq!(counts_with_change(2, |sample| sample.window += 1), [2, 1, 1]);
    let sample_with_timestamp = |timestamp: u8| Sample {
        options: vec![1, 1, 8, 10, 0, 0, 0, timestamp, 0, 0, 0, 0],
        ..flow(u32::from(timestamp))
    };
    assert_eq!(
        counts(&[sample_with_timestamp(0).packet(), sample_with_timestamp(1).packet()]),
        [1, 1],
        "another timestamp"
    );
    assert_eq!(counts_with_change(2, |sample| sample.payload.push(0)), [2, 1, 1], "longer");
    assert_eq!(counts_with_change(2, |sample| sample.payload.clear()), [2, 1, 1], "an acknowledgement alone");
    for flag in [0x01, 0x02, 0x04, 0x20, 0x40, 0x80] {
        assert_eq!(counts_with_change(2, |sample| sample.flags |= flag), [2, 1, 1], "flag {flag:#x}");
    }
}

#[test]
fn a_short_segment_or_psh_ends_a_super_packet() {
    assert_eq!(counts_with_change(1, |sample| sample.payload.truncate(60)), [2, 2]);
    assert_eq!(counts_with_change(1, |sample| sample.flags |= 8), [2, 2]);
    assert_eq!(counts_with_change(0, |sample| sample.flags |= 8), [1, 3]);
    assert_eq!(counts_with_change(0, |sample| sample.payload.truncate(60)), [1, 3]);
}

#[test]
fn the_identification_counts_only_where_packets_may_be_fragmented() {
    assert_eq!(counts_with_change(2, |sample| sample.id = 77), [4]);
    let packets = |may_be_fragmented: bool| -> Vec<_> {
        (0..3_u16)
            .map(|index| {
                let sample =
                    Sample { id: 5 * index, sequence: 100 * u32::from(index), flags: 0x10, ..Sample::tcp(100) };
                let mut packet = sample.packet();
                if may_be_fragmented {
                    packet[6] = 0;
                    let checksum = crate::checksum::update(word(&packet, 10), 0x4000, 0);
                    put_word(&mut packet, 10, checksum);
                }
                packet
            })
            .collect()
    };
    assert_eq!(counts(&packets(false)), [3]);
    assert_eq!(counts(&packets(true)), [1, 1, 1]);
}

#[test]
fn a_packet_with_a_wrong_checksum_is_written_alone_and_unchanged() {
    let sample = Sample::tcp(500);
    for offset in [10, 30, 47] {
        for changed_index in 0..5 {
            let mut packets = sample.segments(100);
            packets[changed_index][offset] ^= 1;
            let coalesced = super_packets(&packets);
            let single_packet = [&[0; 10][..], &packets[changed_index]].concat();
            assert!(coalesced.contains(&(1, single_packet)), "packet {changed_index}, byte {offset}");
        }
    }
    let mut datagrams = Sample { tcp: false, ..sample }.segments(100);
    datagrams.iter_mut().for_each(|datagram| put_word(datagram, 26, 0));
    assert_eq!(counts(&datagrams), [1; 5], "without a checksum there is nothing to verify");
}

#[test]
fn a_checksum_of_ones_is_not_coalesced() {
    // It is correct where 0 is, but segmentation writes 0.
    let mut packets: Vec<_> = (0..3).map(|index| flow(index).packet()).collect();
    let last = &mut packets[2];
    let payload = Sum::default().add_word(word(last, 40)).add_word(word(last, 36)).folded();
    put_word(last, 40, payload);
    for (checksum, expected) in [(0, &[3][..]), (0xffff, &[2, 1])] {
        put_word(&mut packets[2], 36, checksum);
        assert!(crate::check::has_correct_checksums(&packets[2]));
        assert_eq!(counts(&packets), expected);
    }
}

#[test]
fn a_super_packet_is_bounded_in_bytes_and_packets() {
    assert_eq!(counts(&Sample { flags: 0x10, ..Sample::tcp(6500) }.segments(100)), [64, 1]);
    let flow = |index: u32| Sample { sequence: 1400 * index, flags: 0x10, ..Sample::tcp(1400) }.packet();
    assert_eq!(counts(&(0..50).map(flow).collect::<Vec<_>>()), [46, 4], "40 + 46 * 1400 = 64440 <= 65535");
}

#[test]
fn a_device_without_offload_gets_packets() {
    let packets = Sample::tcp(1000).segments(100);
    let mut coalescer = Coalescer::new(false, true);
    assert_eq!((coalescer.coalesce(&packets), coalescer.skip(), coalescer.header()), (1, 0, &[0; 10][..]));
    assert_eq!(coalescer.coalesce::<Vec<u8>>(&[]), 0);
}

/// A packet without what coalescing may change: the identification of one that is never fragmented (RFC 6864), and with it the
/// header's checksum if that is correct.
fn without_identification(mut packet: Vec<u8>) -> Vec<u8> {
    if packet[0] >> 4 == 4 && packet[6] & 0x40 != 0 {
        let is_correct = Sum::of(&packet[..20]).checksum() == 0;
        put_word(&mut packet, 4, 0);
        if is_correct {
            put_word(&mut packet, 10, 0);
        }
    }
    packet
}

proptest! {
    #[test]
    fn coalesced_packets_are_segmented_into_the_same(samples in proptest::collection::vec(any_sample(), 1..4),
                                                size in 40..1500_u16, changed_index in 0..100_usize, flipped_byte in 0..2000_usize) {
        let plain = |sample: Sample| Sample { flags: 0x10 | sample.flags & 8, ..sample };
        let mut packets: Vec<_> = samples.into_iter().flat_map(|sample| plain(sample).segments(size)).collect();
        if let Some(byte) = packets.get_mut(changed_index).and_then(|packet| packet.get_mut(flipped_byte)) {
            *byte ^= 4;
        }
        let mut segmented = Vec::new();
        for (count, super_packet) in super_packets(&packets) {
            let (offload, packet) = VirtioNetHeader::parse(&super_packet).unwrap();
            if count == 1 {
                segmented.push(packet.to_vec());
            } else {
                segmented.extend(all_segments(Segmenter::new(offload, packet).unwrap()));
            }
        }
        let [segmented, packets] =
            [segmented, packets].map(|all| all.into_iter().map(without_identification).collect::<Vec<_>>());
        prop_assert_eq!(segmented, packets);
    }
}
