//! What limits a sender: an application with idle periods (application-limited samples, idle restarts), a closed receive
//! window, a window with room for less than a super-segment.

use crate::tcp_connection;
use crate::tcp_connection::{Connection, Options, new_sender, sender_with};
use control::{Context, Controller, Decision, PathEvent};
use ropewalk_transport::path::Limit;
use ropewalk_transport::tcp::sender::{Input, Output};
use ropewalk_transport::tcp::{Ack, SackBlocks, Segment, SegmentKind, SinglePathSender};
use std::sync::{Arc, Mutex};
use units::{INFINITE_SSTHRESH, Instant, PathId, Span};

const WINDOW: u32 = 60;

/// A window of 60 packets that records each delivery-rate sample: segments acknowledged, and whether it was
/// application-limited.
#[derive(Debug, Default)]
struct RateSampleRecorder(Arc<Mutex<Vec<(u64, bool)>>>);

impl Controller for RateSampleRecorder {
    fn on_event(&mut self, _path: PathId, event: &PathEvent, _context: &mut Context<'_>) {
        if let PathEvent::Ack(sample) = event
            && let Some(delivery) = sample.rate_sample
        {
            self.0.lock().expect("one thread").push((sample.snd_una, delivery.app_limited));
        }
    }

    fn decision(&self, _path: PathId) -> Decision {
        Decision { cwnd: WINDOW, ssthresh: INFINITE_SSTHRESH, pacing_rate: None }
    }
}

/// Linux asks at each write (`tcp_rate_check_app_limited`): if nothing was left to send and the window had room, what
/// is sent until something of it is acknowledged is marked.
#[test]
fn samples_of_a_flow_that_had_nothing_to_send_are_marked() {
    let recorder = RateSampleRecorder::default();
    let samples = recorder.0.clone();
    let mut connection = Connection::with_segment_filter(Options::default(), |_, _| tcp_connection::pass());
    connection.sender = sender_with(Options::default(), Box::new(recorder));
    for segments in [5, 5, 500] {
        connection.sender.handle(connection.now, Input::Write { segments, lacking: 0 });
        assert!(connection.run(Span::from_secs(10)));
        connection.now += Span::from_millis(100);
    }
    assert_eq!(connection.receiver.delivered(), 510);
    let samples = samples.lock().expect("one thread");
    assert!(samples.iter().filter(|(una, _)| *una <= 10).count() >= 4, "{samples:?}");
    // Of the long write, one window is sent before the first acknowledgement.
    let marked_until = 10 + u64::from(WINDOW);
    for (una, marked) in samples.iter() {
        assert_eq!(*marked, *una <= marked_until, "the sample that acknowledged all below {una}");
    }
}

/// The segments that may be sent now, and when to poll again.
fn poll_all(sender: &mut SinglePathSender, now: Instant) -> (Vec<Segment>, Instant) {
    let mut segments = Vec::new();
    loop {
        match sender.poll(now) {
            Output::Transmit(segment) => segments.push(segment),
            Output::WaitUntil(deadline) => return (segments, deadline),
        }
    }
}

/// The window of [`RateSampleRecorder`] is 60 packets: of 110 that are written, 50 wait for the first acknowledgement.
#[test]
fn every_instant_has_one_limit_in_handshake_full_window_and_pause_of_the_application() {
    let ms = |ms| Instant::ZERO + Span::from_millis(ms);
    let mut sender = sender_with(Options::default(), Box::new(RateSampleRecorder::default()));
    let ack = |ack| Ack { ack, receive_window: 1 << 20, tsval: 1, tsecr: 1, ..Ack::default() };
    let write = Input::Write { segments: 110, lacking: 0 };
    let steps = [
        (0, Input::Connect, Limit::Handshake),
        (0, write, Limit::Handshake),
        (20, Input::Ack(&Ack { syn: true, ..ack(0) }), Limit::Window),
        (40, Input::Ack(&ack(60)), Limit::Application),
        (60, Input::Ack(&ack(110)), Limit::Application),
        (70, write, Limit::Window),
        (90, Input::Ack(&ack(170)), Limit::Application),
    ];
    for (at, input, limit) in steps {
        sender.handle(ms(at), input);
        poll_all(&mut sender, ms(at));
        assert_eq!(sender.limit(), limit, "at {at} ms");
    }
    let times = sender.limit_times(ms(95));
    let expected = [(Limit::Handshake, 20), (Limit::Window, 20 + 20), (Limit::Application, 30 + 5)];
    expected.iter().for_each(|(limit, time)| assert_eq!(times.of(*limit), Span::from_millis(*time), "{limit:?}"));
    assert_eq!(times.total(), Span::from_millis(95));
}

/// A window that was closed when everything was acknowledged is probed until an acknowledgement opens it, each time after
/// twice the time (RFC 9293 section 3.8.6.1).
#[test]
fn a_closed_receive_window_is_probed_until_it_is_open() {
    let mut sender = new_sender(Options::default());
    let ack = |ack, receive_window| Ack { ack, receive_window, tsval: 1, tsecr: 1, ..Ack::default() };
    let ms = |ms| Instant::ZERO + Span::from_millis(ms);
    sender.handle(ms(0), Input::Connect);
    poll_all(&mut sender, ms(0));
    sender.handle(ms(10), Input::Ack(&Ack { syn: true, ..ack(0, 5_000) }));
    assert_eq!(poll_all(&mut sender, ms(10)).0.len(), 1 + 5, "the handshake's third packet, and what the window takes");
    sender.handle(ms(20), Input::Ack(&ack(5, 0)));
    let (mut now, mut timeouts) = (ms(20), Vec::new());
    for probes in 0..4 {
        let (segments, deadline) = poll_all(&mut sender, now);
        let kinds: Vec<SegmentKind> = segments.iter().map(|segment| segment.kind).collect();
        assert_eq!(kinds, vec![SegmentKind::WindowProbe; usize::from(probes > 0)]);
        timeouts.push(deadline.since(now).as_millis());
        now = deadline;
        sender.handle(now, Input::Timeout);
    }
    // 10 ms and 200 ms, doubled, and rounded up by buckets of 8 ms, and of 64 ms from 504 ms on.
    assert_eq!(timeouts, [212, 424, 880, 1728], "for 210, 420, 840 and 1680 ms");
    poll_all(&mut sender, now);
    sender.handle(now, Input::Ack(&ack(5, 3_000)));
    let (segments, _) = poll_all(&mut sender, now);
    assert_eq!(segments.iter().map(|segment| segment.seq).collect::<Vec<_>>(), [5, 6, 7]);
    assert_eq!((sender.counters().sent, sender.counters().retransmitted), (8, 0));
}

/// The window of an acknowledgement that advances holds, though its right edge has moved back (RFC 9293 section 3.8.6); Linux
/// 6.1 and 6.18 answer packetdrill so.
#[test]
fn a_window_that_shrinks_lets_nothing_out_until_it_opens() {
    let mut sender = new_sender(Options::default());
    let ack = |ack, receive_window| Ack { ack, receive_window, tsval: 1, tsecr: 1, ..Ack::default() };
    let ms = |ms| Instant::ZERO + Span::from_millis(ms);
    sender.handle(ms(0), Input::Connect);
    poll_all(&mut sender, ms(0));
    sender.handle(ms(100), Input::Ack(&Ack { syn: true, ..ack(0, 51_200) }));
    assert_eq!(poll_all(&mut sender, ms(100)).0.len(), 1 + 10);
    sender.handle(ms(200), Input::Ack(&ack(10, 0)));
    let (mut kinds, mut now) = (Vec::new(), ms(200));
    while now < ms(1300) {
        let (segments, deadline) = poll_all(&mut sender, now);
        kinds.extend(segments.iter().map(|segment| segment.kind));
        now = deadline;
        sender.handle(now, Input::Timeout);
    }
    assert_eq!(kinds, [SegmentKind::WindowProbe; 2], "the window ended 41 segments later before");
    sender.handle(ms(1300), Input::Ack(&ack(10, 51_200)));
    assert_eq!(poll_all(&mut sender, ms(1300)).0.len(), 10, "20 before the idle time");
    // What does not advance may have been overtaken: its smaller window does not count, a closed one does.
    let mut sent = |at, ack_number, window| {
        sender.handle(ms(at), Input::Ack(&ack(ack_number, window)));
        poll_all(&mut sender, ms(at)).0.len()
    };
    assert_eq!([sent(1400, 12, 30_000), sent(1401, 12, 2_000), sent(1402, 14, 30_000)], [4, 0, 4]);
    assert_eq!([sent(1500, 28, 2_000), sent(1501, 28, 0), sent(1600, 29, 1_000)], [2, 0, 0]);
}

/// Beyond a window that has shrunk only the oldest segment is sent again (Linux `__tcp_retransmit_skb`).
#[test]
fn what_a_shrunk_window_does_not_take_is_not_retransmitted_but_for_the_oldest() {
    let retransmitted = |receive_window| {
        let mut sender = new_sender(Options::default());
        let ms = |ms| Instant::ZERO + Span::from_millis(ms);
        let ack = Ack { receive_window, tsval: 1, tsecr: 1, ..Ack::default() };
        sender.handle(ms(0), Input::Connect);
        poll_all(&mut sender, ms(0));
        sender.handle(ms(20), Input::Ack(&Ack { syn: true, receive_window: 51_200, ..ack }));
        poll_all(&mut sender, ms(20));
        let mut sack_blocks = SackBlocks::default();
        sack_blocks.push((5, 10));
        sender.handle(ms(40), Input::Ack(&Ack { ack: 1, sack_blocks, ..ack }));
        let segments = poll_all(&mut sender, ms(40)).0;
        segments.iter().filter(|segment| segment.retransmission).map(|segment| segment.seq).collect::<Vec<u64>>()
    };
    assert_eq!(retransmitted(51_200), [1, 2, 3, 4]);
    assert_eq!(retransmitted(2_000), [1, 2]);
    assert_eq!(retransmitted(0), [1]);
}

/// A window that does not change, packets.
#[derive(Debug)]
struct FixedWindow(u32);

impl Controller for FixedWindow {
    fn on_event(&mut self, _path: PathId, _event: &PathEvent, _context: &mut Context<'_>) {}

    fn decision(&self, _path: PathId) -> Decision {
        Decision { cwnd: self.0, ssthresh: INFINITE_SSTHRESH, pacing_rate: None }
    }
}

/// How many segments leave with each of so many acknowledgements of one segment, the first of them after a round trip of
/// 20 ms and the others 0.1 ms apart; then with one 2 ms later. A millisecond of the pacing rate has nine segments.
fn segments_with_each_ack(window: u32, tso: bool, acks: u64) -> Vec<usize> {
    let options = Options { tso, ..Options::default() };
    let mut sender = sender_with(options, Box::new(FixedWindow(window)));
    sender.handle(Instant::ZERO, Input::Write { segments: u64::MAX, lacking: 0 });
    let us = |us| Instant::ZERO + Span::from_micros(us);
    let ack = |ack| Ack { ack, receive_window: 1_000_000, tsval: 1, tsecr: 1, ..Ack::default() };
    sender.handle(us(0), Input::Connect);
    poll_all(&mut sender, us(0));
    sender.handle(us(20_000), Input::Ack(&Ack { syn: true, ..ack(0) }));
    assert_eq!(poll_all(&mut sender, us(20_000)).0.len(), 1 + window as usize, "the handshake's third packet, and all");
    let times = (0..acks).map(|k| us(40_000 + 100 * k)).chain([us(40_000 + 100 * acks + 2_000)]);
    let after = |(k, now)| {
        sender.handle(now, Input::Ack(&ack(k)));
        poll_all(&mut sender, now).0.len()
    };
    (1..).zip(times).map(after).collect()
}

/// Linux `__tcp_transmit_skb`: super-segments of nine, and what the window has room for. A lone segment has PSH only if it is
/// the last.
#[test]
fn psh_ends_super_segments_of_several_and_the_data() {
    let pushed = |window, tso, segments| {
        let mut sender = sender_with(Options { tso, ..Options::default() }, Box::new(FixedWindow(window)));
        sender.handle(Instant::ZERO, Input::Write { segments, lacking: 0 });
        sender.handle(Instant::ZERO, Input::Connect);
        poll_all(&mut sender, Instant::ZERO);
        let now = Instant::ZERO + Span::from_millis(20);
        let ack = Ack { syn: true, receive_window: 1_000_000, tsval: 1, tsecr: 1, ..Ack::default() };
        sender.handle(now, Input::Ack(&ack));
        let sent = poll_all(&mut sender, now).0;
        sent.iter().filter(|segment| segment.psh).map(|segment| segment.seq + 1).collect::<Vec<u64>>()
    };
    assert_eq!(pushed(100, true, u64::MAX), [9, 18, 27, 36, 45, 54, 63, 72, 81, 90, 99]);
    assert_eq!(pushed(100, true, 19), [9, 18, 19]);
    assert_eq!(pushed(100, false, u64::MAX), [0; 0]);
}

/// Linux `tcp_tso_should_defer`: nothing waits if the latest packet left more than a millisecond ago.
#[test]
fn less_than_a_super_segment_waits_for_acknowledgements_that_are_near() {
    assert_eq!(segments_with_each_ack(100, true, 11), [1, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2]);
    assert_eq!(segments_with_each_ack(100, false, 11), [1; 12]);
}
