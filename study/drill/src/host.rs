//! The machines of one host in virtual time, and the packets that they have sent.

use crate::packet::Packet;
use crate::segments::Segments;
use crate::setup::Setup;
use control::Controller;
use std::collections::VecDeque;
use transport::tcp::sender::{Input, Output};
use transport::tcp::{Ack, Receiver, Segment, SegmentKind, SinglePathSender};
use units::{INFINITE_SSTHRESH, Instant, RngStream, Span};

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Microseconds since the script began.
    pub at: u64,
    pub what: What,
    /// TSval, milliseconds of the machine.
    pub tsval: u32,
}

/// The content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Syn,
    /// The third packet of the handshake.
    HandshakeAck,
    /// Bytes from the first number up to, but not including, the second; whether CWR is set.
    Data(u64, u64, bool),
    /// A probe of a closed window, before this byte.
    Probe(u64),
    Ack(Ack),
}

/// The host under test.
#[derive(Debug)]
pub(crate) struct Host {
    /// Microseconds since the script began.
    pub now: u64,
    pub sender: SinglePathSender,
    pub receiver: Receiver,
    pub segments: Segments,
    /// Packets that were sent and not yet compared.
    pub sent: VecDeque<Sent>,
    /// The timeline in words, if it is asked for.
    pub timeline: Option<Vec<String>>,
    pub is_established: bool,
    deadline: Instant,
}

impl Host {
    pub(crate) fn new(setup: &Setup, controller: Box<dyn Controller>, is_verbose: bool) -> Self {
        Self {
            now: 0,
            sender: SinglePathSender::new(setup.sender, controller, RngStream::named(1, "drill")),
            receiver: Receiver::new(setup.receiver),
            segments: Segments::new(setup.mss),
            sent: VecDeque::new(),
            timeline: is_verbose.then(Vec::new),
            is_established: false,
            deadline: Instant::NEVER,
        }
    }

    /// The current time, microseconds.
    pub(crate) fn instant(&self) -> Instant {
        Instant::ZERO + Span::from_micros(self.now)
    }

    /// Adds a line to the timeline.
    pub(crate) fn tell(&mut self, text: impl FnOnce(&Self) -> String) {
        if let Some(mut timeline) = self.timeline.take() {
            timeline.push(format!("{} {}", seconds(self.now), text(self)));
            self.timeline = Some(timeline);
        }
    }

    /// Handles an input of the sender, and sends the packets that follow.
    pub(crate) fn handle(&mut self, input: Input<'_>) {
        self.sender.handle(self.instant(), input);
        self.poll();
    }

    fn poll(&mut self) {
        loop {
            match self.sender.poll(self.instant()) {
                Output::Transmit(segment) => self.transmit(&segment),
                Output::WaitUntil(deadline) => return self.deadline = deadline,
            }
        }
    }

    fn transmit(&mut self, segment: &Segment) {
        let [start, end] = [segment.seq, segment.seq + 1].map(|segment| self.segments.start(segment));
        let what = match segment.kind {
            SegmentKind::Syn => What::Syn,
            SegmentKind::HandshakeAck => What::HandshakeAck,
            SegmentKind::WindowProbe => What::Probe(start),
            SegmentKind::Data => What::Data(start, end, segment.cwr),
        };
        if self.is_established && self.receiver.deadline() < Instant::NEVER {
            self.receiver.piggyback(self.instant());
        }
        let again = if segment.retransmission { " again" } else { "" };
        self.tell(|_| format!("> {}{again}", describe(&what)));
        self.sent.push_back(Sent { at: self.now, what, tsval: segment.tsval });
    }

    /// Called when the handshake is complete: the peer offers `window` bytes.
    pub(crate) fn establish(&mut self, window: u64, tsval: u32) {
        self.is_established = true;
        self.handle(Input::Ack(&Ack { syn: true, receive_window: window, tsval, ..Ack::default() }));
        let syn =
            Segment { kind: SegmentKind::Syn, seq: 0, tsval, tsecr: 0, cwr: false, retransmission: false, psh: false };
        for kind in [SegmentKind::Syn, SegmentKind::HandshakeAck] {
            self.receiver.handle(self.instant(), &Segment { kind, ..syn }, false);
        }
    }

    /// Called when whole segments of data arrive.
    pub(crate) fn receive(&mut self, packet: &Packet, mss: u64) {
        let tsval = packet.options.as_ref().and_then(|options| options.timestamps).map_or(0, |(tsval, _)| tsval);
        let (cwr, psh) = (packet.has('W'), packet.has('P'));
        let seq = (packet.seq - 1) / mss;
        let first = Segment { kind: SegmentKind::Data, seq, tsval, tsecr: 0, cwr, retransmission: false, psh };
        let now = self.instant();
        let ack = match (packet.len / mss) as u32 {
            1 => self.receiver.handle(now, &first, packet.is_ce),
            segments => self.receiver.handle_super_segment(now, &first, segments, packet.is_ce),
        };
        self.send_ack(ack);
        self.run_until(self.now);
    }

    fn send_ack(&mut self, ack: Option<Ack>) {
        let Some(ack) = ack else { return };
        self.tell(|_| format!("> {}", describe(&What::Ack(ack))));
        self.sent.push_back(Sent { at: self.now, what: What::Ack(ack), tsval: ack.tsval });
    }

    /// The next timer of sender or receiver, microseconds.
    fn next_timer(&self) -> u64 {
        let deadline = self.deadline.min(self.receiver.deadline());
        if deadline == Instant::NEVER { u64::MAX } else { deadline.0.div_ceil(1000) }
    }

    fn fire_timers(&mut self) {
        self.now = self.now.max(self.next_timer());
        let now = self.instant();
        if self.receiver.deadline() <= now {
            let ack = self.receiver.on_timeout(now);
            self.send_ack(ack);
        }
        if self.deadline <= now {
            self.handle(Input::Timeout);
        }
    }

    /// Lets all timers up to this time expire.
    pub(crate) fn run_until(&mut self, micros: u64) {
        while self.next_timer() <= micros {
            self.fire_timers();
        }
        self.now = self.now.max(micros);
    }

    /// The next packet that is sent up to this time, if any.
    pub(crate) fn next_sent(&mut self, until: u64) -> Option<Sent> {
        while self.sent.is_empty() && self.next_timer() <= until {
            self.fire_timers();
        }
        self.sent.front().copied()
    }

    /// The sender's state in words.
    pub(crate) fn state(&self) -> String {
        let (decision, pipe) = (self.sender.decision(), self.sender.pipe());
        let ssthresh = match decision.ssthresh {
            INFINITE_SSTHRESH => "infinite".to_owned(),
            ssthresh => ssthresh.to_string(),
        };
        format!(
            "{:?} cwnd {} ssthresh {ssthresh} out {} sacked {} lost {} retransmitted {}",
            self.sender.ca_state(),
            decision.cwnd,
            pipe.packets_out,
            pipe.sacked_out,
            pipe.lost_out,
            pipe.retrans_out
        )
    }
}

/// A packet in words.
pub(crate) fn describe(what: &What) -> String {
    match what {
        What::Syn => "SYN".to_owned(),
        What::HandshakeAck => "ACK of the handshake".to_owned(),
        What::Data(start, end, _) => format!("{start}:{end}({})", end - start),
        What::Probe(byte) => format!("window probe before {byte}"),
        What::Ack(ack) => {
            let blocks: Vec<String> = ack.sack_blocks.iter().map(|(start, end)| format!("{start}-{end}")).collect();
            let sack =
                if blocks.is_empty() { String::new() } else { format!(", SACK of segments {}", blocks.join(" ")) };
            format!("ACK of {} segments{sack}", ack.ack)
        }
    }
}

/// Microseconds as seconds.
pub(crate) fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}
