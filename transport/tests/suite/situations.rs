//! Loss recovery in single situations. The round-trip time is 20 ms, the controller Reno.

use crate::tcp_connection;
use crate::tcp_connection::{Connection, Options, after, drop, losing, pass};
use control::CaState;
use ropewalk_transport::tcp::sender::{LossRecovery, SenderCounters};
use ropewalk_transport::tcp::{Segment, SegmentKind};
use units::{Instant, Span};

const LIMIT: Span = Span::from_secs(60);

/// Runs to the end; returns the counters.
fn counters(options: Options, data: impl FnMut(Instant, &Segment) -> tcp_connection::Fate + 'static) -> SenderCounters {
    finished(Connection::with(options, data)).sender.counters()
}

fn finished(mut connection: Connection) -> Connection {
    assert!(connection.run(LIMIT), "the transfer must end");
    let (acknowledged, delivered) = (connection.sender.acknowledged(), connection.receiver.delivered());
    assert_eq!(acknowledged, delivered);
    assert_eq!(
        delivered,
        connection.sent.iter().map(|(_, segment)| segment.seq + 1).max().expect("something was sent")
    );
    connection
}

#[test]
fn without_loss_nothing_is_sent_twice() {
    let c = counters(Options::default(), |_, _| pass());
    let trouble = (c.retransmitted, c.recoveries, c.timeouts, c.duplicates, c.tlp_probes);
    assert_eq!((c.sent, trouble), (400, (0, 0, 0, 0, 0)));
}

#[test]
fn one_loss_causes_one_fast_recovery_and_halves_the_window() {
    let mut connection = Connection::with(Options::default(), losing(&[100], 1));
    assert!(!connection.run(Span::from_millis(80)));
    let before = connection.sender.decision().cwnd;
    let connection = finished(connection);
    let c = connection.sender.counters();
    assert_eq!((c.lost, c.retransmitted, c.recoveries, c.timeouts, c.undone), (1, 1, 1, 0, 0));
    let threshold = connection.sender.decision().ssthresh;
    assert!(threshold >= before / 2 && threshold < 400 / 2, "{threshold} after {before}");
}

#[test]
fn two_losses_in_one_window_are_one_reduction() {
    let c = counters(Options::default(), losing(&[100, 105], 1));
    assert_eq!((c.lost, c.retransmitted, c.recoveries, c.timeouts), (2, 2, 1, 0));
}

#[test]
fn a_lost_retransmission_is_found_without_a_timeout() {
    let c = counters(Options::default(), losing(&[100], 2));
    assert_eq!((c.retransmitted, c.lost_retransmissions, c.recoveries, c.timeouts), (2, 1, 1, 0));
}

#[test]
fn fack_repairs_a_loss_and_its_lost_retransmission_without_probes_or_undo() {
    let fack = Options { recovery: LossRecovery::Fack, ..Options::default() };
    let c = counters(fack, losing(&[100], 2));
    assert_eq!((c.retransmitted, c.lost_retransmissions, c.recoveries, c.timeouts), (2, 1, 1, 0));
    let c = counters(Options { segments: 40, ..fack }, losing(&[37, 38, 39], 1));
    assert_eq!((c.tlp_probes, c.timeouts, c.retransmitted), (0, 1, 3), "a lost tail costs a timeout");
    let c = counters(Options { timestamps: false, ..fack }, is_stalled(390));
    assert_eq!((c.timeouts, c.spurious_timeouts, c.undone), (1, 0, 0), "{c:?}");
}

#[test]
fn rate_halving_ends_at_half_of_the_threshold_before_slow_start() {
    let mut connection =
        Connection::with(Options { recovery: LossRecovery::Fack, ..Options::default() }, losing(&[100], 1));
    let (mut least, mut most) = (u32::MAX, 0);
    while !connection.run(Span::from_millis(1)) {
        let decision = connection.sender.decision();
        match connection.sender.ca_state() {
            CaState::Recovery => least = least.min(decision.cwnd),
            CaState::Open if decision.ssthresh < units::INFINITE_SSTHRESH => most = most.max(decision.cwnd),
            _ => {}
        }
    }
    let threshold = connection.sender.decision().ssthresh;
    assert!(least < threshold * 3 / 4 && least >= threshold / 2, "{least} of {threshold}");
    assert!(most >= threshold, "{most} of {threshold}");
}

#[test]
fn without_a_handshake_data_is_sent_at_once() {
    let connection = finished(Connection::with(Options { handshake: false, ..Options::default() }, |_, _| pass()));
    assert!(connection.sent.iter().all(|(_, segment)| segment.kind == SegmentKind::Data));
    assert_eq!(connection.sent.iter().filter(|(at, _)| at.as_millis() == 1000).count(), 10, "the initial window");
}

#[test]
fn a_lost_tail_is_probed_and_then_repaired_by_fast_recovery() {
    let c = counters(Options { segments: 40, ..Options::default() }, losing(&[37, 38, 39], 1));
    assert_eq!((c.tlp_probes, c.recoveries, c.timeouts, c.retransmitted), (1, 1, 0, 3));
}

#[test]
fn a_loss_that_the_probe_repairs_causes_one_reduction() {
    let options = Options { send_buffer: 1, segments: 60, ..Options::default() };
    let connection = finished(Connection::with(options, losing(&[30], 1)));
    let c = connection.sender.counters();
    assert_eq!((c.tlp_probes, c.tlp_recoveries, c.timeouts, c.recoveries, c.retransmitted), (1, 1, 0, 0, 1));
    assert!(connection.sender.decision().ssthresh < 1000, "reduced");
}

#[test]
fn a_probe_of_a_delivered_segment_causes_no_reduction() {
    let connection = Connection::new(
        Options { segments: 20, ..Options::default() },
        Box::new(|_, _| pass()),
        Box::new(|_, ack| {
            // The acknowledgements of the second window are lost, but for the report of the duplicate.
            if ack.ack > 10 && ack.sack_blocks.is_empty() { drop() } else { pass() }
        }),
    );
    let c = finished(connection).sender.counters();
    assert_eq!((c.tlp_probes, c.duplicates, c.tlp_recoveries, c.timeouts, c.recoveries), (1, 1, 0, 0, 0));
}

/// Packets sent between 60 and 200 ms after the start are held, and arrive in order from this many milliseconds after the
/// start. The timeout comes at 373 ms, its retransmission arrives at 383 ms.
fn is_stalled(until: u64) -> impl FnMut(Instant, &Segment) -> tcp_connection::Fate {
    let (from, gate) = (Instant::ZERO + Span::from_millis(1060), Instant::ZERO + Span::from_millis(1000 + until));
    move |now, _| {
        let stands = now >= from && now.since(from) < Span::from_millis(140);
        if stands { after((gate + now.since(from) / 20).since(now)) } else { pass() }
    }
}

#[test]
fn a_spurious_timeout_is_undone_when_originals_are_acknowledged() {
    // The head's retransmission arrives before all originals: only F-RTO detects it, as DSACKs
    // are lost.
    let connection = Connection::new(
        Options { timestamps: false, ..Options::default() },
        Box::new(is_stalled(390)),
        Box::new(|_, ack| {
            let duplicate = ack.sack_blocks.iter().next().is_some_and(|block| block.0 < ack.ack);
            if duplicate { drop() } else { pass() }
        }),
    );
    let c = finished(connection).sender.counters();
    assert_eq!((c.timeouts, c.spurious_timeouts), (1, 1), "{c:?}");
    assert!(c.undone >= 1, "{c:?}");
}

#[test]
fn a_spurious_timeout_is_undone_by_timestamps_when_the_original_head_comes_first() {
    let c = counters(Options::default(), is_stalled(378));
    assert_eq!((c.timeouts, c.spurious_timeouts, c.undone), (1, 0, 1), "{c:?}");
}

/// Segment 100 is late by this many milliseconds, with the given fate of its retransmissions.
fn extra_delay(
    extra: u64,
    retransmission: fn() -> tcp_connection::Fate,
) -> impl FnMut(Instant, &Segment) -> tcp_connection::Fate {
    move |_, segment| match segment {
        Segment { seq: 100, retransmission: true, .. } => retransmission(),
        Segment { seq: 100, kind: SegmentKind::Data, .. } => after(Span::from_millis(10 + extra)),
        _ => pass(),
    }
}

#[test]
fn a_spurious_recovery_is_undone_by_dsack() {
    let connection =
        finished(Connection::with(Options { timestamps: false, ..Options::default() }, extra_delay(22, pass)));
    let c = connection.sender.counters();
    assert_eq!((c.recoveries, c.duplicates, c.undone), (1, 1, 1));
    assert_eq!(connection.sender.decision().ssthresh, units::INFINITE_SSTHRESH, "as if nothing had happened");
}

#[test]
fn a_spurious_recovery_is_undone_by_timestamps() {
    let c = counters(Options::default(), extra_delay(22, drop));
    assert_eq!((c.recoveries, c.duplicates, c.undone, c.timeouts), (1, 0, 1, 0));
}

#[test]
fn reordering_within_a_quarter_of_the_rtt_is_learnt_once() {
    let every_tenth = |_: Instant, segment: &Segment| {
        if segment.seq % 10 == 9 { after(Span::from_millis(14)) } else { pass() }
    };
    let connection = finished(Connection::with(Options { segments: 3000, ..Options::default() }, every_tenth));
    assert!(connection.sender.reordering() > 3, "{}", connection.sender.reordering());
    let c = connection.sender.counters();
    assert!(c.recoveries <= 2 && c.timeouts == 0, "{c:?}");
}

#[test]
fn sack_reneging_is_repaired_by_a_timeout() {
    let connection = Connection::new(
        Options { segments: 60, ..Options::default() },
        Box::new(losing(&[20, 22], 1)),
        Box::new(|_, ack| {
            // Segment 22 never arrived, whatever the block says.
            if ack.ack == 20 {
                ack.sack_blocks = Default::default();
                ack.sack_blocks.push((21, 24));
            }
            pass()
        }),
    );
    let c = finished(connection).sender.counters();
    assert_eq!((c.renegings, c.timeouts), (1, 1), "{c:?}");
}

#[test]
fn marks_of_one_window_cause_one_reduction_and_no_retransmission() {
    let mark =
        |_: Instant, segment: &Segment| tcp_connection::Fate { marked: (60..70).contains(&segment.seq), ..pass() };
    let connection = finished(Connection::with(Options { ecn: true, ..Options::default() }, mark));
    let c = connection.sender.counters();
    assert_eq!((c.recoveries, c.retransmitted, c.timeouts), (0, 0, 0));
    assert_eq!(connection.sent.iter().filter(|(_, segment)| segment.cwr).count(), 1, "answered once");
    let threshold = connection.sender.decision().ssthresh;
    assert!((20..60).contains(&threshold), "{threshold}");
}

/// Linux `tcp_ecn_withdraw_cwr`.
#[test]
fn an_undone_reduction_sends_no_cwr() {
    let connection = finished(Connection::with(Options { ecn: true, ..Options::default() }, is_stalled(378)));
    assert_eq!((connection.sender.counters().timeouts, connection.sender.counters().undone), (1, 1));
    assert!(connection.sent.iter().all(|(_, segment)| !segment.cwr));
}

#[test]
fn with_per_packet_ecn_marks_cause_one_reduction_a_window_and_are_all_counted() {
    let mark =
        |_: Instant, segment: &Segment| tcp_connection::Fate { marked: (60..70).contains(&segment.seq), ..pass() };
    let options = Options { ecn: true, echo: control::Ecn::PerPacket, ..Options::default() };
    let connection = finished(Connection::with(options, mark));
    let c = connection.sender.counters();
    assert_eq!((c.recoveries, c.retransmitted, c.timeouts, c.marked), (0, 0, 0, 10));
    assert_eq!(connection.sent.iter().filter(|(_, segment)| segment.cwr).count(), 1, "answered once");
}

#[test]
fn the_connection_opens_with_any_packet_of_the_handshake_lost() {
    for lost in 0..3 {
        let (mut sent, mut answered) = (0, 0);
        let connection = Connection::new(
            Options { segments: 30, ..Options::default() },
            Box::new(move |_, segment| {
                sent += u64::from(segment.kind != SegmentKind::Data);
                let hit = (lost == 0 && segment.kind == SegmentKind::Syn && sent == 1)
                    || (lost == 2 && segment.kind == SegmentKind::HandshakeAck);
                if hit { drop() } else { pass() }
            }),
            Box::new(move |_, ack| {
                answered += u64::from(ack.syn);
                if lost == 1 && ack.syn && answered == 1 { drop() } else { pass() }
            }),
        );
        let connection = finished(connection);
        let opened = connection.sent.iter().find(|(_, segment)| segment.kind == SegmentKind::Data).expect("data").0;
        let waited = opened.since(Instant::ZERO + Span::from_secs(1)).as_millis();
        assert_eq!(waited, if lost == 2 { 20 } else { 1020 }, "a second for a lost SYN or its answer");
    }
}

#[test]
fn without_sack_three_duplicates_start_recovery_and_each_partial_acknowledgement_repairs_one_loss() {
    let options = Options { sack: false, ..Options::default() };
    let c = counters(options, losing(&[100], 1));
    assert_eq!((c.recoveries, c.retransmitted, c.timeouts, c.tlp_probes), (1, 1, 0, 0));
    let c = counters(options, losing(&[100, 104, 108], 1));
    assert_eq!((c.recoveries, c.retransmitted, c.timeouts), (1, 3, 0));
}
