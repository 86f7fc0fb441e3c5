//! Acknowledgements of a receiver: time and content.

use crate::tcp_connection::{MSS, Options, new_receiver, receiver_config};
use control::Ecn;
use ropewalk_transport::tcp::{Ack, Receiver, Segment, SegmentKind, receiver};
use units::{Instant, Span};

fn data(seq: u64, timestamp: u32) -> Segment {
    Segment { kind: SegmentKind::Data, seq, tsval: timestamp, tsecr: 0, cwr: false, retransmission: false, psh: false }
}

/// A receiver of `count` segments in order with this timestamp, a nanosecond apart, and its acknowledgements.
fn receiver_after(count: u64, timestamp: u32) -> (Receiver, Vec<Ack>) {
    let mut receiver = new_receiver(Options::default());
    let acks = (0..count).filter_map(|seq| receiver.handle(Instant(seq), &data(seq, timestamp), false)).collect();
    (receiver, acks)
}

#[test]
fn the_first_sixteen_are_acknowledged_at_once_and_then_every_second_segment() {
    let acked: Vec<u64> = receiver_after(26, 1).1.iter().map(|ack| ack.ack).collect();
    let expected: Vec<u64> = (1..=16).chain([18, 20, 22, 24, 26]).collect();
    assert_eq!(acked, expected);
}

#[test]
fn a_single_segment_is_acknowledged_after_forty_milliseconds_and_a_tick() {
    let (mut receiver, acks) = receiver_after(17, 1);
    assert_eq!((acks.len(), receiver.deadline()), (16, Instant::ZERO + Span::from_millis(41)));
    let deadline = receiver.deadline();
    assert_eq!(receiver.on_timeout(deadline).map(|ack| ack.ack), Some(17));
}

/// After the first sixteen acknowledgements, as for segments that come alone.
#[test]
fn a_super_segment_is_acknowledged_once_and_a_lone_segment_later() {
    let (mut receiver, _) = receiver_after(20, 1);
    // One that fills half of the buffer is acknowledged when the application has read it.
    let mut ack = |seq, segments| {
        let ack = receiver.handle_super_segment(Instant(seq), &data(seq, 1), segments, false);
        ack.or_else(|| receiver.on_timeout(Instant(seq)))
    };
    assert_eq!([ack(20, 40), ack(60, 2)].map(|ack| ack.map(|ack| ack.ack)), [Some(60), Some(62)]);
    assert_eq!(ack(62, 1), None);
    assert_eq!((receiver.delivered(), receiver.counters().received), (63, 63));
    assert_eq!(receiver.deadline(), Instant::ZERO + Span::from_millis(41), "as a lone segment");
}

/// RFC 2018 and RFC 2883: what is missing, what has come, what has come twice.
#[test]
fn a_super_segment_is_one_block_of_a_selective_acknowledgement() {
    let (mut receiver, _) = receiver_after(20, 1);
    let mut ack = |seq, segments| {
        let ack = receiver.handle_super_segment(Instant::ZERO, &data(seq, 1), segments, false).expect("at once");
        (ack.ack, ack.sack_blocks.iter().collect::<Vec<_>>())
    };
    assert_eq!(ack(28, 8), (20, vec![(28, 36)]));
    assert_eq!(ack(20, 8), (36, vec![]), "it fills the hole");
    assert_eq!(ack(20, 8), (36, vec![(20, 28)]), "a duplicate");
    assert_eq!(ack(34, 4), (38, vec![(34, 36)]), "half of it is one");
    assert_eq!(receiver.counters().duplicates, 10);
}

/// RFC 9768 section 3.2.2.5: the field counts segments, modulo 8, from 5.
#[test]
fn a_marked_super_segment_counts_as_so_many_marked_segments() {
    let mut receiver = new_receiver(Options { echo: Ecn::L4s, ..Options::default() });
    let mut ace = |seq, segments, is_marked| {
        receiver.handle_super_segment(Instant::ZERO, &data(seq, 1), segments, is_marked).expect("at once").ace
    };
    assert_eq!([ace(0, 5, false), ace(5, 2, true), ace(7, 4, true)], [5, 7, (5 + 6) % 8]);
}

/// Linux `tcp_cleanup_rbuf`: the application has read all there is, which it does after the last that comes at an instant.
#[test]
fn a_segment_with_psh_is_acknowledged_when_the_application_has_read_it() {
    let pushed = |seq| Segment { psh: true, ..data(seq, 1) };
    let (mut receiver, _) = receiver_after(18, 1);
    assert!(receiver.handle(Instant(18), &data(18, 1), false).is_none());
    let acks = [19, 20].map(|seq| receiver.handle(Instant(seq), &pushed(seq), false).map(|ack| ack.ack));
    assert_eq!((acks, receiver.deadline()), ([Some(20), None], Instant(20)), "a second one, and a lone one");
    assert_eq!(
        receiver.handle(Instant(21), &data(21, 1), false).map(|ack| ack.ack),
        Some(22),
        "with what came with it"
    );
    assert!(receiver.handle(Instant(22), &pushed(22), false).is_none());
    assert_eq!(receiver.on_timeout(Instant(22)).map(|ack| ack.ack), Some(23));
    let mut unread = Receiver::with_reader(receiver_config(Options::default()));
    (0..18).for_each(|seq| _ = unread.handle(Instant::ZERO, &data(seq, 1), false));
    assert!(unread.handle(Instant::ZERO, &pushed(18), false).is_none(), "nothing is read");
}

/// What comes while the application sleeps is read, and acknowledged, when it runs.
#[test]
fn an_application_that_wakes_late_acknowledges_all_that_came_until_it_reads() {
    let at = |us| Instant::ZERO + Span::from_micros(us);
    let mut receiver = Receiver::new(receiver::ReceiverConfig { gro: 8, ..receiver_config(Options::default()) });
    (0..24).for_each(|seq| _ = receiver.handle(Instant(seq), &data(seq, 1), false));
    let pushed = |seq| Segment { psh: true, ..data(seq, 1) };
    for seq in 24..27 {
        receiver.set_next_read(at(30));
        assert_eq!(receiver.handle(at(seq), &pushed(seq), false), None);
        assert_eq!(receiver.deadline(), at(30));
    }
    assert_eq!(receiver.on_timeout(at(30)).map(|ack| ack.ack), Some(27));
    assert_eq!(receiver.deadline(), Instant::NEVER);
}

/// One core's Linux: the program that reads first runs when all has come that comes at an instant, later before the next packet.
#[test]
fn an_application_that_preempts_its_tunnel_acknowledges_each_pushed_segment() {
    let ack = |preemption| {
        let mut receiver = new_receiver(Options::default());
        receiver.set_preemption(preemption);
        (0..18).for_each(|seq| _ = receiver.handle(Instant(seq), &data(seq, 1), false));
        assert_eq!(receiver.counters().acks, 17);
        receiver.handle(Instant(18), &Segment { psh: true, ..data(18, 1) }, false).map(|ack| ack.ack)
    };
    assert_eq!([17, 18].map(ack), [Some(19), None]);
}

/// Linux `tcp_grow_window`. Its capture with 100 ms has ACKs of one segment each from the third round trip on, whose
/// windows end three segments further each.
#[test]
fn while_the_window_grows_every_segment_is_acknowledged() {
    let config = receiver::ReceiverConfig { buffer: [1 << 17, 6 << 20], ..receiver_config(Options::default()) };
    let (mut receiver, mut acks) = (Receiver::new(config), Vec::new());
    for seq in 0..70 {
        let round = [10, 30].iter().filter(|first| seq >= **first).count() as u32 + 1;
        let segment = Segment { tsecr: 100 * round - 50, ..data(seq, 100 * round) };
        let now = Instant::ZERO + Span::from_millis(u64::from(100 * round + 50)) + Span::from_micros(seq);
        acks.extend(receiver.handle(now, &segment, false));
    }
    let growing: Vec<u64> = acks.iter().map(|ack| ack.ack).filter(|ack| *ack > 32).collect();
    assert_eq!(growing, (33..=70).collect::<Vec<u64>>());
    let edges: Vec<u64> = acks.iter().rev().take(5).map(|ack| ack.ack * u64::from(MSS) + ack.receive_window).collect();
    assert!(edges.windows(2).all(|edge| (edge[0] - edge[1]).abs_diff(3 * u64::from(MSS)) < 128), "{edges:?}");
}

#[test]
fn three_duplicate_acknowledgements_are_sent_at_once_and_forty_four_more_are_compressed() {
    let (mut receiver, _) = receiver_after(20, 1);
    let is_acked: Vec<bool> =
        (21..=69).map(|seq| receiver.handle(Instant::ZERO, &data(seq, 1), false).is_some()).collect();
    assert_eq!(is_acked[..3], [true; 3]);
    assert!(is_acked[3..47].iter().all(|is_immediate| !is_immediate));
    assert!(is_acked[47], "the next one acknowledges all of them");
}

#[test]
fn with_quick_acknowledgements_every_segment_is_acknowledged() {
    let mut receiver = new_receiver(Options { quick_ack: true, ..Options::default() });
    let mut segments = (0..40).chain(41..90);
    assert!(segments.all(|seq| receiver.handle(Instant::ZERO, &data(seq, 1), false).is_some()));
}

/// A receive buffer of 131 072 bytes, half of it window, and packets of 2304 bytes with 1000 bytes of data. The window
/// after the first one, 64 384 bytes, is in units of 4 bytes, as `rmem_max` (212 992 bytes) is larger than the buffer: 65 close
/// it. It does not open before reading `r` of them leaves (131 072 - (65 - r) 2304) / 2 >= 131 072 / 32 bytes (RFC 9293
/// section 3.8.6.2.2): r = 12. Then it is told of when it has doubled, until it is more than half of its maximum.
#[test]
fn what_is_not_read_closes_the_window_and_reading_opens_it_step_by_step() {
    let config = receiver::ReceiverConfig { buffer: [1 << 17; 2], ..receiver_config(Options::default()) };
    let mut receiver = Receiver::with_reader(config);
    let window = |receiver: &mut Receiver| receiver.piggyback(Instant::ZERO).receive_window;
    let mut seq = 0;
    while window(&mut receiver) >= 1000 {
        receiver.handle(Instant::ZERO, &data(seq, 1), false);
        seq += 1;
    }
    assert_eq!((seq, receiver.unread()), (65, 65));
    let updates: Vec<u64> = (1..=65).filter(|read| receiver.read(Instant::ZERO, *read).is_some()).collect();
    assert_eq!(updates, [12, 16, 24, 40]);
    assert_eq!((receiver.unread(), window(&mut receiver)), (0, 64_536), "65 536 less one segment");
}

#[test]
fn a_probe_of_the_window_is_answered_at_once() {
    let (mut receiver, _) = receiver_after(20, 1);
    let probe = Segment { kind: SegmentKind::WindowProbe, ..data(20, 1) };
    let ack = receiver.handle(Instant::ZERO, &probe, false).expect("at once");
    assert_eq!((ack.ack, receiver.counters().received), (20, 20));
}

#[test]
fn a_filled_hole_is_acknowledged_at_once() {
    let (mut receiver, _) = receiver_after(20, 1);
    (21..=30).for_each(|seq| {
        receiver.handle(Instant::ZERO, &data(seq, 1), false);
    });
    let ack = receiver.handle(Instant::ZERO, &data(20, 1), false).expect("at once");
    assert_eq!((ack.ack, ack.sack_blocks.len()), (31, 0));
}

#[test]
fn a_duplicate_is_reported_in_the_first_block() {
    let (mut receiver, _) = receiver_after(20, 1);
    receiver.handle(Instant::ZERO, &data(25, 1), false);
    let ack = receiver.handle(Instant::ZERO, &data(7, 1), false).expect("at once");
    assert_eq!((ack.ack, ack.sack_blocks.iter().collect::<Vec<_>>()), (20, vec![(7, 8), (25, 26)]));
}

#[test]
fn paws_rejects_a_segment_older_by_more_than_a_millisecond() {
    let (mut receiver, _) = receiver_after(20, 1000);
    let ack = receiver.handle(Instant::ZERO, &data(20, 998), false).expect("answered");
    assert_eq!((ack.ack, ack.sack_blocks.len(), receiver.delivered()), (20, 0, 20));
    let ack = receiver.handle(Instant::ZERO, &data(3, 998), false).expect("answered");
    assert_eq!(
        ack.sack_blocks.iter().collect::<Vec<_>>(),
        [(3, 4)],
        "a duplicate that is too old is reported all the same"
    );
    receiver.handle(Instant::ZERO, &data(20, 999), false);
    receiver.handle(Instant::ZERO, &data(21, 1000), false);
    assert_eq!((receiver.delivered(), receiver.counters().paws_rejected), (22, 2));
}

#[test]
fn a_duplicate_from_before_the_window_does_not_renew_the_timestamp() {
    let (mut receiver, _) = receiver_after(20, 1000);
    let ack = receiver.handle(Instant::ZERO, &data(7, 1500), false).expect("reported");
    assert_eq!(ack.tsecr, 1000);
    receiver.handle(Instant::ZERO, &data(20, 1000), false);
    assert_eq!(receiver.delivered(), 21, "an original overtaken by that duplicate is accepted");
}

#[test]
fn a_mark_is_echoed_until_cwr() {
    let (mut receiver, _) = receiver_after(20, 1);
    receiver.handle(Instant::ZERO, &data(20, 1), true);
    let acknowledge = |receiver: &mut Receiver, segment: &Segment| {
        receiver.handle(Instant::ZERO, segment, false).or_else(|| receiver.on_timeout(receiver.deadline()))
    };
    assert!(acknowledge(&mut receiver, &data(21, 1)).expect("acknowledged").ece);
    assert!(acknowledge(&mut receiver, &data(22, 1)).expect("acknowledged").ece);
    let segment = Segment { cwr: true, ..data(23, 1) };
    assert!(!acknowledge(&mut receiver, &segment).expect("acknowledged").ece);
}

#[test]
fn cwr_is_acknowledged_at_once() {
    let (mut receiver, _) = receiver_after(20, 1);
    let ack = receiver.handle(Instant::ZERO, &Segment { cwr: true, ..data(20, 1) }, false);
    assert_eq!(ack.map(|ack| ack.ack), Some(21), "the sender's window may be one packet");
    let marked_segment = Segment { cwr: true, ..data(21, 1) };
    assert!(
        receiver.handle(Instant::ZERO, &marked_segment, true).expect("at once").ece,
        "the segment with CWR is marked itself"
    );
}

/// RFC 8257 section 3.2, with an acknowledgement of the earlier packets in the old state.
#[test]
fn with_per_packet_ecn_a_change_of_marks_is_acknowledged_at_once_after_the_delayed_acknowledgement() {
    let mut receiver = new_receiver(Options { echo: Ecn::PerPacket, ..Options::default() });
    let mut handle = |seq, marked| {
        let now = Instant::ZERO + Span::from_millis(seq);
        let first = receiver.handle(now, &data(seq, 1), marked);
        let second = receiver.on_timeout(now);
        [first, second].into_iter().flatten().map(|ack| (ack.ack, ack.ece)).collect::<Vec<_>>()
    };
    (0..20).for_each(|seq| drop(handle(seq, false)));
    assert_eq!(handle(20, false), [], "every second one");
    assert_eq!(handle(21, true), [(21, false), (22, true)]);
    assert_eq!(handle(22, true), []);
    assert_eq!(handle(23, true), [(24, true)], "every second one again");
    assert_eq!(handle(24, false), [(25, false)], "no acknowledgement was pending");
    assert_eq!(handle(25, true), [(26, true)]);
    assert_eq!(handle(26, true), []);
    assert_eq!(handle(27, false), [(27, true), (28, false)]);
}

/// RFC 9768 section 3.2.2.5.1: the first mark after none and every second one at once; an unmarked segment waits.
#[test]
fn with_accurate_ecn_the_first_mark_and_every_second_one_are_acknowledged_at_once() {
    let mut receiver = new_receiver(Options { echo: Ecn::L4s, ..Options::default() });
    let mut handle = |seq, marked| {
        let ack = receiver.handle(Instant::ZERO + Span::from_millis(seq), &data(seq, 1), marked);
        ack.map(|ack| (ack.ack, ack.ace, ack.ece))
    };
    for seq in 0..20 {
        handle(seq, false);
    }
    assert_eq!(handle(20, false), None, "every second one");
    assert_eq!(handle(21, true), Some((22, 6, false)), "the count begins at 5");
    assert_eq!([handle(22, true), handle(23, true)], [None, Some((24, 0, false))], "modulo 8");
    assert_eq!([handle(24, false), handle(25, true)], [None, Some((26, 1, false))]);
}

/// The sender derives the number of marks from the packets that each acknowledgement delivers.
#[test]
fn with_per_packet_ecn_acknowledgements_count_marks_exactly() {
    for mark_probability in [0.02, 0.3, 0.5, 0.9] {
        let mut receiver = new_receiver(Options { echo: Ecn::PerPacket, ..Options::default() });
        let mut random = units::RngStream::named(1, "marks");
        let (mut sent_marks, mut counted_marks, mut acked) = (0, 0, 0);
        for seq in 0..10_000 {
            let now = Instant::ZERO + Span::from_micros(100 * seq);
            let marked = random.chance(mark_probability);
            sent_marks += u64::from(marked);
            let first = receiver.handle(now, &data(seq, 1), marked);
            for ack in [first, receiver.on_timeout(now)].into_iter().flatten() {
                counted_marks += if ack.ece { ack.ack - acked } else { 0 };
                acked = ack.ack;
            }
        }
        if let Some(ack) = receiver.on_timeout(receiver.deadline()) {
            counted_marks += if ack.ece { ack.ack - acked } else { 0 };
            acked = ack.ack;
        }
        assert_eq!((acked, counted_marks), (10_000, sent_marks), "{mark_probability} marked");
    }
}

/// Segments 1, 2, 4 and 7 wait when one packet brings 0 to 5: of what has come twice the first block is reported (Linux 6.1 and
/// 6.18).
#[test]
fn of_several_blocks_that_a_super_segment_repeats_the_first_is_reported() {
    let mut receiver = new_receiver(Options::default());
    for seq in [1, 2, 4, 7] {
        receiver.handle(Instant::ZERO, &data(seq, 1), false);
    }
    let ack = receiver.handle_super_segment(Instant::ZERO, &data(0, 1), 6, false).expect("at once");
    assert_eq!((ack.ack, ack.sack_blocks.iter().collect::<Vec<_>>()), (6, vec![(1, 3), (7, 8)]));
}
