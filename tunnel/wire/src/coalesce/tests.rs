use super::*;
use crate::check::{all, parcels};
use crate::samples::{Sample, any_sample};
use crate::segment::Segmenter;
use proptest::prelude::*;

/// How many packets each parcel has.
fn runs(packets: &[Vec<u8>]) -> Vec<usize> {
    parcels(packets).iter().map(|(count, _)| *count).collect()
}

/// Segments of one flow.
fn flow(place: u32) -> Sample {
    Sample { id: place as u16, sequence: 100 * place, flags: 0x10, ..Sample::tcp(100) }
}

/// Packets of one flow, each changed by `change` if its place is `at`.
fn changed(at: usize, change: impl Fn(&mut Sample)) -> Vec<usize> {
    let packets = (0..4).map(|place| {
        let mut sample = flow(place as u32);
        if place == at {
            change(&mut sample);
        }
        sample.whole()
    });
    runs(&packets.collect::<Vec<_>>())
}

#[test]
fn segments_of_one_flow_become_the_super_packet_that_they_were_cut_from() {
    for (v6, tcp) in [(false, true), (true, true), (false, false), (true, false)] {
        let sample = Sample { v6, tcp, ..Sample::tcp(60_000) };
        let (offload, packet) = sample.left_to_do(1400);
        let merged = parcels(&sample.cut(1400));
        assert_eq!(merged, [(43, [&offload.to_bytes()[..], &packet].concat())]);
    }
}

#[test]
fn what_differs_is_not_merged() {
    assert_eq!(changed(9, |_| ()), [4]);
    assert_eq!(changed(2, |sample| sample.sequence += 1), [2, 1, 1]);
    assert_eq!(changed(2, |sample| sample.tos = 3), [2, 1, 1]);
    assert_eq!(changed(2, |sample| sample.v6 = true), [2, 1, 1]);
    assert_eq!(changed(2, |sample| sample.tcp = false), [2, 1, 1]);
    assert_eq!(changed(2, |sample| sample.options = vec![1; 4]), [2, 1, 1]);
    assert_eq!(changed(2, |sample| sample.window += 1), [2, 1, 1]);
    let stamped =
        |stamp: u8| Sample { options: vec![1, 1, 8, 10, 0, 0, 0, stamp, 0, 0, 0, 0], ..flow(u32::from(stamp)) };
    assert_eq!(runs(&[stamped(0).whole(), stamped(1).whole()]), [1, 1], "another timestamp");
    assert_eq!(changed(2, |sample| sample.payload.push(0)), [2, 1, 1], "longer");
    assert_eq!(changed(2, |sample| sample.payload.clear()), [2, 1, 1], "an acknowledgement alone");
    for flag in [0x01, 0x02, 0x04, 0x20, 0x40, 0x80] {
        assert_eq!(changed(2, |sample| sample.flags |= flag), [2, 1, 1], "flag {flag:#x}");
    }
}

#[test]
fn a_short_segment_or_a_push_ends_the_run() {
    assert_eq!(changed(1, |sample| sample.payload.truncate(60)), [2, 2]);
    assert_eq!(changed(1, |sample| sample.flags |= 8), [2, 2]);
    assert_eq!(changed(0, |sample| sample.flags |= 8), [1, 3]);
    assert_eq!(changed(0, |sample| sample.payload.truncate(60)), [1, 3]);
}

#[test]
fn the_identification_counts_only_where_packets_may_be_fragmented() {
    assert_eq!(changed(2, |sample| sample.id = 77), [4]);
    let packets = |may_be_fragmented: bool| -> Vec<_> {
        (0..3_u16)
            .map(|place| {
                let sample =
                    Sample { id: 5 * place, sequence: 100 * u32::from(place), flags: 0x10, ..Sample::tcp(100) };
                let mut packet = sample.whole();
                if may_be_fragmented {
                    packet[6] = 0;
                    let checksum = crate::checksum::update(word(&packet, 10), 0x4000, 0);
                    put_word(&mut packet, 10, checksum);
                }
                packet
            })
            .collect()
    };
    assert_eq!(runs(&packets(false)), [3]);
    assert_eq!(runs(&packets(true)), [1, 1, 1]);
}

#[test]
fn a_packet_with_a_wrong_checksum_goes_alone_and_as_it_is() {
    let sample = Sample::tcp(500);
    for at in [10, 30, 47] {
        for broken in 0..5 {
            let mut packets = sample.cut(100);
            packets[broken][at] ^= 1;
            let merged = parcels(&packets);
            let alone = [&[0; 10][..], &packets[broken]].concat();
            assert!(merged.contains(&(1, alone)), "packet {broken}, byte {at}");
        }
    }
    let mut datagrams = Sample { tcp: false, ..sample }.cut(100);
    datagrams.iter_mut().for_each(|datagram| put_word(datagram, 26, 0));
    assert_eq!(runs(&datagrams), [1; 5], "without a checksum there is nothing to verify");
}

#[test]
fn a_checksum_of_ones_would_not_come_back_and_is_not_merged() {
    // It is right wherever 0 is, but whoever cuts the super-packet again writes 0.
    let mut packets: Vec<_> = (0..3).map(|place| flow(place).whole()).collect();
    let last = &mut packets[2];
    let payload = Sum::default().word(word(last, 40)).word(word(last, 36)).folded();
    put_word(last, 40, payload);
    for (checksum, expected) in [(0, &[3][..]), (0xffff, &[2, 1])] {
        put_word(&mut packets[2], 36, checksum);
        assert!(crate::check::sums_are_right(&packets[2]));
        assert_eq!(runs(&packets), expected);
    }
}

#[test]
fn a_super_packet_is_bounded_in_bytes_and_packets() {
    assert_eq!(runs(&Sample { flags: 0x10, ..Sample::tcp(6500) }.cut(100)), [64, 1]);
    let flow = |place: u32| Sample { sequence: 1400 * place, flags: 0x10, ..Sample::tcp(1400) }.whole();
    assert_eq!(runs(&(0..50).map(flow).collect::<Vec<_>>()), [46, 4], "40 + 46 * 1400 = 64440 <= 65535");
}

#[test]
fn a_device_that_cannot_cut_gets_packets() {
    let packets = Sample::tcp(1000).cut(100);
    let mut merger = Merger::new(false, true);
    assert_eq!((merger.take(&packets), merger.skip(), merger.head()), (1, 0, &[0; 10][..]));
    assert_eq!(merger.take::<Vec<u8>>(&[]), 0);
}

proptest! {
    #[test]
    fn what_is_merged_and_cut_again_is_the_same(samples in proptest::collection::vec(any_sample(), 1..4),
                                                size in 40..1500_u16, broken in 0..100_usize, flip in 0..2000_usize) {
        let plain = |sample: Sample| Sample { flags: 0x10 | sample.flags & 8, ..sample };
        let mut packets: Vec<_> = samples.into_iter().flat_map(|sample| plain(sample).cut(size)).collect();
        if let Some(byte) = packets.get_mut(broken).and_then(|packet| packet.get_mut(flip)) {
            *byte ^= 4;
        }
        let mut again = Vec::new();
        for (count, parcel) in parcels(&packets) {
            let (offload, packet) = Offload::parse(&parcel).unwrap();
            if count == 1 {
                again.push(packet.to_vec());
            } else {
                again.extend(all(Segmenter::new(offload, packet).unwrap()));
            }
        }
        prop_assert_eq!(again, packets);
    }
}
