//! Our receiver in virtual time.

use super::recording::{Recording, SentAck};
use super::script::{Arrival, Event, Kind, Script, Setup};
use control::Ecn;
use transport::tcp::receiver::ReceiverConfig;
use transport::tcp::{Ack, Receiver, Segment, SegmentKind};
use units::{Instant, Span};

/// A receiver that is driven by hand.
pub(super) struct Machine {
    receiver: Receiver,
    reads_at_once: bool,
    read: u64,
    /// The acknowledgements that it has sent.
    pub(super) acks: Vec<SentAck>,
}

impl Machine {
    /// A receiver whose connection has been established.
    pub(super) fn new(setup: &Setup) -> Self {
        let receiver = if setup.reads_at_once { Receiver::new } else { Receiver::with_reader };
        let receiver = receiver(config(setup));
        let mut machine = Self { receiver, reads_at_once: setup.reads_at_once, read: 0, acks: Vec::new() };
        let stamp = |at_us: u64| if setup.timestamps { (at_us / 1000) as u32 } else { 0 };
        let syn = Arrival { tsval: stamp(setup.syn_us), ..Arrival::default() };
        machine.receiver.handle(instant(setup.syn_us), &segment(SegmentKind::Syn, &syn), false);
        let third = Arrival { tsval: stamp(setup.established_us), tsecr: stamp(setup.syn_us), ..syn };
        machine.receiver.handle(instant(setup.established_us), &segment(SegmentKind::HandshakeAck, &third), false);
        machine
    }

    /// Segments delivered in order, and those of them that have not been read.
    pub(super) fn delivered(&self) -> [u64; 2] {
        let delivered = self.receiver.delivered();
        [delivered, if self.reads_at_once { 0 } else { delivered - self.read }]
    }

    /// An event happens. What is due before it is done first.
    pub(super) fn step(&mut self, event: &Event) {
        self.run_until(event.at_us);
        let now = instant(event.at_us);
        let ack = match &event.kind {
            Kind::Data(arrival) => self.receiver.handle(now, &segment(SegmentKind::Data, arrival), arrival.is_marked),
            Kind::Probe(arrival) => self.receiver.handle(now, &segment(SegmentKind::WindowProbe, arrival), false),
            Kind::Read(segments) => {
                self.read = (self.read + segments).min(self.receiver.delivered());
                self.receiver.read(now, self.read)
            }
        };
        self.record(event.at_us, ack);
        self.run_until(event.at_us);
    }

    /// Lets the timers expire that are due by this time.
    pub(super) fn run_until(&mut self, until_us: u64) {
        while self.receiver.deadline() <= instant(until_us) {
            let at_us = self.receiver.deadline().0.div_ceil(1000);
            let ack = self.receiver.on_timeout(instant(at_us));
            self.record(at_us, ack);
        }
    }

    fn record(&mut self, at_us: u64, ack: Option<Ack>) {
        self.acks.extend(ack.map(|ack| SentAck {
            at_us,
            ack: ack.ack,
            window: ack.receive_window,
            sack: ack.sack_blocks.iter().collect(),
            ece: ack.ece,
        }));
    }
}

/// Plays a script on our machine.
#[must_use]
pub fn play(script: &Script) -> Recording {
    let mut machine = Machine::new(&script.setup);
    script.events.iter().for_each(|event| machine.step(event));
    machine.run_until(script.end_us);
    Recording { acks: machine.acks, late_us: 0 }
}

fn instant(us: u64) -> Instant {
    Instant::ZERO + Span::from_micros(us)
}

fn segment(kind: SegmentKind, arrival: &Arrival) -> Segment {
    let Arrival { seq, psh, cwr, tsval, tsecr, .. } = *arrival;
    Segment { kind, seq, tsval, tsecr, cwr, retransmission: false, psh }
}

/// A receiver as in Linux, with these settings.
fn config(setup: &Setup) -> ReceiverConfig {
    ReceiverConfig {
        mss: setup.mss(),
        option_bytes: 0,
        timestamps: setup.timestamps,
        sack: setup.sack,
        quick_ack: false,
        gro: 1,
        buffer: setup.buffer,
        release: setup.release,
        ecn: Ecn::Classic,
        tick: Span::from_micros(setup.tick_us),
    }
}
