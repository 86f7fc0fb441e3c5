use super::*;
use units::PathId;
use wire::frame::{Ack, AckRanges};

fn path() -> (SentPackets, PathSender, FragmentOutcomes) {
    let sender = PathSender::new(PathId(0), u32::MAX, Span::from_secs(1));
    (SentPackets::new(0), sender, FragmentOutcomes::default())
}

fn millis(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// Everything up to `largest` has arrived.
fn ack(largest: u32, ce_count: u32) -> Ack {
    let mut ranges = AckRanges::default();
    ranges.push(0, largest + 1);
    Ack { path: 0, largest, ack_delay_us: 0, receive_timestamp_us: 0, ce_count, ranges }
}

#[test]
fn a_mark_counts_once_in_whatever_order_acknowledgements_come() {
    let (mut packets, mut sender, mut outcomes) = path();
    for fragment in 0..5 {
        let data = DatagramData::single(fragment, 1000);
        assert_eq!(packets.push_data(millis(1), &data, 1100, &mut sender), fragment);
    }
    let mut marks = |largest, ce_count| {
        let acked = packets.on_ack(millis(1), &ack(largest, ce_count), &mut sender, &mut outcomes);
        acked.expect("all was sent").marked
    };
    // The second one was sent before the first, by another path.
    assert_eq!([marks(1, 1), marks(0, 0), marks(3, 1), marks(4, 2)], [1, 0, 0, 1]);
}

/// 30 datagrams of 100 bytes and one of 1000 are four segments of 1000 bytes, in flight and delivered.
#[test]
fn small_packets_take_no_more_of_the_window_than_their_bytes() {
    let (mut packets, mut sender, mut outcomes) = path();
    for fragment in 0..31 {
        let datagram = if fragment == 30 { 1000 } else { 100 };
        let bytes = datagram - DATA_HEADER_BYTES - SEAL_OVERHEAD;
        packets.push_data(millis(1), &DatagramData::single(fragment, bytes), 1000, &mut sender);
    }
    assert_eq!(packets.in_flight, 4);
    assert!(packets.on_ack(millis(9), &ack(29, 0), &mut sender, &mut outcomes).is_some());
    assert_eq!((packets.in_flight, sender.delivered(), packets.is_idle()), (1, 3, false));
    assert!(packets.on_ack(millis(9), &ack(30, 0), &mut sender, &mut outcomes).is_some());
    assert_eq!((packets.in_flight, sender.delivered(), packets.is_idle()), (0, 4, true));
}

/// RFC 6298, section 2: the first sample is the estimate, a later one counts for an eighth.
#[test]
fn the_minimum_probe_rtt_counts_until_data_is_acknowledged_and_a_much_shorter_one_on_an_idle_path() {
    let (mut packets, mut sender, mut outcomes) = path();
    for (ms, rtt, expected) in [(1, 1500, 1500), (2, 20, 20), (3, 400, 20)] {
        packets.on_probe(millis(ms), Span::from_millis(rtt), &mut sender);
        assert_eq!(sender.rtt().srtt(), Span::from_millis(expected));
    }
    packets.push_data(millis(10), &DatagramData::single(1, 1000), 1100, &mut sender);
    assert!(packets.on_ack(millis(50), &ack(0, 0), &mut sender, &mut outcomes).is_some());
    let (delay, _) = packets.one_way_delay.unwrap();
    for (ms, rtt, expected, change) in [(60, 30, 22_500, 0), (70, 20, 22_500, 0), (80, 10, 10_000, 12_500)] {
        packets.on_probe(millis(ms), Span::from_millis(rtt), &mut sender);
        assert_eq!(sender.rtt().srtt(), Span::from_micros(expected));
        assert_eq!(packets.one_way_delay.map(|(mean, _)| mean), Some(delay.wrapping_sub(change)));
    }
}

/// RFC 9002, section 6.2.1: SRTT, four deviations, which are half the first sample each, and the peer's maximum delay.
#[test]
fn a_probe_timeout_includes_the_longest_that_the_peer_delays_an_acknowledgement() {
    for (rtt, expected) in [(20, 20 + 40 + 10), (100, 100 + 200 + 25)] {
        let (mut packets, mut sender, mut outcomes) = path();
        packets.push_data(millis(1), &DatagramData::single(1, 1000), 1100, &mut sender);
        assert!(packets.on_ack(millis(1 + rtt), &ack(0, 0), &mut sender, &mut outcomes).is_some());
        assert_eq!(packets.pto(&sender), Span::from_millis(expected));
    }
}

/// An acknowledgement of these packet numbers, oldest range first.
fn ack_of(ranges: &[std::ops::RangeInclusive<u32>]) -> Ack {
    let mut acked = AckRanges::default();
    let mut above: Option<u32> = None;
    for range in ranges.iter().rev() {
        acked.push(above.map_or(0, |above| above - range.end() - 1), range.end() - range.start() + 1);
        above = Some(*range.start());
    }
    Ack { largest: *ranges.last().expect("one range").end(), ranges: acked, ..ack(0, 0) }
}

/// Packets sent a millisecond apart over a path of 40 ms, of which number 5 skips 20 ms.
#[test]
fn a_packet_that_overtakes_others_has_no_rtt_sample_but_after_five_seconds_without_one() {
    let (mut packets, mut sender, mut outcomes) = path();
    let mut rtt_ms = |sent: &[u64], now, acked: &[std::ops::RangeInclusive<u32>]| {
        for number in sent {
            packets.push_data(millis(*number), &DatagramData::single(*number, 1000), 1100, &mut sender);
        }
        let acked = packets.on_ack(millis(now), &ack_of(acked), &mut sender, &mut outcomes).expect("all was sent");
        acked.rtt.map(Span::as_millis)
    };
    assert_eq!(rtt_ms(&[0, 1, 2, 3, 4, 5, 6], 41, &[0..=1]), Some(40));
    assert_eq!(rtt_ms(&[], 42, &[0..=1, 5..=5]), None);
    assert_eq!(rtt_ms(&[], 43, &[0..=3, 5..=5]), None, "the largest is acknowledged already");
    assert_eq!(rtt_ms(&[7, 8], 46, &[0..=6]), Some(40));
    assert_eq!(rtt_ms(&[9], 5_047, &[0..=6, 8..=8]), Some(5_039));
}

/// The UDP payload of a fragment of 1000 bytes.
const FULL: u32 = 1000 + DATA_HEADER_BYTES + SEAL_OVERHEAD;

/// Ten packets sent a millisecond apart, of which 3 to 9 are acknowledged first, at a round trip of 40 ms.
fn three_lost() -> (SentPackets, PathSender, FragmentOutcomes) {
    let (mut packets, mut sender, mut outcomes) = path();
    for fragment in 0..10 {
        packets.push_data(millis(fragment), &DatagramData::single(fragment, 1000), FULL, &mut sender);
    }
    assert!(packets.on_ack(millis(49), &ack_of(&[3..=9]), &mut sender, &mut outcomes).is_some());
    assert_eq!((outcomes.lost.as_slice(), sender.delivered()), ([0, 1, 2].as_slice(), 7));
    outcomes.acked.clear();
    (packets, sender, outcomes)
}

#[test]
fn a_lost_packet_that_arrives_is_delivered_once() {
    let (mut packets, mut sender, mut outcomes) = three_lost();
    for _ in 0..2 {
        assert!(packets.on_ack(millis(50), &ack_of(&[0..=0, 2..=9]), &mut sender, &mut outcomes).is_some());
    }
    assert_eq!((outcomes.acked.as_slice(), sender.delivered(), packets.lost.spurious), ([2, 0].as_slice(), 9, 2));
}

/// Packet 0 was 9 behind the largest one, and 51 ms old: 11/8 of 40 ms are 55.
#[test]
fn both_thresholds_grow_so_that_the_late_packet_would_not_have_been_lost() {
    let (mut packets, mut sender, mut outcomes) = three_lost();
    assert!(packets.on_ack(millis(51), &ack(9, 0), &mut sender, &mut outcomes).is_some());
    let thresholds = packets.lost.thresholds;
    assert_eq!((thresholds.packets(), thresholds.loss_delay(Span::from_millis(40))), (10, Span::from_millis(55)));
}

/// RFC 9000, section 13.3: the probe timeout is 40 ms, four deviations of 20 ms, and the peer's delay of 20 ms.
#[test]
fn a_lost_packet_is_forgotten_after_a_probe_timeout() {
    let spurious_at = |ms| {
        let (mut packets, mut sender, mut outcomes) = three_lost();
        assert!(packets.on_ack(millis(ms), &ack(9, 0), &mut sender, &mut outcomes).is_some());
        packets.lost.spurious
    };
    assert_eq!([49 + 139, 49 + 140].map(spurious_at), [3, 0]);
}

#[test]
fn the_latest_256_lost_packets_are_remembered() {
    let (mut packets, mut sender, mut outcomes) = path();
    for fragment in 0..310 {
        packets.push_data(millis(1), &DatagramData::single(fragment, 1000), FULL, &mut sender);
    }
    assert!(packets.on_ack(millis(41), &ack_of(&[303..=309]), &mut sender, &mut outcomes).is_some());
    assert_eq!(outcomes.lost.len(), 303);
    assert!(packets.on_ack(millis(42), &ack(309, 0), &mut sender, &mut outcomes).is_some());
    assert_eq!(packets.lost.spurious, 256);
}
