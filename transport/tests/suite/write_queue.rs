//! The write queue against a capture of Linux 6.1: how an endless write is cut into buffers, and these into super-segments.

use crate::tcp_connection::{Options, sender_config};
use ropewalk_transport::tcp::sender::{Input, Output, SenderConfig};
use ropewalk_transport::tcp::{Ack, SegmentKind, SinglePathSender};
use std::collections::BTreeMap;
use units::{Instant, RngStream, Span};

/// Acknowledgements that the kernel got: microseconds after its SYN, segments, window in bytes. One Westwood flow over
/// `papers/al-imareen-2024.toml`, 100 ms, `--on uml --capture`, on the device of MPT's tunnel.
#[rustfmt::skip]
const ACKS: [(u64, u64, u64); 49] = [
    (100_549, 1, 64_256), (100_671, 2, 64_256), (100_671, 3, 63_232), (100_792, 4, 64_256),
    (100_792, 5, 63_232), (100_913, 6, 64_256), (100_913, 7, 63_232), (101_035, 8, 64_256),
    (101_035, 9, 63_232), (101_156, 10, 64_256), (101_156, 11, 63_232), (200_934, 12, 64_256),
    (200_934, 13, 63_232), (201_178, 14, 66_944), (201_178, 15, 69_760), (201_300, 16, 72_576),
    (201_300, 17, 75_264), (201_420, 18, 78_080), (201_420, 19, 77_824), (201_540, 20, 78_976),
    (201_661, 22, 78_976), (201_782, 24, 78_976), (201_904, 26, 78_976), (202_025, 28, 78_976),
    (202_146, 30, 78_976), (202_267, 32, 78_976), (245_543, 33, 78_976), (301_320, 34, 81_792),
    (301_320, 35, 84_480), (301_685, 36, 87_296), (301_685, 37, 90_112), (301_806, 38, 92_928),
    (301_806, 39, 95_616), (301_928, 40, 98_432), (301_928, 41, 101_248), (302_048, 42, 103_936),
    (302_048, 43, 106_752), (302_170, 44, 109_568), (302_170, 45, 112_256), (302_291, 46, 115_072),
    (302_291, 47, 117_888), (302_412, 48, 120_576), (302_412, 49, 123_392), (302_533, 50, 126_208),
    (302_533, 51, 128_896), (302_655, 52, 131_712), (302_655, 53, 134_528), (302_776, 54, 137_344),
    (302_776, 55, 140_032),
];

/// The data that it sent in that time: super-segments `[start, end)`, and whether the last segment has PSH.
#[rustfmt::skip]
const SENT: [(u64, u64, bool); 18] = [
    (0, 5, true), (5, 10, true), (10, 11, false), (11, 12, false), (12, 18, true), (18, 20, true),
    (20, 26, true), (26, 32, true), (32, 34, true), (34, 43, true), (43, 44, false), (44, 58, true),
    (58, 71, true), (71, 74, true), (74, 76, true), (76, 78, true), (78, 96, true), (96, 99, true),
];

/// Between the SYN and the capture's first acknowledgement of data the clock of timestamps ticked at 0.35 ms, 1.35 ms and so
/// on, as the echoes in the capture show.
const SYN: Instant = Instant(1_650_000);

struct Replay {
    sender: SinglePathSender,
    now: Instant,
    /// When each segment was sent, milliseconds.
    sent_ms: Vec<u32>,
    super_segments: Vec<(u64, u64, bool)>,
}

impl Replay {
    /// Handles what is due until `end`.
    fn run_until(&mut self, end: Instant) {
        let mut continues = false;
        loop {
            match self.sender.poll(self.now) {
                Output::Transmit(segment) if segment.kind == SegmentKind::Data => {
                    if !continues {
                        self.super_segments.push((segment.seq, segment.seq, false));
                    }
                    let (start, end, psh) = self.super_segments.last_mut().expect("it has begun");
                    (*end, *psh) = (segment.seq + 1, segment.psh);
                    continues = self.sender.continues_super_segment(&segment, (*end - *start) as u32);
                    self.sent_ms.push(segment.tsval);
                }
                Output::Transmit(_) => {}
                Output::WaitUntil(deadline) if deadline < end => {
                    self.now = deadline;
                    self.sender.handle(deadline, Input::Timeout);
                }
                Output::WaitUntil(_) => break,
            }
        }
        self.now = end;
    }
}

/// Linux `tcp_sendmsg_locked`, `tcp_push_one`, `tcp_sndbuf_expand`, `tcp_tso_should_defer` and `__tcp_transmit_skb`.
#[test]
fn an_endless_write_leaves_in_the_super_segments_of_the_kernel() {
    let westwood =
        control::registry::find("westwood").expect("registered").controller(&BTreeMap::new()).expect("default");
    let config = SenderConfig { mss: 1388, tick: Span::from_millis(10), ..sender_config(Options::default()) };
    let sender = SinglePathSender::new(config, westwood, RngStream::named(1, "replay"));
    let mut replay = Replay { sender, now: SYN, sent_ms: Vec::new(), super_segments: Vec::new() };
    replay.sender.handle(SYN, Input::Write { segments: u64::MAX, lacking: 0 });
    replay.sender.handle(SYN, Input::Connect);
    replay.run_until(SYN + Span::from_micros(276));
    let ack = Ack { syn: true, receive_window: 65_236, tsval: 1, tsecr: 1, ..Ack::default() };
    replay.sender.handle(replay.now, Input::Ack(&ack));
    let mut last_ack = 0;
    for (time, ack, receive_window) in ACKS {
        replay.run_until(SYN + Span::from_micros(time));
        let tsecr = replay.sent_ms[last_ack as usize];
        replay.sender.handle(replay.now, Input::Ack(&Ack { ack, receive_window, tsval: 1, tsecr, ..Ack::default() }));
        last_ack = ack;
    }
    replay.run_until(replay.now + Span::from_micros(1));
    assert_eq!(replay.super_segments, SENT);
}
