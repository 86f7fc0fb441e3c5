//! The script of a seed. It is drawn while our receiver plays it, so that the sender keeps to the window, mostly.

use super::machine::Machine;
use super::script::{Arrival, Event, Kind, Script, Setup};
use crate::kernel::Kernel;
use crate::network::snap;
use crate::situation::{HANDSHAKE_US, pick};
use std::collections::BTreeSet;
use units::RngStream;

/// Number of events of a script.
const EVENTS: usize = 100;
/// The maximum duration of a script, microseconds.
const MAX_DURATION_US: u64 = 30_000_000;
/// Time after the last event in which acknowledgements are still compared, microseconds.
const LAST_US: u64 = 1_000_000;
/// Minimum time between two events, microseconds.
const GAP_US: u64 = 173;
/// Greatest jitter of an event, microseconds.
const JITTER_US: u64 = 97;
const BUFFERS: [[u64; 2]; 6] = [
    [131_072, 6 << 20],
    [131_072, 6 << 20],
    [131_072, 131_072],
    [65_536, 262_144],
    [32_768, 32_768],
    [1 << 20, 6 << 20],
];
const RTT_MS: [u64; 7] = [8, 15, 30, 50, 80, 120, 400];
/// Ranges of the time between two events, microseconds.
const PACES: [[u64; 2]; 6] =
    [[173, 400], [173, 900], [1000, 5000], [10_000, 60_000], [60_000, 400_000], [400_000, 3_000_000]];
const LOSS: [f64; 5] = [0.0, 0.0, 0.02, 0.1, 0.3];
const RARE: [f64; 5] = [0.0, 0.0, 0.0, 0.05, 0.15];

struct Sender<'a> {
    rng: &'a mut RngStream,
    setup: Setup,
    machine: Machine,
    rtt_us: u64,
    /// Probabilities: a segment is lost, or late by up to a burst; one arrives again; PSH; a CE mark; a read instead of a
    /// segment.
    loss: f64,
    again: f64,
    push: f64,
    mark: f64,
    read: f64,
    /// The first segment that was never sent, and those before it that have not arrived.
    next: u64,
    missing: BTreeSet<u64>,
    pace: [u64; 2],
}

/// The script of a seed, for a kernel with this tick.
#[must_use]
pub fn script_of(seed: u64, kernel: Kernel) -> Script {
    let Kernel { release, tick_us, .. } = kernel;
    let rng = &mut RngStream::named(seed, "receiver's situation");
    let rtt_us = 1000 * pick(rng, &RTT_MS);
    let syn_us = 1_000_000 + tick_us / 2;
    let setup = Setup {
        release,
        tick_us,
        buffer: pick(rng, &BUFFERS),
        sack: rng.chance(0.8),
        timestamps: rng.chance(0.7),
        ecn: rng.chance(0.25),
        reads_at_once: rng.chance(0.5),
        syn_us,
        established_us: snap(syn_us + rtt_us + HANDSHAKE_US + rng.below(JITTER_US), tick_us),
    };
    let mark = if setup.ecn { pick(rng, &RARE) } else { 0.0 };
    let read = if setup.reads_at_once { 0.0 } else { pick(rng, &[0.03, 0.1, 0.3]) };
    let [loss, again, push] = [pick(rng, &LOSS), pick(rng, &RARE), pick(rng, &[0.0, 0.1, 0.5])];
    let (machine, missing) = (Machine::new(&setup), BTreeSet::new());
    let sender =
        Sender { rng, setup, machine, rtt_us, loss, again, push, mark, read, next: 0, missing, pace: PACES[0] };
    sender.script()
}

impl Sender<'_> {
    fn script(mut self) -> Script {
        let (mut events, mut at_us) = (Vec::new(), self.setup.established_us);
        while events.len() < EVENTS && at_us < MAX_DURATION_US {
            at_us = self.next_time(at_us);
            self.machine.run_until(at_us);
            let event = Event { at_us, kind: self.draw(at_us) };
            self.machine.step(&event);
            events.push(event);
        }
        Script { setup: self.setup, events, end_us: at_us + LAST_US }
    }

    fn next_time(&mut self, at_us: u64) -> u64 {
        if self.rng.chance(0.1) {
            self.pace = pick(self.rng, &PACES);
        }
        let [least, most] = self.pace;
        let at_us = snap(at_us + least.max(GAP_US) + self.rng.below(most - least), self.setup.tick_us);
        at_us + self.rng.below(JITTER_US)
    }

    fn draw(&mut self, at_us: u64) -> Kind {
        let [delivered, unread] = self.machine.delivered();
        let edge = self.edge();
        if unread > 0 && (self.rng.chance(self.read) || self.next >= edge && self.rng.chance(0.3)) {
            return Kind::Read(pick(self.rng, &[1, 2, 5, 20, 1000]));
        }
        if self.rng.chance(self.again) && self.next > 0 {
            let seq = self.next - 1 - self.rng.below(self.next.min(20));
            return self.data(at_us, seq);
        }
        if !self.missing.is_empty() && (self.rng.chance(0.3) || self.next >= edge) {
            let index = if self.rng.chance(0.7) { 0 } else { self.rng.below(self.missing.len() as u64) };
            let seq = self.missing.iter().nth(index as usize).copied().unwrap_or(delivered);
            return self.data(at_us, seq);
        }
        if self.next >= edge && self.rng.chance(0.8) {
            let acknowledged = self.machine.acks.last().map_or(0, |ack| ack.ack);
            return Kind::Probe(Arrival { psh: false, ..self.arrival(at_us, acknowledged) });
        }
        if self.rng.chance(self.loss) {
            let lost = 1 + self.rng.below(3);
            self.missing.extend(self.next..self.next + lost);
            self.next += lost;
        }
        self.data(at_us, self.next)
    }

    /// The first segment beyond the window that the receiver has offered.
    fn edge(&self) -> u64 {
        let mss = u64::from(self.setup.mss());
        self.machine.acks.last().map_or(10, |ack| ack.ack + ack.window / mss)
    }

    fn data(&mut self, at_us: u64, seq: u64) -> Kind {
        self.missing.remove(&seq);
        self.next = self.next.max(seq + 1);
        Kind::Data(self.arrival(at_us, seq))
    }

    fn arrival(&mut self, at_us: u64, seq: u64) -> Arrival {
        let echoed_us = at_us.saturating_sub(self.rtt_us);
        let echo = self.machine.acks.iter().rev().find(|ack| ack.at_us <= echoed_us);
        let echo_us = echo.map_or(self.setup.syn_us, |ack| ack.at_us);
        let stamp = |at_us: u64| if self.setup.timestamps { (at_us / 1000) as u32 } else { 0 };
        let has_echo = self.setup.ecn && self.machine.acks.last().is_some_and(|ack| ack.ece);
        Arrival {
            seq,
            psh: self.rng.chance(self.push),
            is_marked: self.rng.chance(self.mark),
            cwr: has_echo && self.rng.chance(0.2),
            tsval: stamp(at_us),
            tsecr: stamp(echo_us),
        }
    }
}
