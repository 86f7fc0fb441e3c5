use super::*;
use crate::quic::{AckRanges, MAX_ACK_DELAY};
use control::{Context, PathEvent};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use units::PathId;

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

fn reno() -> Box<dyn Controller> {
    let entry = control::registry::find("reno").expect("registered");
    entry.controller(&BTreeMap::new()).expect("no parameters")
}

/// A sender over so many paths with `chunks` to send, connected at zero.
fn sender(paths: usize, chunks: u64) -> Sender {
    sender_with(reno(), paths, chunks)
}

fn sender_with(controller: Box<dyn Controller>, paths: usize, chunks: u64) -> Sender {
    let config = ConnectionConfig {
        paths: vec![PathConfig::default(); paths],
        chunk_bytes: 1432,
        packet_bytes: 1500,
        initial_window: 10,
        cwnd_clamp: u32::MAX,
        pacing: false,
        handshake: true,
        tick: Span::from_millis(1),
        adaptive_loss_thresholds: true,
        undo: true,
        initial_max_data: 1000,
    };
    let scheduler = schedule::find("minrtt").expect("registered").scheduler(&[], 0, &BTreeMap::new());
    let mut sender = Sender::new(config, controller, RngStream::named(1, "paths"), scheduler.expect("no parameters"));
    sender.handle(Instant::ZERO, Input::Write(chunks));
    sender.handle(Instant::ZERO, Input::Connect);
    sender
}

/// All that the sender sends now, and when it is to be polled next.
fn poll(sender: &mut Sender, now: Instant) -> (Vec<Packet>, Instant) {
    let mut packets = Vec::new();
    loop {
        match sender.poll(now) {
            Output::Transmit(packet) => packets.push(packet),
            Output::WaitUntil(deadline) => return (packets, deadline),
        }
    }
}

fn timeout(sender: &mut Sender, now: Instant) -> (Vec<Packet>, Instant) {
    sender.handle(now, Input::Timeout);
    poll(sender, now)
}

fn reply(sender: &mut Sender, now: Instant, path: u16, content: ReplyContent) -> (Vec<Packet>, Instant) {
    sender.handle(now, Input::Reply(&Reply { path, content }));
    poll(sender, now)
}

fn ack(path: u16, ranges: &[(u64, u64)]) -> ReplyContent {
    let mut ack_ranges = AckRanges::default();
    ranges.iter().for_each(|(start, end)| ack_ranges.push(*start, *end));
    let (ranges, max_data) = (ack_ranges, 1000);
    ReplyContent::Ack(PathAck { path, delay_us: 0, ranges, ce_count: 0, max_data, one_way_delay_us: 0 })
}

fn chunks(packets: &[Packet]) -> Vec<(u16, u64)> {
    packets
        .iter()
        .map(|packet| match packet.content {
            Content::Stream { chunk, .. } => (packet.path, chunk),
            other => panic!("{other:?}"),
        })
        .collect()
}

/// RFC 9002, section 6.2.2: three times `kInitialRtt` of 333 ms, then twice that.
#[test]
fn the_handshake_is_repeated_with_backoff_and_data_follows_its_answer() {
    let mut sender = sender(1, 3);
    let (packets, deadline) = poll(&mut sender, ms(0));
    assert_eq!((packets.len(), packets[0].content, deadline), (1, Content::Initial, ms(999)));
    let (packets, deadline) = timeout(&mut sender, ms(999));
    assert_eq!((packets.len(), packets[0].number, deadline), (1, 1, ms(999 + 1998)));
    let (packets, _) = reply(&mut sender, ms(1049), 0, ReplyContent::Handshake { number: 1 });
    assert_eq!(chunks(&packets), [(0, 0), (0, 1), (0, 2)]);
    let rtt = sender.paths().next().expect("a path").smoothed_rtt;
    assert_eq!(rtt, Span::from_millis(50), "of the second Initial packet");
}

#[test]
fn a_further_path_carries_data_after_its_validation() {
    let mut sender = sender(2, 100);
    poll(&mut sender, ms(0));
    let (packets, _) = reply(&mut sender, ms(20), 0, ReplyContent::Handshake { number: 0 });
    assert_eq!((packets[0].path, packets[0].content), (1, Content::PathChallenge));
    assert_eq!(chunks(&packets[1..]), (0..10).map(|chunk| (0, chunk)).collect::<Vec<_>>(), "the initial window");
    let (packets, _) = reply(&mut sender, ms(60), 1, ReplyContent::PathResponse { number: 0 });
    assert_eq!(chunks(&packets), (10..20).map(|chunk| (1, chunk)).collect::<Vec<_>>());
    let second = sender.paths().nth(1).expect("two paths");
    assert_eq!(
        (second.smoothed_rtt, second.latest_sample),
        (Span::from_millis(40), None),
        "no sample, its initial RTT"
    );
}

/// RFC 9002, sections 6.2.1 and 6.2.4: smoothed RTT, four variations and the peer's delay after the last packet; two
/// probes whatever the window; twice the time for the next.
#[test]
fn a_probe_timeout_sends_two_probes_and_doubles() {
    let mut sender = sender(1, 10);
    poll(&mut sender, ms(0));
    let (_, deadline) = reply(&mut sender, ms(100), 0, ReplyContent::Handshake { number: 0 });
    let pto = Span::from_millis(100 + 4 * 50) + MAX_ACK_DELAY;
    assert_eq!(deadline, ms(100) + pto);
    let (probes, second) = timeout(&mut sender, deadline);
    assert_eq!(chunks(&probes), [(0, 0), (0, 1)], "the oldest data");
    assert_eq!(second, deadline + pto * 2);
    let (probes, third) = timeout(&mut sender, second);
    assert_eq!((probes.len(), third), (2, second + pto * 4));
    let path = sender.paths().next().expect("a path");
    assert_eq!((path.counters.probe_timeouts, path.counters.lost, path.in_flight), (2, 0, 14), "nothing is lost by it");
    // An acknowledgement ends the backoff, and finds lost what was sent three packets earlier.
    let (packets, deadline) = reply(&mut sender, third - Span(1), 0, ack(0, &[(13, 13)]));
    assert!(!packets.is_empty(), "lost data is sent again");
    assert!(deadline < third + pto * 4, "{deadline:?}");
    assert_eq!(sender.paths().next().expect("a path").counters.recoveries, 1);
}

/// draft-ietf-quic-multipath-21, "PTO Expiration".
#[test]
fn after_a_probe_timeout_the_data_goes_out_on_the_other_path_too() {
    let mut sender = sender(2, 14);
    poll(&mut sender, ms(0));
    reply(&mut sender, ms(20), 0, ReplyContent::Handshake { number: 0 });
    let (packets, _) = reply(&mut sender, ms(60), 1, ReplyContent::PathResponse { number: 0 });
    assert_eq!(chunks(&packets), (10..14).map(|chunk| (1, chunk)).collect::<Vec<_>>());
    // Path 0 is silent: 20 + 4 * 10 + 25 ms after its last packet.
    let (packets, _) = timeout(&mut sender, ms(20 + 85));
    let sent = chunks(&packets);
    assert_eq!(sent[..2], [(0, 0), (0, 1)], "probes");
    assert_eq!(sent[2..], (0..6).map(|chunk| (1, chunk)).collect::<Vec<_>>(), "as far as path 1's window allows");
    assert_eq!(sender.paths().next().expect("a path").counters.failures, 1);
    // What arrives on either path counts once, and path 0 is used again.
    reply(&mut sender, ms(110), 0, ack(0, &[(0, 11)]));
    assert_eq!(sender.acknowledged(), 10);
    sender.handle(ms(110), Input::Write(1));
    assert_eq!(chunks(&poll(&mut sender, ms(110)).0), [(0, 14)]);
    reply(&mut sender, ms(120), 1, ack(1, &[(0, 9)]));
    assert_eq!(sender.acknowledged(), 14);
}

/// RFC 9002, section 7.8: the window grows while the sender uses it, which in slow start is more than half of it.
#[test]
fn a_ping_counts_as_use_of_the_window() {
    let mut sender = sender(2, 13);
    poll(&mut sender, ms(0));
    reply(&mut sender, ms(20), 0, ReplyContent::Handshake { number: 0 });
    let (packets, _) = reply(&mut sender, ms(60), 1, ReplyContent::PathResponse { number: 0 });
    assert_eq!(chunks(&packets), (10..13).map(|chunk| (1, chunk)).collect::<Vec<_>>());
    reply(&mut sender, ms(61), 0, ack(0, &[(0, 9)]));
    // Path 1 is silent for 40 + 4 * 20 + 25 ms. Path 0 carries its data.
    let (packets, _) = timeout(&mut sender, ms(60 + 145));
    assert_eq!(chunks(&packets), [(1, 10), (1, 11), (0, 10), (0, 11), (0, 12)]);
    reply(&mut sender, ms(225), 0, ack(0, &[(0, 12)]));
    let (packets, _) = timeout(&mut sender, ms(205 + 290));
    assert_eq!(packets.iter().map(|packet| (packet.path, packet.content)).collect::<Vec<_>>(), [(1, Content::Ping)]);
    // Five packets were half of the window, six are more.
    reply(&mut sender, ms(500), 1, ack(1, &[(0, 5)]));
    assert_eq!(sender.paths().nth(1).expect("two paths").decision.cwnd, 10 + 6);
}

/// Reno, and the progress of acknowledgements that it gets: newly delivered packets, and those of Linux's `pkts_acked`.
#[derive(Debug)]
struct ProgressRecorder(Box<dyn Controller>, Arc<Mutex<Vec<(u32, u32)>>>);

impl Controller for ProgressRecorder {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        if let PathEvent::AckProgress(progress) = event {
            self.1.lock().expect("no panic").push((progress.acked, progress.pkts_acked));
        }
        self.0.on_event(path, event, cx);
    }

    fn decision(&self, path: PathId) -> Decision {
        self.0.decision(path)
    }
}

#[test]
fn the_progress_of_an_acknowledgement_counts_its_packets() {
    let progress = Arc::default();
    let mut sender = sender_with(Box::new(ProgressRecorder(reno(), Arc::clone(&progress))), 1, 100);
    poll(&mut sender, ms(0));
    reply(&mut sender, ms(20), 0, ReplyContent::Handshake { number: 0 });
    reply(&mut sender, ms(40), 0, ack(0, &[(3, 4)])); // packets 0 and 1 are lost
    reply(&mut sender, ms(41), 0, ack(0, &[(3, 6)])); // packet 2 is lost
    reply(&mut sender, ms(42), 0, ack(0, &[(2, 9)])); // packet 2 was late
    assert_eq!(*progress.lock().expect("no panic"), [(2, 2), (2, 2), (4, 4)]);
}

/// RFC 9000, section 4.1.
#[test]
fn flow_control_holds_new_data_but_not_what_was_lost() {
    let mut sender = sender(1, 100);
    sender.max_data = 6;
    poll(&mut sender, ms(0));
    let (packets, _) = reply(&mut sender, ms(20), 0, ReplyContent::Handshake { number: 0 });
    assert_eq!(packets.len(), 6);
    let mut content = ack(0, &[(3, 5)]);
    if let ReplyContent::Ack(ack) = &mut content {
        ack.max_data = 6;
    }
    let (packets, _) = reply(&mut sender, ms(40), 0, content);
    assert_eq!(chunks(&packets), [(0, 0), (0, 1), (0, 2)]);
    assert_eq!(sender.limited_times(ms(40)).receive_window, Span::from_millis(20));
    assert_eq!(sender.limited_times(ms(70)).receive_window, Span::from_millis(50), "it lasts");
}

/// RFC 9002, section 7.3.2: one reduction a recovery period, which ends when a packet sent in it is acknowledged.
#[test]
fn losses_of_one_period_reduce_the_window_once() {
    let mut sender = sender(1, 100);
    poll(&mut sender, ms(0));
    reply(&mut sender, ms(20), 0, ReplyContent::Handshake { number: 0 });
    reply(&mut sender, ms(40), 0, ack(0, &[(3, 3)])); // packet 0 is lost
    reply(&mut sender, ms(41), 0, ack(0, &[(5, 5), (3, 3)])); // 1 and 2
    let path = sender.paths().next().expect("a path");
    assert_eq!((path.counters.recoveries, path.counters.lost), (1, 3));
    let ssthresh = path.decision.ssthresh;
    assert_eq!(ssthresh, 5, "half of ten");
    reply(&mut sender, ms(50), 0, ack(0, &[(5, 9), (3, 3)]));
    assert_eq!(sender.paths[0].sender.ca_state(), control::CaState::Recovery);
    reply(&mut sender, ms(60), 0, ack(0, &[(5, 10), (3, 3)]));
    assert_eq!(sender.paths[0].sender.ca_state(), control::CaState::Open);
    assert_eq!(sender.paths().next().expect("a path").decision.cwnd, 5, "packet 10 was sent in the period");
}

/// An acknowledgement on path 0 that counts a mark.
fn marked_ack(ranges: &[(u64, u64)]) -> ReplyContent {
    let mut content = ack(0, ranges);
    let ReplyContent::Ack(marked) = &mut content else { panic!("an acknowledgement") };
    marked.ce_count = 1;
    content
}

/// A sender of one path with ten packets in flight, of which `ack` declares the first three lost.
fn sender_with_three_losses(ack: ReplyContent) -> Sender {
    let mut sender = sender(1, 1000);
    poll(&mut sender, ms(0));
    reply(&mut sender, ms(20), 0, ReplyContent::Handshake { number: 0 });
    reply(&mut sender, ms(40), 0, ack);
    let status = sender.paths().next().expect("a path");
    assert_eq!((status.counters.lost, status.counters.recoveries), (3, 1), "0, 1 and 2; 3 and 4 are two older");
    sender
}

#[test]
fn a_reduction_is_undone_when_all_that_was_declared_lost_has_arrived() {
    let mut sender = sender_with_three_losses(ack(0, &[(5, 5)]));
    reply(&mut sender, ms(41), 0, ack(0, &[(5, 5), (0, 1)]));
    let status = sender.paths().next().expect("a path");
    assert_eq!((status.counters.undone, status.counters.spurious_losses), (0, 2));
    assert_eq!(status.decision.ssthresh, 5, "Reno halves ten packets");
    reply(&mut sender, ms(42), 0, ack(0, &[(5, 5), (0, 2)]));
    let status = sender.paths().next().expect("a path");
    assert_eq!((status.counters.undone, status.counters.spurious_losses), (1, 3));
    assert!(status.decision.cwnd >= 10 && status.decision.ssthresh >= 1000, "{:?}", status.decision);
}

/// A mark is congestion (RFC 9002, section 7.1), also where the losses next to it turn out false.
#[test]
fn a_reduction_is_not_undone_when_a_packet_of_it_was_marked() {
    for is_marked_first in [true, false] {
        let first = if is_marked_first { marked_ack(&[(5, 5)]) } else { ack(0, &[(5, 5)]) };
        let mut sender = sender_with_three_losses(first);
        reply(&mut sender, ms(41), 0, marked_ack(&[(5, 6), (0, 2)]));
        let status = sender.paths().next().expect("a path");
        assert_eq!((status.counters.undone, status.counters.spurious_losses), (0, 3));
        assert_eq!(status.decision.ssthresh, 5);
    }
}
