//! Loss recovery in single situations. The round-trip time is 20 ms, the controller Reno.

use crate::tcp_connection;
use crate::tcp_connection::{Connection, Options, delayed, losing, lost, pass};
use control::CaState;
use ropewalk_transport::tcp::sender::{LossRecovery, SenderCounters};
use ropewalk_transport::tcp::{Segment, SegmentKind};
use units::{Instant, Span};

const LIMIT: Span = Span::from_secs(60);

/// Runs to the end; returns the counters.
fn run_counters(
    options: Options,
    segment_filter: impl FnMut(Instant, &Segment) -> tcp_connection::FilterOutcome + 'static,
) -> SenderCounters {
    run_to_end(Connection::with_segment_filter(options, segment_filter)).sender.counters()
}

fn run_to_end(mut connection: Connection) -> Connection {
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
    let counters = run_counters(Options::default(), |_, _| pass());
    let recovery_counters =
        (counters.retransmitted, counters.recoveries, counters.timeouts, counters.duplicates, counters.tlp_probes);
    assert_eq!((counters.sent, recovery_counters), (400, (0, 0, 0, 0, 0)));
}

#[test]
fn one_loss_causes_one_fast_recovery_and_halves_the_window() {
    let mut connection = Connection::with_segment_filter(Options::default(), losing(&[100], 1));
    assert!(!connection.run(Span::from_millis(80)));
    let prior_cwnd = connection.sender.decision().cwnd;
    let connection = run_to_end(connection);
    let counters = connection.sender.counters();
    assert_eq!(
        (counters.lost, counters.retransmitted, counters.recoveries, counters.timeouts, counters.undone),
        (1, 1, 1, 0, 0)
    );
    let threshold = connection.sender.decision().ssthresh;
    assert!(threshold >= prior_cwnd / 2 && threshold < 400 / 2, "{threshold} after {prior_cwnd}");
}

#[test]
fn two_losses_in_one_window_are_one_reduction() {
    let counters = run_counters(Options::default(), losing(&[100, 105], 1));
    assert_eq!((counters.lost, counters.retransmitted, counters.recoveries, counters.timeouts), (2, 2, 1, 0));
}

#[test]
fn a_lost_retransmission_is_found_without_a_timeout() {
    let counters = run_counters(Options::default(), losing(&[100], 2));
    assert_eq!(
        (counters.retransmitted, counters.lost_retransmissions, counters.recoveries, counters.timeouts),
        (2, 1, 1, 0)
    );
}

#[test]
fn fack_repairs_a_loss_and_its_lost_retransmission_without_probes_or_undo() {
    let fack = Options { recovery: LossRecovery::Fack, ..Options::default() };
    let counters = run_counters(fack, losing(&[100], 2));
    assert_eq!(
        (counters.retransmitted, counters.lost_retransmissions, counters.recoveries, counters.timeouts),
        (2, 1, 1, 0)
    );
    let counters = run_counters(Options { segments: 40, ..fack }, losing(&[37, 38, 39], 1));
    assert_eq!(
        (counters.tlp_probes, counters.timeouts, counters.retransmitted),
        (0, 1, 3),
        "a lost tail costs a timeout"
    );
    let counters = run_counters(Options { timestamps: false, ..fack }, stall(390));
    assert_eq!((counters.timeouts, counters.spurious_timeouts, counters.undone), (1, 0, 0), "{counters:?}");
}

#[test]
fn rate_halving_ends_at_half_of_the_threshold_before_slow_start() {
    let mut connection = Connection::with_segment_filter(
        Options { recovery: LossRecovery::Fack, ..Options::default() },
        losing(&[100], 1),
    );
    let (mut min_cwnd, mut max_cwnd) = (u32::MAX, 0);
    while !connection.run(Span::from_millis(1)) {
        let decision = connection.sender.decision();
        match connection.sender.ca_state() {
            CaState::Recovery => min_cwnd = min_cwnd.min(decision.cwnd),
            CaState::Open if decision.ssthresh < units::INFINITE_SSTHRESH => max_cwnd = max_cwnd.max(decision.cwnd),
            _ => {}
        }
    }
    let threshold = connection.sender.decision().ssthresh;
    assert!(min_cwnd < threshold * 3 / 4 && min_cwnd >= threshold / 2, "{min_cwnd} of {threshold}");
    assert!(max_cwnd >= threshold, "{max_cwnd} of {threshold}");
}

#[test]
fn without_a_handshake_data_is_sent_at_once() {
    let connection =
        run_to_end(Connection::with_segment_filter(Options { handshake: false, ..Options::default() }, |_, _| pass()));
    assert!(connection.sent.iter().all(|(_, segment)| segment.kind == SegmentKind::Data));
    assert_eq!(connection.sent.iter().filter(|(time, _)| time.as_millis() == 1000).count(), 10, "the initial window");
}

#[test]
fn a_lost_tail_is_probed_and_then_repaired_by_fast_recovery() {
    let counters = run_counters(Options { segments: 40, ..Options::default() }, losing(&[37, 38, 39], 1));
    assert_eq!((counters.tlp_probes, counters.recoveries, counters.timeouts, counters.retransmitted), (1, 1, 0, 3));
}

#[test]
fn a_loss_that_the_probe_repairs_causes_one_reduction() {
    let options = Options { send_buffer: 1, tso: false, segments: 60, ..Options::default() };
    let connection = run_to_end(Connection::with_segment_filter(options, losing(&[30], 1)));
    let counters = connection.sender.counters();
    assert_eq!(
        (counters.tlp_probes, counters.tlp_recoveries, counters.timeouts, counters.recoveries, counters.retransmitted),
        (1, 1, 0, 0, 1)
    );
    assert!(connection.sender.decision().ssthresh < 1000, "reduced");
}

#[test]
fn a_probe_of_a_delivered_segment_causes_no_reduction() {
    let connection = Connection::new(
        Options { segments: 20, ..Options::default() },
        Box::new(|_, _| pass()),
        Box::new(|_, ack| {
            // The acknowledgements of the second window are lost, but for the report of the duplicate.
            if ack.ack > 10 && ack.sack_blocks.is_empty() { lost() } else { pass() }
        }),
    );
    let counters = run_to_end(connection).sender.counters();
    assert_eq!(
        (counters.tlp_probes, counters.duplicates, counters.tlp_recoveries, counters.timeouts, counters.recoveries),
        (1, 1, 0, 0, 0)
    );
}

/// Packets sent between 60 and 200 ms after the start are held, and arrive in order from `until_ms` milliseconds after
/// the start. Without timestamps the timeout comes at 328 ms, its retransmission arrives at 338 ms, and what is sent when
/// that is acknowledged at 358 ms.
fn stall(until_ms: u64) -> impl FnMut(Instant, &Segment) -> tcp_connection::FilterOutcome {
    let (start, end) = (Instant::ZERO + Span::from_millis(1060), Instant::ZERO + Span::from_millis(1000 + until_ms));
    move |now, _| {
        let is_held = now >= start && now.since(start) < Span::from_millis(140);
        if is_held { delayed((end + now.since(start) / 20).since(now)) } else { pass() }
    }
}

#[test]
fn a_spurious_timeout_is_undone_when_originals_are_acknowledged() {
    // The head's retransmission arrives before all originals: only F-RTO detects it, as DSACKs
    // are lost.
    let connection = Connection::new(
        Options { timestamps: false, ..Options::default() },
        Box::new(stall(345)),
        Box::new(|_, ack| {
            let is_dsack = ack.sack_blocks.iter().next().is_some_and(|block| block.0 < ack.ack);
            if is_dsack { lost() } else { pass() }
        }),
    );
    let counters = run_to_end(connection).sender.counters();
    assert_eq!((counters.timeouts, counters.spurious_timeouts), (1, 1), "{counters:?}");
    assert!(counters.undone >= 1, "{counters:?}");
}

#[test]
fn a_spurious_timeout_is_undone_by_timestamps_when_the_original_head_comes_first() {
    let counters = run_counters(Options::default(), stall(330));
    assert_eq!((counters.timeouts, counters.spurious_timeouts, counters.undone), (1, 0, 1), "{counters:?}");
}

/// Segment 100 is late by this many milliseconds, with the given fate of its retransmissions.
fn extra_delay(
    extra_ms: u64,
    retransmission: fn() -> tcp_connection::FilterOutcome,
) -> impl FnMut(Instant, &Segment) -> tcp_connection::FilterOutcome {
    move |_, segment| match segment {
        Segment { seq: 100, retransmission: true, .. } => retransmission(),
        Segment { seq: 100, kind: SegmentKind::Data, .. } => delayed(Span::from_millis(10 + extra_ms)),
        _ => pass(),
    }
}

#[test]
fn a_spurious_recovery_is_undone_by_dsack() {
    let connection = run_to_end(Connection::with_segment_filter(
        Options { timestamps: false, ..Options::default() },
        extra_delay(22, pass),
    ));
    let counters = connection.sender.counters();
    assert_eq!((counters.recoveries, counters.duplicates, counters.undone), (1, 1, 1));
    assert_eq!(connection.sender.decision().ssthresh, units::INFINITE_SSTHRESH, "as if nothing had happened");
}

#[test]
fn a_spurious_recovery_is_undone_by_timestamps() {
    let counters = run_counters(Options::default(), extra_delay(22, lost));
    assert_eq!((counters.recoveries, counters.duplicates, counters.undone, counters.timeouts), (1, 0, 1, 0));
}

/// 3 ms late, and acknowledgements that are compressed for up to 1 ms more: within 5 ms, as long as
/// the window is so small that its super-segments do not queue.
#[test]
fn reordering_within_a_quarter_of_the_rtt_causes_few_recoveries() {
    let every_tenth = |_: Instant, segment: &Segment| {
        if segment.seq % 10 == 9 { delayed(Span::from_millis(13)) } else { pass() }
    };
    let connection =
        run_to_end(Connection::with_segment_filter(Options { segments: 1500, ..Options::default() }, every_tenth));
    assert!(connection.sender.reordering() > 3, "{}", connection.sender.reordering());
    let counters = connection.sender.counters();
    assert!(counters.recoveries <= 2 && counters.timeouts == 0, "{counters:?}");
}

#[test]
fn sack_reneging_is_repaired_by_a_timeout() {
    let connection = Connection::new(
        Options { segments: 60, ..Options::default() },
        Box::new(losing(&[20, 22], 1)),
        Box::new(|_, ack| {
            // Segment 22 has not arrived, although the block covers it.
            if ack.ack == 20 {
                ack.sack_blocks = Default::default();
                ack.sack_blocks.push((21, 24));
            }
            pass()
        }),
    );
    let counters = run_to_end(connection).sender.counters();
    assert_eq!((counters.renegings, counters.timeouts), (1, 1), "{counters:?}");
}

#[test]
fn marks_of_one_window_cause_one_reduction_and_no_retransmission() {
    let mark = |_: Instant, segment: &Segment| tcp_connection::FilterOutcome {
        marked: (60..70).contains(&segment.seq),
        ..pass()
    };
    let connection = run_to_end(Connection::with_segment_filter(Options { ecn: true, ..Options::default() }, mark));
    let counters = connection.sender.counters();
    assert_eq!((counters.recoveries, counters.retransmitted, counters.timeouts), (0, 0, 0));
    assert_eq!(connection.sent.iter().filter(|(_, segment)| segment.cwr).count(), 1, "answered once");
    let threshold = connection.sender.decision().ssthresh;
    assert!((20..60).contains(&threshold), "{threshold}");
}

/// Linux `tcp_ecn_withdraw_cwr`.
#[test]
fn an_undone_reduction_sends_no_cwr() {
    let connection =
        run_to_end(Connection::with_segment_filter(Options { ecn: true, ..Options::default() }, stall(330)));
    assert_eq!((connection.sender.counters().timeouts, connection.sender.counters().undone), (1, 1));
    assert!(connection.sent.iter().all(|(_, segment)| !segment.cwr));
}

#[test]
fn with_per_packet_ecn_marks_cause_one_reduction_a_window_and_are_all_counted() {
    let mark = |_: Instant, segment: &Segment| tcp_connection::FilterOutcome {
        marked: (60..70).contains(&segment.seq),
        ..pass()
    };
    let options = Options { ecn: true, echo: control::Ecn::PerPacket, ..Options::default() };
    let connection = run_to_end(Connection::with_segment_filter(options, mark));
    let counters = connection.sender.counters();
    assert_eq!((counters.recoveries, counters.retransmitted, counters.timeouts, counters.marked), (0, 0, 0, 10));
    assert_eq!(connection.sent.iter().filter(|(_, segment)| segment.cwr).count(), 1, "answered once");
}

/// RFC 9768: counted, not echoed, and so nothing is answered by CWR.
#[test]
fn with_accurate_ecn_marks_cause_one_reduction_a_window_and_are_all_counted() {
    let mark = |_: Instant, segment: &Segment| tcp_connection::FilterOutcome {
        marked: (60..100).contains(&segment.seq) && segment.seq % 5 < 3,
        ..pass()
    };
    let options = Options { ecn: true, echo: control::Ecn::L4s, ..Options::default() };
    let connection = run_to_end(Connection::with_segment_filter(options, mark));
    let counters = connection.sender.counters();
    assert_eq!((counters.recoveries, counters.retransmitted, counters.timeouts, counters.marked), (0, 0, 0, 24));
    assert!(connection.sent.iter().all(|(_, segment)| !segment.cwr));
    let threshold = connection.sender.decision().ssthresh;
    assert!((20..60).contains(&threshold), "{threshold}");
}

/// Every other acknowledgement is lost: the next one tells of both, as less than eight marks are between them.
#[test]
fn with_accurate_ecn_lost_acknowledgements_hide_no_marks() {
    let mut acks = 0;
    let connection = Connection::new(
        Options { ecn: true, echo: control::Ecn::L4s, ..Options::default() },
        Box::new(|_, segment| tcp_connection::FilterOutcome { marked: (60..90).contains(&segment.seq), ..pass() }),
        Box::new(move |_, _| {
            acks += 1;
            if acks % 2 == 0 { lost() } else { pass() }
        }),
    );
    assert_eq!(run_to_end(connection).sender.counters().marked, 30);
}

#[test]
fn the_connection_opens_with_any_packet_of_the_handshake_lost() {
    for lost_packet in 0..3 {
        let (mut handshake_packets, mut syn_acks) = (0, 0);
        let connection = Connection::new(
            Options { segments: 30, ..Options::default() },
            Box::new(move |_, segment| {
                handshake_packets += u64::from(segment.kind != SegmentKind::Data);
                let is_lost = (lost_packet == 0 && segment.kind == SegmentKind::Syn && handshake_packets == 1)
                    || (lost_packet == 2 && segment.kind == SegmentKind::HandshakeAck);
                if is_lost { lost() } else { pass() }
            }),
            Box::new(move |_, ack| {
                syn_acks += u64::from(ack.syn);
                if lost_packet == 1 && ack.syn && syn_acks == 1 { lost() } else { pass() }
            }),
        );
        let connection = run_to_end(connection);
        let open_time = connection.sent.iter().find(|(_, segment)| segment.kind == SegmentKind::Data).expect("data").0;
        let delay_ms = open_time.since(Instant::ZERO + Span::from_secs(1)).as_millis();
        assert_eq!(delay_ms, if lost_packet == 2 { 20 } else { 1020 }, "a second for a lost SYN or its answer");
    }
}

#[test]
fn without_sack_three_duplicates_start_recovery_and_each_partial_acknowledgement_repairs_one_loss() {
    for timestamps in [true, false] {
        let options = Options { sack: false, timestamps, ..Options::default() };
        let counters = run_counters(options, losing(&[100], 1));
        assert_eq!((counters.recoveries, counters.retransmitted, counters.timeouts, counters.tlp_probes), (1, 1, 0, 0));
        assert_eq!(counters.undone, 0, "a loss that was one");
        let counters = run_counters(options, losing(&[100, 104, 108], 1));
        assert_eq!((counters.recoveries, counters.retransmitted, counters.timeouts), (1, 3, 0));
        assert_eq!(counters.undone, 0);
    }
}
