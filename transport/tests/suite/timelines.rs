//! Timelines that packetdrill has measured on Linux 6.1.176 and 6.18: acknowledgements at given times, and what the sender then
//! does.

use crate::tcp_connection::{Options, sender_with};
use control::registry;
use ropewalk_transport::tcp::sender::{Input, Output};
use ropewalk_transport::tcp::{Ack, SackBlocks, SinglePathSender};
use std::collections::BTreeMap;
use units::{Instant, Span};

/// A sender and its segments so far, at a time.
struct Timeline {
    sender: SinglePathSender,
    now: Instant,
    sent: Vec<u64>,
}

impl Timeline {
    /// A CUBIC sender that has written so many segments, with an RTT sample of 100 ms from the handshake, at 0.2 s.
    fn new(options: Options) -> Self {
        let entry = registry::find("cubic").expect("registered");
        let controller = entry.controller(&BTreeMap::new()).expect("without parameters");
        let mut timeline = Self { sender: sender_with(options, controller), now: Instant::ZERO, sent: Vec::new() };
        timeline.handle(100, Input::Connect);
        timeline.handle(200, Input::Ack(&Ack { syn: true, receive_window: 102_400, ..Ack::default() }));
        timeline.handle(200, Input::Write { segments: options.segments, last_is_small: false });
        timeline
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
                Output::Transmit(segment) => self.sent.push(segment.seq),
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
        self.handle(ms, Input::Ack(&Ack { ack, receive_window: 102_400, sack_blocks, ..Ack::default() }));
        (self.sender.decision().cwnd, self.sent.len() - before)
    }
}

#[test]
fn recovery_that_the_reordering_timer_enters_sends_as_the_kernel_does() {
    let mut timeline = Timeline::new(Options { segments: 20, timestamps: false, ..Options::default() });
    assert_eq!(timeline.sack(300, 0, (1, 2)), (10, 1));
    assert_eq!(timeline.sack(302, 0, (1, 3)), (10, 1));
    timeline.run(345);
    assert_eq!((timeline.sent.last(), timeline.sender.decision().ssthresh), (Some(&0), 7), "the timer");
    let steps = [(360, 4), (370, 5), (380, 6), (390, 7)].map(|(ms, end)| timeline.sack(ms, 0, (1, end)));
    assert_eq!(steps, [(10, 1), (10, 1), (9, 0), (9, 1)]);
}
