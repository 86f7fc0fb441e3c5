//! A flow whose packets are reordered, against a capture of Linux 6.1: one Reno flow over `papers/al-imareen-2024.toml`,
//! 10 ms, without resequencing (`--set tunnel.resequence.window=0p --on uml --capture`), on the device of MPT's tunnel at
//! each end. Every second packet is 10 ms late.

use crate::tcp_connection::{Options, captured_receiver, sender_config};
use ropewalk_transport::tcp::sender::{Input, Output, SenderConfig};
use ropewalk_transport::tcp::{Ack, SackBlocks, Segment, SegmentKind, SinglePathSender};
use std::collections::BTreeMap;
use std::str::FromStr;
use units::{Instant, RngStream, Span};

const MSS: u32 = 1388;
/// Timestamps of the handshake, milliseconds: they must not be zero.
const TIMESTAMP_MS: u32 = 5;

fn lines(capture: &str) -> impl Iterator<Item = Vec<&str>> {
    capture.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(';').collect())
}

fn number<T: FromStr>(field: &str) -> T {
    field.parse().unwrap_or_else(|_| panic!("{field} is no number"))
}

fn blocks(field: &str) -> Vec<(u64, u64)> {
    let bounds = field.split_whitespace().filter_map(|block| block.split_once(':'));
    bounds.map(|(start, end)| (number(start), number(end))).collect()
}

/// The numbers of the data segments that are sent until `end`, timers included.
fn sent_until(sender: &mut SinglePathSender, now: &mut Instant, end: Instant) -> Vec<u64> {
    let mut sent = Vec::new();
    loop {
        match sender.poll(*now) {
            Output::Transmit(segment) if segment.kind == SegmentKind::Data => sent.push(segment.seq),
            Output::Transmit(_) => {}
            Output::WaitUntil(deadline) if deadline < end => {
                *now = deadline;
                sender.handle(deadline, Input::Timeout);
            }
            Output::WaitUntil(_) => break,
        }
    }
    *now = end;
    sent
}

/// A captured sender: its algorithm, its clock of timestamps when the SYN left, milliseconds and microseconds beyond them,
/// microseconds until the SYN-ACK came, what it sent upon that, and what it got later and sent upon each.
struct Captured {
    algorithm: &'static str,
    seed: u64,
    mss: u32,
    /// Where in its timers' ticks of 10 ms it begins.
    timestamp_ms: u32,
    /// The window of the SYN-ACK, bytes.
    first_window: u64,
    syn_us: u64,
    syn_ack_us: u64,
    first_sent: u64,
    capture: &'static str,
}

/// What the captures on the device of a tunnel have in common.
const TUNNEL: Captured = Captured {
    algorithm: "",
    seed: 1,
    mss: MSS,
    timestamp_ms: TIMESTAMP_MS,
    first_window: 65_236,
    syn_us: 0,
    syn_ack_us: 0,
    first_sent: 0,
    capture: "",
};

impl Captured {
    /// Replays what the kernel got, and compares what is sent.
    fn check(&self) -> SinglePathSender {
        let entry = control::registry::find(self.algorithm).expect("registered");
        let controller = entry.controller(&BTreeMap::new()).expect("default");
        let config = SenderConfig { mss: self.mss, tick: Span::from_millis(10), ..sender_config(Options::default()) };
        let mut sender = SinglePathSender::new(config, controller, RngStream::named(self.seed, "replay"));
        let ms = self.timestamp_ms;
        let syn = Instant::ZERO + Span::from_millis(u64::from(ms)) + Span::from_nanos(self.syn_us * 1000 + 500);
        let mut now = syn;
        sender.handle(now, Input::Write { segments: u64::MAX, lacking: 0 });
        sender.handle(now, Input::Connect);
        sent_until(&mut sender, &mut now, syn + Span::from_micros(self.syn_ack_us));
        let ack = Ack { syn: true, receive_window: self.first_window, tsval: 1, tsecr: ms, ..Ack::default() };
        sender.handle(now, Input::Ack(&ack));
        let mut expected: Vec<u64> = (0..self.first_sent).collect();
        for fields in lines(self.capture) {
            let sent = sent_until(&mut sender, &mut now, syn + Span::from_micros(number(fields[0])));
            assert_eq!(sent, expected, "before {fields:?}");
            let mut sack_blocks = SackBlocks::default();
            blocks(fields[4]).into_iter().for_each(|block| sack_blocks.push(block));
            let ack = Ack {
                ack: number(fields[1]),
                receive_window: number(fields[2]),
                tsval: 1 + fields.get(6).map_or(0, |tsval| number::<u32>(tsval)),
                tsecr: number::<u32>(fields[3]) + ms,
                sack_blocks,
                ..Ack::default()
            };
            sender.handle(now, Input::Ack(&ack));
            expected = blocks(fields[5]).into_iter().flat_map(|(start, end)| start..end).collect();
        }
        sender
    }
}

/// RACK, SACK, DSACK and undo, and the send buffer, in which SACKed segments take less (Linux `tcp_shift_skb_data`).
#[test]
fn a_sender_under_reordering_sends_what_the_kernel_sends() {
    let capture = include_str!("../captures/reordered-sender.txt");
    let captured = Captured { algorithm: "reno", syn_us: 561, syn_ack_us: 275, first_sent: 10, capture, ..TUNNEL };
    assert!(captured.check().counters().undone > 10, "of some length");
}

/// Acknowledgements are reordered, too, and a path is down for 8 s: PAWS discards those that were overtaken, and the timer that
/// waits for reordered packets takes the place of the retransmission timer.
#[test]
fn a_sender_whose_acknowledgements_are_reordered_sends_what_the_kernel_sends() {
    let capture = include_str!("../captures/failover-sender.txt");
    let clock = Captured { timestamp_ms: 1, syn_us: 79, syn_ack_us: 20_363, ..TUNNEL };
    let captured = Captured { algorithm: "reno", first_window: 65_160, first_sent: 10, capture, ..clock };
    assert_eq!(captured.check().counters().timeouts, 9, "the kernel's");
}

/// BBR over the same test bed, 100 ms, with resequencing: 11.6 s with Startup, Drain, two ProbeBW, each from a random phase
/// on, which those of this seed are, and ProbeRTT.
#[test]
fn bbr_sends_what_the_kernel_sends() {
    let capture = include_str!("../captures/bbr-sender.txt");
    Captured { algorithm: "bbr", seed: 96, syn_us: 748, syn_ack_us: 276, first_sent: 11, capture, ..TUNNEL }.check();
}

/// H-TCP alone on a path, its first 2 s: the application writes while what it has written leaves, and acknowledgements report
/// several blocks at once that are new.
#[test]
fn htcp_sends_what_the_kernel_sends() {
    let capture = include_str!("../captures/htcp-sender.txt");
    let captured = Captured {
        algorithm: "htcp",
        mss: 1448,
        first_window: 65_160,
        syn_us: 408,
        syn_ack_us: 40_080,
        first_sent: 10,
        capture,
        ..TUNNEL
    };
    assert!(captured.check().counters().retransmitted > 100, "of some length");
}

/// SACK blocks and DSACKs; windows with out-of-order segments, and with segments that fill a hole and are not yet read; a
/// third packet of the handshake that data has overtaken.
#[test]
fn a_receiver_of_reordered_segments_acknowledges_as_the_kernel_does() {
    let syn = Instant::ZERO + Span::from_millis(u64::from(TIMESTAMP_MS)) + Span::from_micros(698);
    let (mut receiver, handshake) = captured_receiver(syn, TIMESTAMP_MS);
    let mut acks = Vec::new();
    for fields in lines(include_str!("../captures/reordered-receiver.txt")) {
        let now = syn + Span::from_micros(number(fields[1]));
        if fields[0] == "A" {
            let ack: Ack = acks.pop().unwrap_or_else(|| panic!("none for {fields:?}"));
            assert_eq!((ack.ack, ack.receive_window), (number(fields[2]), number(fields[3])), "{fields:?}");
            assert_eq!(ack.tsecr, number::<u32>(fields[4]) + TIMESTAMP_MS, "{fields:?}");
            assert_eq!(ack.sack_blocks.iter().collect::<Vec<_>>(), blocks(fields[5]), "{fields:?}");
            continue;
        }
        assert!(acks.is_empty(), "the kernel sent none before {fields:?}");
        let seq: i64 = number(fields[2]);
        let (kind, seq) = if seq < 0 { (SegmentKind::HandshakeAck, 0) } else { (SegmentKind::Data, seq as u64) };
        let [tsval, tsecr] = [3, 4].map(|index| number::<u32>(fields[index]) + TIMESTAMP_MS);
        let segment = Segment { kind, seq, tsval, tsecr, psh: fields[5] == "1", ..handshake };
        acks.extend(receiver.handle(now, &segment, false));
        if receiver.deadline() == now {
            acks.extend(receiver.on_timeout(now));
        }
    }
    assert!(receiver.counters().acks > 1000, "of some length");
}
