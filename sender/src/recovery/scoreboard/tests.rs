use super::*;

fn ms(millis: u64) -> Instant {
    Instant(millis * 1_000_000)
}

fn ten_packets() -> Scoreboard {
    let mut scoreboard = Scoreboard::default();
    (0..10).for_each(|seq| {
        scoreboard.push(ms(seq), SendSnapshot::default());
    });
    scoreboard
}

#[test]
fn the_pipe_follows_rfc_6675() {
    let mut scoreboard = ten_packets();
    scoreboard.sack(5);
    scoreboard.sack(6);
    assert!(scoreboard.mark_lost(0));
    assert!(!scoreboard.mark_lost(0), "it is marked already");
    assert_eq!(scoreboard.counts().in_flight(), 7);
    scoreboard.retransmit(0, ms(20), SendSnapshot::default());
    assert_eq!(scoreboard.counts().in_flight(), 8);
    assert!(scoreboard.mark_lost(0), "the retransmission was lost");
    assert_eq!(scoreboard.counts().in_flight(), 7);
    assert_eq!(scoreboard.next_lost(), Some(0));
    scoreboard.sack(0);
    assert_eq!(scoreboard.counts(), PacketCounts { packets_out: 10, sacked_out: 3, lost_out: 0, retrans_out: 0 });
}

#[test]
fn packets_expire_in_send_order_and_the_latest_pending_one_is_returned() {
    let mut scoreboard = ten_packets();
    scoreboard.sack(8);
    let (lost, pending) = scoreboard.expire((ms(8), 8), |sent| sent <= ms(3));
    assert_eq!((lost, pending), (4, Some(ms(7))));
    scoreboard.retransmit(0, ms(20), SendSnapshot::default());
    let (lost, pending) = scoreboard.expire((ms(30), 9), |sent| sent <= ms(20));
    assert_eq!((lost, pending), (6, None), "4..8 and 9 by age, 0 again as a retransmission");
}

#[test]
fn a_packet_whose_loss_mark_was_removed_is_not_marked_again_until_it_is_retransmitted() {
    let mut scoreboard = ten_packets();
    scoreboard.expire((ms(8), 8), |sent| sent <= ms(3));
    scoreboard.unmark_lost();
    assert_eq!(scoreboard.counts().in_flight(), 10);
    assert_eq!(scoreboard.expire((ms(8), 8), |sent| sent <= ms(5)).0, 2, "4 and 5 for the first time");
    scoreboard.retransmit(0, ms(20), SendSnapshot::default());
    assert_eq!(scoreboard.expire((ms(30), 9), |sent| sent == ms(20)).0, 1);
}

#[test]
fn a_retransmission_that_a_spurious_timeout_took_for_lost_expires_later() {
    let mut scoreboard = ten_packets();
    scoreboard.mark_lost(0);
    scoreboard.retransmit(0, ms(20), SendSnapshot::default());
    scoreboard.mark_lost(0);
    assert_eq!(scoreboard.expire((ms(30), 9), |sent| sent == ms(20)), (0, Some(ms(8))));
    scoreboard.unmark_lost();
    assert_eq!(scoreboard.expire((ms(30), 9), |_| false), (0, Some(ms(20))));
    assert_eq!(scoreboard.expire((ms(30), 9), |sent| sent == ms(20)).0, 1);
}

#[test]
fn a_tail_loss_probe_may_be_marked_lost_but_is_not_counted_in_the_pipe() {
    let mut scoreboard = ten_packets();
    scoreboard.retransmit_as_tlp(9, ms(20), SendSnapshot::default());
    assert_eq!(scoreboard.counts().in_flight(), 10);
    assert!(scoreboard.packet(9).was_retransmitted() && !scoreboard.packet(9).is_retransmitted());
    assert_eq!(scoreboard.expire((ms(30), 9), |sent| sent == ms(20)).0, 1);
}

#[test]
fn a_retransmission_that_is_not_marked_lost_stays_in_the_pipe() {
    let mut scoreboard = ten_packets();
    scoreboard.mark_lost(0);
    scoreboard.retransmit(0, ms(20), SendSnapshot::default());
    scoreboard.unmark_lost();
    assert!(scoreboard.mark_lost(0), "the packet first ...");
    assert_eq!(scoreboard.counts(), PacketCounts { packets_out: 10, sacked_out: 0, lost_out: 1, retrans_out: 1 });
    assert!(scoreboard.mark_lost(0), "... then its retransmission");
    assert_eq!(scoreboard.counts(), PacketCounts { packets_out: 10, sacked_out: 0, lost_out: 1, retrans_out: 0 });
}

#[test]
fn without_sack_arrivals_are_counted_up_to_the_holes() {
    let mut scoreboard = ten_packets();
    assert_eq!((0..12).filter(|_| scoreboard.add_reno_sack()).count(), 9, "one hole at least");
    scoreboard.pop();
    assert!(!scoreboard.remove_reno_sacks(0), "more than fit beside the hole");
    assert_eq!(scoreboard.counts().sacked_out, 8);
}

#[test]
fn the_ring_grows_and_keeps_all_packets() {
    let mut scoreboard = Scoreboard::default();
    (0..1000).for_each(|seq| {
        scoreboard.push(ms(seq), SendSnapshot::default());
    });
    assert!((0..1000).all(|seq| scoreboard.pop().sent == ms(seq)));
    assert_eq!(scoreboard.counts(), PacketCounts::default());
}

/// Linux `tcp_match_skb_to_sack` cuts a buffer, `tcp_shift_skb_data` puts SACKed packets into that of the one before, and what
/// follows a hole that is filled.
#[test]
fn sacked_packets_share_a_buffer() {
    let mut scoreboard = ten_packets();
    scoreboard.end_super_segment();
    let mut buffers = |seq| {
        scoreboard.sack(seq);
        scoreboard.super_segments()
    };
    assert_eq!([3, 4, 6, 5, 2].map(&mut buffers), [3, 3, 5, 3, 4]);
    let left: Vec<u32> = (0..10).map(|_| (scoreboard.pop(), scoreboard.super_segments()).1).collect();
    assert_eq!(left, [4, 3, 2, 2, 2, 2, 1, 1, 1, 0]);
}
