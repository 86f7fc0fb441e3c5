//! Timelines that packetdrill has measured on Linux 6.1.176 and 6.18: acknowledgements at given times, and what the sender then
//! does.

use crate::tcp_connection::{Options, sender_config};
use control::registry;
use ropewalk_transport::tcp::sender::{Input, Output, SenderConfig};
use ropewalk_transport::tcp::{Ack, SackBlocks, SegmentKind, SinglePathSender};
use std::collections::BTreeMap;
use units::{Instant, RngStream, Span};

const WINDOW: u64 = 102_400;

/// A configuration without timestamps.
fn config() -> SenderConfig {
    sender_config(Options { timestamps: false, ..Options::default() })
}

/// A sender and its segments so far, at a time.
struct Timeline {
    sender: SinglePathSender,
    now: Instant,
    sent: Vec<u64>,
}

impl Timeline {
    /// A CUBIC sender that has written so many segments, with an RTT sample of 100 ms from the handshake, at 0.2 s.
    fn new(config: SenderConfig, segments: u64) -> Self {
        let entry = registry::find("cubic").expect("registered");
        let controller = entry.controller(&BTreeMap::new()).expect("without parameters");
        let sender = SinglePathSender::new(config, controller, RngStream::named(1, "timeline"));
        let mut timeline = Self { sender, now: Instant::ZERO, sent: Vec::new() };
        timeline.handle(100, Input::Connect);
        timeline.handle(200, Input::Ack(&Ack { syn: true, receive_window: WINDOW, ..Ack::default() }));
        timeline.write(200, segments);
        timeline
    }

    fn write(&mut self, ms: u64, segments: u64) {
        self.run(ms);
        self.handle(ms, Input::Write { segments, lacking: 0 });
    }

    /// An acknowledgement arrives.
    fn ack(&mut self, ms: u64, ack: u64) {
        self.run(ms);
        self.handle(ms, Input::Ack(&Ack { ack, receive_window: WINDOW, ..Ack::default() }));
    }

    /// The machine's own timers, and then this input at `ms`.
    fn handle(&mut self, ms: u64, input: Input<'_>) {
        self.run(ms);
        self.sender.handle(self.now, input);
        self.run(ms);
    }

    fn run(&mut self, ms: u64) {
        loop {
            match self.sender.poll(self.now) {
                Output::Transmit(segment) if segment.kind == SegmentKind::Data => self.sent.push(segment.seq),
                Output::Transmit(_) => {}
                Output::WaitUntil(timer) if timer > Instant::ZERO + Span::from_millis(ms) => break,
                Output::WaitUntil(timer) => {
                    self.now = self.now.max(timer);
                    self.sender.handle(self.now, Input::Timeout);
                }
            }
        }
        self.now = Instant::ZERO + Span::from_millis(ms);
    }

    /// An acknowledgement with a SACK block arrives. Returns cwnd and the number of segments that leave.
    fn sack(&mut self, ms: u64, ack: u64, block: (u64, u64)) -> (u32, usize) {
        self.run(ms);
        let before = self.sent.len();
        let mut sack_blocks = SackBlocks::default();
        sack_blocks.push(block);
        self.handle(ms, Input::Ack(&Ack { ack, receive_window: WINDOW, sack_blocks, ..Ack::default() }));
        (self.sender.decision().cwnd, self.sent.len() - before)
    }
}

#[test]
fn recovery_that_the_reordering_timer_enters_sends_as_the_kernel_does() {
    let mut timeline = Timeline::new(config(), 20);
    assert_eq!(timeline.sack(300, 0, (1, 2)), (10, 1));
    assert_eq!(timeline.sack(302, 0, (1, 3)), (10, 1));
    timeline.run(345);
    assert_eq!((timeline.sent.last(), timeline.sender.decision().ssthresh), (Some(&0), 7), "the timer");
    let steps = [(360, 4), (370, 5), (380, 6), (390, 7)].map(|(ms, end)| timeline.sack(ms, 0, (1, end)));
    assert_eq!(steps, [(10, 1), (10, 1), (9, 0), (9, 1)]);
}

/// Linux 6.1 (`tcp_is_sackblock_valid`): ten segments are out, and the first is lost.
#[test]
fn a_sack_block_beyond_what_was_sent_does_not_count_at_all() {
    let sacked = |block| {
        let mut timeline = Timeline::new(config(), 10);
        timeline.sack(300, 0, block);
        timeline.sender.pipe().sacked_out
    };
    assert_eq!([(1, 10), (1, 11), (0, 5)].map(sacked), [9, 0, 0]);
}

/// RFC 2861, and Linux's `tcp_slow_start_after_idle=0`, which busy servers set.
#[test]
fn an_idle_sender_keeps_its_window_where_slow_start_after_idle_is_off() {
    let cwnd = |slow_start_after_idle| {
        let mut timeline = Timeline::new(SenderConfig { slow_start_after_idle, ..config() }, 10);
        timeline.ack(300, 10);
        timeline.write(1400, 20);
        (timeline.sender.decision().cwnd, timeline.sent.len())
    };
    assert_eq!([cwnd(true), cwnd(false)], [(10, 20), (20, 30)]);
}

/// RFC 8985 section 7: a probe after two round trips; without it the timeout of 300 ms, which the handshake's RTT gives.
#[test]
fn without_tail_loss_probes_the_timeout_repairs_a_tail() {
    let outcome = |early_retrans| {
        let mut timeline = Timeline::new(SenderConfig { early_retrans, ..config() }, 4);
        timeline.run(460);
        let probed = timeline.sender.counters();
        timeline.run(560);
        let counters = timeline.sender.counters();
        ((probed.tlp_probes, probed.timeouts), counters.tlp_probes + counters.timeouts)
    };
    assert_eq!([outcome(true), outcome(false)], [((1, 0), 1), ((0, 0), 1)]);
}

/// Linux 6.18 writes 61000 bytes of 300000 with `TCP_NOTSENT_LOWAT` 30000: the first buffer, half of the window, whose first ten
/// segments leave and make room for ten more; and as much with the default send buffer.
#[test]
fn an_application_writes_as_much_as_the_send_buffer_and_the_unsent_data_allow() {
    let notsent = |initial_send_buffer, notsent_lowat| {
        let config = SenderConfig { tso: true, initial_send_buffer, notsent_lowat, ..config() };
        Timeline::new(config, 300).sender.notsent_bytes()
    };
    assert_eq!(notsent(2 << 20, u64::MAX), 290_000, "`SO_SNDBUF`: all is written at once");
    assert_eq!(notsent(2 << 20, 30_000), 51_000);
    assert_eq!(notsent(16 << 10, u64::MAX), 51_000);
}

/// Linux `tcp_limit_reno_sacked`, `tcp_check_reno_reordering`: a partial acknowledgement leaves more duplicate
/// acknowledgements than packets that can have caused them.
#[test]
fn without_sack_a_late_partial_acknowledgement_shows_the_reordering_degree() {
    let mut timeline = Timeline::new(SenderConfig { sack: false, ..config() }, 10);
    // The first opens the window and is no duplicate.
    (0..10).for_each(|ms| timeline.ack(300 + ms, 0));
    assert_eq!(timeline.sender.reordering(), 3);
    timeline.ack(320, 2);
    assert_eq!(timeline.sender.reordering(), 10, "8 packets outstanding and 2 acknowledged");
}

/// Linux `tcp_is_sackblock_valid`: a block of anything but outstanding data above the latest acknowledgement says nothing, even
/// where a part of it is such data. Situation 170 of `cargo xtask kernel-drill --congestion bbr`.
#[test]
fn a_sack_block_that_is_not_wholly_of_outstanding_data_is_ignored() {
    let sacked = |ack, block| {
        let mut timeline = Timeline::new(config(), 10);
        timeline.ack(300, 4);
        timeline.sack(310, ack, block);
        timeline.sender.pipe().sacked_out
    };
    assert_eq!([(5, 10), (9, 11), (4, 6), (3, 6)].map(|block| sacked(4, block)), [5, 0, 0, 0]);
    assert_eq!([(5, 6), (3, 6)].map(|block| sacked(2, block)), [1, 0], "of an acknowledgement that was overtaken");
}
