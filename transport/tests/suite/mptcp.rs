//! MPTCP over paths with fixed delays and losses.

use crate::mptcp_connection::{Connection, Copies, Options, new_sender, pass, path};
use crate::tcp_connection::MSS;
use ropewalk_transport::mptcp::{
    Ack, Input, MptcpStack, Output, Segment, SendBufferRule, Sender, SubflowConfig, SubflowState,
};
use ropewalk_transport::tcp::{self, SegmentKind};
use testnet::LinkConfig;
use units::{Instant, Span};

fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

/// Runs to the end.
fn transfer(
    options: &Options,
    paths: &[[LinkConfig; 2]],
    segment_filter: impl FnMut(Instant, &Segment) -> Copies + 'static,
) -> Connection {
    let mut connection = Connection::with_segment_filter(options, paths, segment_filter);
    assert!(connection.run(options.segments, secs(600)), "it does not end");
    connection
}

/// Loses every packet of a subflow from an instant on, as a black hole does.
fn black_hole(subflow: u16, from_ms: u64) -> impl FnMut(Instant, &Segment) -> Copies {
    move |now, segment| {
        let is_lost = segment.subflow == subflow && now >= Instant::ZERO + Span::from_millis(from_ms);
        if is_lost { Vec::new() } else { pass() }
    }
}

#[test]
fn over_one_path_data_is_not_reordered_and_is_acknowledged_within_a_round_trip() {
    let options = Options { segments: 10, ..Options::with_subflows(1) };
    let connection = transfer(&options, &[path(10, 100)], |_, _| pass());
    assert!(connection.reassembly_delays.iter().all(|wait| *wait == Span::ZERO));
    // The handshake's last packet and ten segments of 100 us each leave at once; each of the first sixteen segments is
    // acknowledged without delay.
    let delays: Vec<u64> = connection.delays.iter().map(|(delay, _)| delay.as_micros()).collect();
    assert_eq!(delays, (2..=11).map(|count| 20_000 + count * 100).collect::<Vec<_>>());
}

#[test]
fn a_window_that_is_shut_from_the_start_is_probed_and_nothing_is_reinjected() {
    let mut sender = new_sender(&Options::with_subflows(1));
    let mut now = Instant::ZERO + secs(1);
    sender.handle(now, Input::Connect);
    let mut probes = 0;
    let shut = tcp::Ack { syn: true, receive_window: 0, ..tcp::Ack::default() };
    for _ in 0..40 {
        let deadline = loop {
            match sender.poll(now) {
                Output::Transmit(segment) if segment.tcp.kind == SegmentKind::Syn => {
                    sender.handle(now, Input::Ack(&Ack { subflow: 0, tcp: shut, data_ack: 0 }));
                }
                Output::Transmit(segment) => probes += u32::from(segment.tcp.kind == SegmentKind::Data),
                Output::WaitUntil(deadline) => break deadline,
            }
        };
        now = deadline;
        sender.handle(now, Input::Timeout);
    }
    assert!(probes > 5 && sender.subflows().next().is_some_and(|(subflow, _)| subflow.counters().timeouts > 0));
    assert_eq!((sender.counters().reinjected, sender.acknowledged()), (0, 0));
}

#[test]
fn a_second_subflow_joins_when_the_connection_is_open() {
    let connection = transfer(&Options::with_subflows(2), &[path(10, 100), path(20, 100)], |_, _| pass());
    let syns: Vec<(u16, u64)> = connection
        .sent
        .iter()
        .filter(|(_, segment)| segment.tcp.kind == SegmentKind::Syn)
        .map(|(time, segment)| (segment.subflow, time.as_millis()))
        .collect();
    assert_eq!(syns, [(0, 1000), (1, 1020)]);
    let first = |subflow| connection.sent_on(subflow).next().map(|(time, _)| time.as_millis());
    assert_eq!((first(0), first(1)), (Some(1020), Some(1060)), "after a round trip of its own");
}

#[test]
fn segments_of_the_fast_path_wait_for_those_of_the_slow_one() {
    let options = Options { segments: 4000, ..Options::with_subflows(2) };
    let connection = transfer(&options, &[path(5, 10), path(50, 10)], |_, _| pass());
    let slow: Vec<u64> = connection.sent_on(1).map(|(_, it)| it.data_seq).collect();
    assert!(!slow.is_empty());
    let max_delay = connection.reassembly_delays.iter().max().expect("something was delivered");
    // A segment that leaves on the fast path right after the first one on the slow path waits for the difference of
    // delays.
    assert!((44..=46).contains(&max_delay.as_millis()), "{max_delay}");
    assert!(connection.receiver.counters().max_out_of_order > 0);
}

/// Every scheduler, with the stack that fills paths as it does.
fn schedulers() -> impl Iterator<Item = (&'static str, MptcpStack)> {
    schedule::REGISTRY.iter().map(|entry| match entry.fill {
        schedule::Fill::Cwnd => (entry.name, MptcpStack::OutOfTree),
        schedule::Fill::SendBuffer => (entry.name, MptcpStack::Upstream),
    })
}

#[test]
fn every_scheduler_that_fills_windows_fills_each_from_a_long_queue() {
    // `fixed` uses one path by definition.
    let is_meant = |(scheduler, stack): &(&str, MptcpStack)| *stack == MptcpStack::OutOfTree && *scheduler != "fixed";
    for (scheduler, stack) in schedulers().filter(is_meant) {
        let options = Options { segments: 5000, stack, scheduler, window: 20, ..Options::with_subflows(3) };
        let connection = transfer(&options, &[path(10, 100), path(20, 100), path(30, 100)], |_, _| pass());
        let carried = [0, 1, 2].map(|subflow| connection.sent_on(subflow).count());
        assert!(carried.iter().all(|segments| *segments >= 100), "{scheduler}: {carried:?}");
    }
}

#[test]
fn a_backup_is_used_when_no_other_subflow_is_usable() {
    let backup = SubflowConfig { backup: true, ..SubflowConfig::default() };
    let subflows = vec![SubflowConfig::default(), backup];
    for (scheduler, stack) in schedulers() {
        let options =
            Options { segments: 3000, subflows: subflows.clone(), stack, scheduler, ..Options::with_subflows(2) };
        let paths = [path(20, 100), path(5, 100)];
        let connection = transfer(&options, &paths, |_, _| pass());
        assert_eq!(connection.sent_on(1).count(), 0, "{scheduler}: though it is faster");
        let connection = transfer(&options, &paths, black_hole(0, 1150));
        let first_on_backup = connection.sent_on(1).next().expect("the backup carries the rest").0;
        // The out-of-tree stack: at the first timeout, SRTT + 200 ms. Upstream: the connection's timer first sends the
        // head again on the backup after two of its intervals without a DATA_ACK.
        let earliest = Instant::ZERO + Span::from_millis(1150 + 200);
        assert!(
            first_on_backup > earliest && first_on_backup < earliest + secs(6),
            "{scheduler}: {}",
            first_on_backup.as_millis()
        );
        assert!(connection.sender.counters().reinjected > 0);
    }
}

#[test]
fn data_of_a_dead_path_is_reinjected_and_no_new_data_assigned_to_it() {
    for (stack, scheduler) in [(MptcpStack::OutOfTree, "minrtt"), (MptcpStack::Upstream, "linger")] {
        let options = Options { segments: 5000, stack, scheduler, ..Options::with_subflows(2) };
        let connection = transfer(&options, &[path(10, 100), path(12, 100)], black_hole(1, 1200));
        assert_eq!(connection.sender.failures(1), 1, "{stack:?}");
        let end = connection.sent_on(0).last().expect("it carried the rest").0;
        let last_assigned =
            connection.sent_on(1).filter(|(_, it)| !it.tcp.retransmission).last().expect("it carried some").0;
        assert!(
            end.since(last_assigned) > Span::from_millis(200),
            "{stack:?}: the dead path got data until {}",
            last_assigned.as_millis()
        );
    }
}

#[test]
fn the_out_of_tree_stack_reinjects_at_the_first_timeout_and_upstream_at_its_own_timer() {
    let first_copy = |stack| {
        let options = Options { segments: 5000, stack, ..Options::with_subflows(2) };
        let connection = transfer(&options, &[path(10, 100), path(10, 100)], black_hole(1, 1200));
        connection.sent_on(0).find(|(_, it)| it.copy).expect("lost data is sent again").0.as_millis()
    };
    // The path dies at 1200 ms; the last acknowledgement comes 20 ms later; the tail-loss probe leaves after 2 SRTT + 2
    // ms, and the timer, set again, runs out SRTT + 200 ms after that.
    let timeout = 1200 + 20 + 42 + 220;
    let (out_of_tree, upstream) = (first_copy(MptcpStack::OutOfTree), first_copy(MptcpStack::Upstream));
    assert!((timeout - 2..=timeout + 6).contains(&out_of_tree), "{out_of_tree}");
    assert!(upstream >= 1220 + 200, "no DATA_ACK for 200 ms at least, from the dead path's last one: {upstream}");
}

#[test]
fn the_data_of_a_removed_subflow_is_sent_on_the_other_at_once() {
    let leave = Some(Span::from_millis(200));
    let subflows = vec![SubflowConfig::default(), SubflowConfig { leave, ..SubflowConfig::default() }];
    let options = Options { segments: 5000, subflows, ..Options::with_subflows(2) };
    let connection = transfer(&options, &[path(10, 100), path(40, 100)], |_, _| pass());
    let leave_time = Instant::ZERO + Span::from_millis(1200);
    assert!(connection.sent_on(1).all(|(time, _)| time <= leave_time));
    let states: Vec<SubflowState> = connection.sender.subflows().map(|(_, state)| state).collect();
    assert_eq!(states, [SubflowState::Up, SubflowState::Removed]);
    let counters = connection.sender.counters();
    assert!(counters.reinjected > 0 && connection.receiver.counters().duplicates <= counters.reinjected);
    assert_eq!(connection.sender.subflows().map(|(tcp, _)| tcp.counters().timeouts).sum::<u64>(), 0);
}

#[test]
fn a_subflow_may_join_late_and_the_first_may_leave() {
    let first = SubflowConfig { leave: Some(Span::from_millis(300)), ..SubflowConfig::default() };
    let second = SubflowConfig { join: Span::from_millis(250), ..SubflowConfig::default() };
    let options = Options { segments: 10_000, subflows: vec![first, second], ..Options::with_subflows(2) };
    let connection = transfer(&options, &[path(10, 100), path(10, 100)], |_, _| pass());
    let syn = connection.sent.iter().find(|(_, it)| it.subflow == 1).expect("it joins").0;
    assert_eq!(syn.as_millis(), 1250);
}

#[test]
fn all_subflows_share_one_receive_window() {
    // A window of 50 segments: half of the buffer.
    let options = Options { buffer: 100 * 1000, window: 30, ..Options::with_subflows(2) };
    let connection = transfer(&options, &[path(5, 50), path(50, 50)], |_, _| pass());
    assert!(connection.receiver.counters().max_out_of_order < 50);
    assert!(connection.sender.limited_times(connection.now).receive_window > Span::from_millis(100));
    assert_eq!(connection.receiver.counters().beyond_window, 0);
}

#[test]
fn opportunistic_retransmission_frees_the_window_and_penalises_the_slow_path() {
    let run = |opportunistic, slow_ms| {
        // The receive window has room for the fast path's 30 segments and for 20 of the slow one's.
        let options =
            Options { segments: 4000, buffer: 100 * 1000, window: 30, opportunistic, ..Options::with_subflows(2) };
        transfer(&options, &[path(10, 50), path(slow_ms, 50)], |_, _| pass())
    };
    // 4 x 20 ms < 200 ms: the fast path retransmits the segments of the slow one.
    let (enabled, disabled) = (run(true, 100), run(false, 100));
    assert!(
        enabled.sender.counters().opportunistic_retransmissions > 10
            && enabled.receiver.counters().copies_arrived_first > 10
    );
    assert_eq!(disabled.sender.counters().opportunistic_retransmissions, 0);
    assert!(enabled.now.since(Instant::ZERO) < disabled.now.since(Instant::ZERO), "it was faster");
    assert!(
        run(true, 35).sender.counters().opportunistic_retransmissions
            < enabled.sender.counters().opportunistic_retransmissions / 4,
        "4 x 20 ms > 70 ms"
    );
}

#[test]
fn a_full_send_buffer_causes_opportunistic_retransmission_as_a_full_window() {
    let run = |opportunistic| {
        let options =
            Options { segments: 4000, send_buffer: 50, window: 30, opportunistic, ..Options::with_subflows(2) };
        transfer(&options, &[path(10, 50), path(100, 50)], |_, _| pass())
    };
    let (enabled, disabled) = (run(true), run(false));
    assert!(disabled.sender.limited_times(disabled.now).send_buffer > secs(1));
    assert!(
        enabled.sender.counters().opportunistic_retransmissions > 10
            && enabled.sender.limited_times(enabled.now).receive_window == Span::ZERO
    );
    assert!(enabled.now.since(Instant::ZERO) < disabled.now.since(Instant::ZERO), "it was faster");
}

/// Twice a subflow's window, in packets of 2304 bytes of memory, of which the connection counts the data alone. While a
/// dead path holds everything up the buffer fills; an application that waits for a third of it to be free leaves up to that.
#[test]
fn the_send_buffer_is_the_sum_of_the_subflows_buffers_or_the_largest() {
    for (rule, buffers) in [(SendBufferRule::Sum, 2), (SendBufferRule::Largest, 1)] {
        let options = Options {
            segments: 5000,
            stack: MptcpStack::Upstream,
            scheduler: "linger",
            send_buffer_rule: rule,
            ..Options::with_subflows(2)
        };
        let mut connection =
            Connection::with_segment_filter(&options, &[path(10, 100), path(10, 100)], black_hole(1, 1200));
        let mut max_cwnd = 0;
        while connection.sender.failures(1) == 0 {
            assert!(!connection.run(options.segments, Span::from_millis(1)));
            max_cwnd = connection.sender.subflows().map(|(sender, _)| sender.decision().cwnd).fold(max_cwnd, u32::max);
        }
        let assigned = connection.sent.iter().map(|(_, segment)| segment.data_seq + 1).max().unwrap_or(0);
        let outstanding = assigned - connection.sender.acknowledged();
        let size = buffers * 2 * u64::from(max_cwnd) * 2304 / u64::from(MSS);
        assert!((size * 2 / 3..=size).contains(&outstanding), "{rule:?}: {outstanding} of {size}");
    }
}

#[test]
fn the_interval_before_a_path_is_stale_does_not_depend_on_its_rto() {
    let options =
        Options { segments: 5000, stack: MptcpStack::Upstream, scheduler: "linger", ..Options::with_subflows(2) };
    let mut connection =
        Connection::with_segment_filter(&options, &[path(10, 100), path(10, 100)], black_hole(1, 1200));
    while connection.sender.failures(1) == 0 {
        assert!(!connection.run(options.segments, Span::from_millis(1)));
    }
    // The path dies at 1200 ms. The last DATA_ACK starts the timer 20 ms later; it runs out after 220 ms, and four
    // times more after as long, plus 40 ms at most for a delayed acknowledgement. (By the dead path's timer: 220, 440,
    // 880 ms...)
    let earliest_ms = 1200 + 20 + 5 * 220;
    assert!(
        (earliest_ms..earliest_ms + 4 * 40).contains(&connection.now.as_millis()),
        "{}",
        connection.now.as_millis()
    );
}

#[test]
fn redundant_sends_every_segment_on_every_path_unless_it_has_arrived() {
    let options = Options { scheduler: "redundant", ..Options::with_subflows(2) };
    let connection = transfer(&options, &[path(10, 100), path(10, 100)], |_, _| pass());
    let carried =
        |subflow| connection.sent_on(subflow).map(|(_, it)| it.data_seq).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(carried(0).len(), 1000);
    // The second joins two round trips after the first has begun: segments delivered by then are not sent on it.
    assert!(carried(1).len() > 900, "{}", carried(1).len());
    let counters = connection.receiver.counters();
    assert_eq!(connection.sender.counters().copies, carried(0).intersection(&carried(1)).count() as u64);
    assert!(counters.duplicates > 800 && counters.copies_arrived_first <= counters.duplicates);
}

#[test]
fn redundant_does_not_wait_for_a_lost_segment() {
    let options = Options { scheduler: "redundant", segments: 400, ..Options::with_subflows(2) };
    let filter = |_: Instant, segment: &Segment| {
        let is_lost = segment.subflow == 0
            && segment.tcp.kind == SegmentKind::Data
            && segment.data_seq >= 100
            && segment.data_seq.is_multiple_of(50)
            && !segment.tcp.retransmission;
        if is_lost { Vec::new() } else { pass() }
    };
    let connection = transfer(&options, &[path(10, 100), path(10, 100)], filter);
    let max_delay = connection.reassembly_delays.iter().skip(100).max().expect("something was delivered");
    // The retransmission would come after a round trip and more; the copy's own place in its path's queue may be later.
    assert!(*max_delay < Span::from_millis(30), "{max_delay}");
    assert!(connection.receiver.counters().copies_arrived_first >= 6);
}

/// Linux 6.1 over `validation/mptcp.toml`, 100 + 10 Mbit/s, CUBIC: acknowledgements of the first subflow, microseconds after its
/// first data, and what it sent upon them, from a log of `tcp_write_xmit`. A buffer has 22 segments, half of the window, and
/// the third fragment begins the third buffer.
#[test]
fn the_first_segments_are_those_of_the_kernel() {
    const ACKS: [(u64, u64); 12] = [
        (174, 1),
        (295, 2),
        (416, 3),
        (537, 4),
        (658, 5),
        (780, 6),
        (901, 7),
        (1021, 8),
        (1143, 9),
        (1264, 10),
        (1391, 11),
        (1512, 12),
    ];
    const SENT: [(u64, u64, u64); 5] = [(0, 0, 10), (295, 10, 14), (658, 14, 20), (780, 20, 22), (1512, 22, 28)];
    let options = Options {
        segments: 10_000,
        congestion: "cubic",
        scheduler: "linger",
        stack: MptcpStack::Upstream,
        mss: 1424,
        ..Options::with_subflows(1)
    };
    let start = Instant::ZERO + secs(1);
    let mut sender = new_sender(&options);
    let mut sent = Vec::new();
    let mut poll = |sender: &mut Sender, now: Instant, until: Instant| {
        let mut now = now;
        loop {
            match sender.poll(now) {
                Output::Transmit(segment) if segment.tcp.kind == SegmentKind::Data => {
                    sent.push((now.since(start).as_micros(), segment.tcp.seq));
                }
                Output::Transmit(_) => {}
                Output::WaitUntil(deadline) if deadline < until => {
                    now = deadline;
                    sender.handle(now, Input::Timeout);
                }
                Output::WaitUntil(_) => break,
            }
        }
    };
    let syn = start - Span::from_micros(53);
    sender.handle(syn, Input::Connect);
    poll(&mut sender, syn, start);
    let ack = |ack, receive_window, syn| {
        let tcp = tcp::Ack { syn, ack, receive_window, tsval: 1, tsecr: 1000, ..tcp::Ack::default() };
        Ack { subflow: 0, tcp, data_ack: ack }
    };
    sender.handle(start, Input::Ack(&ack(0, 64_240, true)));
    let mut now = start;
    for (time, acked) in ACKS {
        let next = start + Span::from_micros(time);
        poll(&mut sender, now, next);
        now = next;
        sender.handle(now, Input::Ack(&ack(acked, 65_408, false)));
    }
    poll(&mut sender, now, now + Span::from_micros(1));
    let expected: Vec<(u64, u64)> =
        SENT.iter().flat_map(|(time, start, end)| (*start..*end).map(|seq| (*time, seq))).collect();
    assert_eq!(sent, expected);
}

/// The peer answers to the third packet of a handshake; until then the subflow carries no data, and no other joins. One joins
/// at a time: 3, 5 and 7 round trips after the first data (Linux 6.1: 804, 1340 and 1877 us at 268 us).
#[test]
fn upstream_subflows_join_one_after_the_other() {
    let options =
        Options { segments: 5000, stack: MptcpStack::Upstream, scheduler: "linger", ..Options::with_subflows(4) };
    let connection = transfer(&options, &[path(10, 10); 4], |_, _| pass());
    let first_data = |subflow| connection.sent_on(subflow).next().expect("it carries data").0;
    let round_trips = [1, 2, 3].map(|subflow| first_data(subflow).since(first_data(0)).as_millis() / 20);
    assert_eq!(round_trips, [3, 5, 7]);
}

/// A capture of Linux 6.1 over 16 and 4 Mbit/s, 28 and 15 ms: until another subflow joins, the first one gets 62 656 bytes, two
/// buffers of 22 segments, which is half of the window. Nothing is added to a buffer that has begun to leave, and each mapping
/// of the capture has one length. The other one gets the rest of the second fragment, and 20 segments up to the edge of the
/// window, which the answer to its third packet has moved.
#[test]
fn a_subflow_that_joins_gets_the_segments_that_the_kernel_gives_it() {
    let options = Options {
        segments: 5000,
        stack: MptcpStack::Upstream,
        congestion: "cubic",
        scheduler: "linger",
        buffer: 1 << 17,
        mss: 1424,
        option_bytes: 24,
        ..Options::with_subflows(2)
    };
    // A SYN is transmitted for as long as a segment here, and hardly any time on the capture's links.
    let links = |delay_us: u64, transmission_us: u64| {
        let delay = Span::from_micros(delay_us - transmission_us / 2);
        path(0, transmission_us).map(|link| LinkConfig { delay, ..link })
    };
    let connection = transfer(&options, &[links(13_782, 760), links(7_595, 2950)], |_, _| pass());
    let on = |subflow: u16, count: usize| -> Vec<u64> {
        connection.sent_on(subflow).take(count).map(|(_, segment)| segment.data_seq).collect()
    };
    assert_eq!(on(0, 44), (0..44).collect::<Vec<u64>>());
    assert!(on(0, 45)[44] >= 66, "{:?}", on(0, 45));
    assert_eq!(on(1, 22), (44..66).collect::<Vec<u64>>());
}

/// RFC 8684 section 3.2: the third packet of a join is answered, and data follows upon that. If the answer is lost, the packet
/// is repeated after two round trips (Linux `schedule_3rdack_retransmission`), and the answer to that takes another.
#[test]
fn a_join_whose_answer_is_lost_carries_data_two_round_trips_later() {
    let first_data = |lost: usize| {
        let options =
            Options { segments: 5000, stack: MptcpStack::Upstream, scheduler: "linger", ..Options::with_subflows(2) };
        let mut answers = 0;
        let is_lost = move |_: Instant, ack: &Ack| {
            answers += usize::from(ack.subflow == 1 && !ack.tcp.syn);
            if ack.subflow == 1 && !ack.tcp.syn && answers <= lost { Vec::new() } else { pass() }
        };
        let mut connection =
            Connection::new(&options, &[path(10, 10), path(10, 10)], Box::new(|_, _| pass()), Box::new(is_lost));
        assert!(connection.run(options.segments, secs(60)));
        connection.sent_on(1).next().expect("it carries data").0
    };
    assert_eq!(first_data(1).since(first_data(0)).as_millis(), 40);
}
