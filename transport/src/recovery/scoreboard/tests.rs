use super::*;

fn ms(n: u64) -> Instant {
    Instant(n * 1_000_000)
}

fn ten() -> Scoreboard {
    let mut board = Scoreboard::default();
    (0..10).for_each(|n| {
        board.push(ms(n), Snapshot::default());
    });
    board
}

#[test]
fn the_pipe_follows_rfc_6675() {
    let mut board = ten();
    board.sack(5);
    board.sack(6);
    assert!(board.mark_lost(0));
    assert!(!board.mark_lost(0), "no news");
    assert_eq!(board.counts().in_flight(), 7);
    board.retransmit(0, ms(20), Snapshot::default());
    assert_eq!(board.counts().in_flight(), 8);
    assert!(board.mark_lost(0), "the retransmission was lost");
    assert_eq!(board.counts().in_flight(), 7);
    assert_eq!(board.next_lost(), Some(0));
    board.sack(0);
    assert_eq!(board.counts(), Counts { out: 10, sacked: 3, lost: 0, retransmitted: 0 });
}

#[test]
fn expiry_walks_in_send_order_and_names_the_latest_in_doubt() {
    let mut board = ten();
    board.sack(8);
    let (lost, doubt) = board.expire((ms(8), 8), |sent| sent <= ms(3));
    assert_eq!((lost, doubt), (4, Some(ms(7))));
    board.retransmit(0, ms(20), Snapshot::default());
    let (lost, doubt) = board.expire((ms(30), 9), |sent| sent <= ms(20));
    assert_eq!((lost, doubt), (6, None), "4..8 and 9 by age, 0 again as a retransmission");
}

#[test]
fn what_was_judged_and_pardoned_is_not_judged_again_until_it_is_sent_again() {
    let mut board = ten();
    board.expire((ms(8), 8), |sent| sent <= ms(3));
    board.unmark_lost();
    assert_eq!(board.counts().in_flight(), 10);
    assert_eq!(board.expire((ms(8), 8), |sent| sent <= ms(5)).0, 2, "4 and 5 for the first time");
    board.retransmit(0, ms(20), Snapshot::default());
    assert_eq!(board.expire((ms(30), 9), |sent| sent == ms(20)).0, 1);
}

#[test]
fn a_probe_is_judged_but_not_counted_in_the_pipe() {
    let mut board = ten();
    board.probe(9, ms(20), Snapshot::default());
    assert_eq!(board.counts().in_flight(), 10);
    assert!(board.record(9).was_retransmitted() && !board.record(9).is_retransmitted());
    assert_eq!(board.expire((ms(30), 9), |sent| sent == ms(20)).0, 1);
}

#[test]
fn a_retransmission_taken_for_lost_by_itself_stays_in_the_pipe() {
    let mut board = ten();
    board.mark_lost(0);
    board.retransmit(0, ms(20), Snapshot::default());
    board.unmark_lost();
    assert!(board.mark_lost(0), "the packet first ...");
    assert_eq!(board.counts(), Counts { out: 10, sacked: 0, lost: 1, retransmitted: 1 });
    assert!(board.mark_lost(0), "... then its retransmission");
    assert_eq!(board.counts(), Counts { out: 10, sacked: 0, lost: 1, retransmitted: 0 });
}

#[test]
fn without_sack_arrivals_are_counted_up_to_the_holes() {
    let mut board = ten();
    assert_eq!((0..12).filter(|_| board.count_repeated()).count(), 9, "one hole at least");
    board.pop();
    board.release_repeated(0);
    assert_eq!(board.counts().sacked, 8);
}

#[test]
fn the_ring_grows_without_losing_anyone() {
    let mut board = Scoreboard::default();
    (0..1000).for_each(|n| {
        board.push(ms(n), Snapshot::default());
    });
    assert!((0..1000).all(|n| board.pop().sent == ms(n)));
    assert_eq!(board.counts(), Counts::default());
}
