//! The closed loop of a situation: our sender, the network and the peer. The events at the sender become the script.

use crate::explain::Variation;
use crate::machine::Machine;
use crate::peer::{Peer, Reaction};
use crate::script::{PeerAck, Script, Write};
use crate::situation::{Network, Situation};
use std::collections::BTreeMap;
use transport::tcp::{Segment, SegmentKind};
use units::RngStream;

/// The maximum duration of a script, microseconds: an unlucky sender backs off for minutes.
const MAX_DURATION_US: u64 = 20_000_000;
/// Time after the last acknowledgement in which sent packets are still compared, microseconds.
const LAST_US: u64 = 1_000_000;
/// Minimum time between two events of a script, microseconds.
const GAP_US: u64 = 173;
/// Greatest jitter of an event, microseconds: no kernel's clock agrees exactly with ours on whether a millisecond has
/// passed.
const JITTER_US: u64 = 97;
/// The time for which a write waits until a small segment before it has left, microseconds.
const RETRY_US: u64 = 20_000;

/// The next instant at which an event may come: not close to a tick, where a kernel's timers may expire before the event or
/// after it.
pub(crate) fn snap(at_us: u64, tick_us: u64) -> u64 {
    let (tick, phase) = (at_us / tick_us * tick_us, at_us % tick_us);
    let (first, last) = (tick_us / 4, tick_us - tick_us / 4);
    if phase > last { tick + tick_us + first } else { tick + phase.max(first) }
}

enum Event {
    /// A segment arrives at the peer, with a CE mark or without.
    Segment(Segment, bool),
    /// The peer's timer of a delayed acknowledgement.
    DelayedAck,
    Window(u64),
    Ack(PeerAck),
    Write(u64),
}

struct Loop<'a> {
    situation: &'a Situation,
    machine: Machine,
    peer: Peer,
    rng: RngStream,
    events: BTreeMap<(u64, u64), Event>,
    serial: u64,
    /// Number of the sender's packets that the network has taken.
    taken: usize,
    /// The time at which the bottleneck is free.
    free_us: u64,
    /// Segments of the current burst of losses that are still to be lost.
    losing: u64,
    /// The time of the latest event at the sender.
    latest_us: u64,
    script: Script,
    segments_written: u64,
    is_tail_small: bool,
}

/// The script of a situation.
///
/// # Errors
/// There is no such algorithm.
pub fn script_of(situation: &Situation) -> Result<Script, String> {
    let setup = &situation.setup;
    let mut machine = Machine::new(setup, &Variation::default())?;
    machine.open(setup);
    let mut it = Loop {
        situation,
        machine,
        peer: Peer::new(setup, situation.acknowledging, situation.first_window()),
        rng: RngStream::named(situation.seed, "network"),
        events: BTreeMap::new(),
        serial: 0,
        taken: 0,
        free_us: 0,
        losing: 0,
        latest_us: setup.established_us,
        script: Script { setup: setup.clone(), writes: Vec::new(), acks: Vec::new(), end_us: 0 },
        segments_written: 0,
        is_tail_small: false,
    };
    let at = |ms: u64| setup.established_us + 1000 * ms;
    situation.writes.iter().for_each(|(ms, bytes)| it.add(at(*ms), Event::Write(*bytes)));
    situation.windows.iter().for_each(|(ms, segments)| it.add(at(*ms), Event::Window(*segments)));
    it.run();
    Ok(it.script)
}

impl Loop<'_> {
    fn add(&mut self, at_us: u64, event: Event) {
        self.serial += 1;
        self.events.insert((at_us, self.serial), event);
    }

    fn run(&mut self) {
        while self.script.acks.len() < self.situation.acks {
            let event_us = self.events.keys().next().map_or(u64::MAX, |key| key.0);
            let at_us = event_us.min(self.machine.deadline());
            if at_us > MAX_DURATION_US {
                break;
            }
            if self.machine.deadline() <= event_us {
                self.machine.run_until(at_us);
            } else if let Some(((at_us, _), event)) = self.events.pop_first() {
                self.handle(at_us, event);
            }
            self.take_sent();
        }
        self.script.end_us = (self.latest_us + LAST_US).min(MAX_DURATION_US);
    }

    fn handle(&mut self, at_us: u64, event: Event) {
        match event {
            Event::Segment(Segment { kind: SegmentKind::WindowProbe, .. }, _) => {
                let ack = self.peer.acknowledge(at_us, None);
                self.send_ack(at_us, ack);
            }
            Event::Segment(segment, is_marked) => match self.peer.receive(at_us, &segment, is_marked) {
                Reaction::Now(ack) => self.send_ack(at_us, ack),
                Reaction::Delayed => self.add(at_us + self.situation.acknowledging.delay_us, Event::DelayedAck),
            },
            Event::DelayedAck => {
                if let Some(ack) = self.peer.acknowledge_delayed(at_us) {
                    self.send_ack(at_us, ack);
                }
            }
            Event::Window(segments) => {
                let ack = self.peer.change_window(at_us, segments);
                self.send_ack(at_us, ack);
            }
            Event::Ack(_) => self.at_sender(at_us, event),
            Event::Write(bytes) if self.is_tail_small && self.has_unsent() => {
                self.add(at_us + RETRY_US, Event::Write(bytes));
            }
            Event::Write(_) => self.at_sender(at_us, event),
        }
    }

    /// An event arrives at the sender, as soon as one may.
    fn at_sender(&mut self, at_us: u64, event: Event) {
        let allowed_us = snap(at_us.max(self.latest_us + GAP_US), self.situation.setup.tick_us);
        if allowed_us > at_us {
            let jitter_us = self.jitter();
            return self.add(allowed_us + jitter_us, event);
        }
        self.latest_us = at_us;
        match event {
            Event::Ack(ack) => {
                let ack = PeerAck { at_us, ..ack };
                self.machine.acknowledge(&ack);
                self.script.acks.push(ack);
            }
            Event::Write(bytes) => {
                let mss = self.situation.setup.mss;
                self.machine.write(at_us, bytes, mss);
                self.script.writes.push(Write { at_us, bytes });
                self.segments_written += bytes.div_ceil(u64::from(mss));
                self.is_tail_small = !bytes.is_multiple_of(u64::from(mss));
            }
            _ => unreachable!("the sender sees writes and acknowledgements"),
        }
    }

    fn has_unsent(&self) -> bool {
        let sent = self.machine.sent.iter().map(|(_, segment)| segment.seq + 1).max();
        sent.unwrap_or(0) < self.segments_written
    }

    /// The network takes the packets that the sender has sent.
    fn take_sent(&mut self) {
        while let Some((at_us, segment)) = self.machine.sent.get(self.taken).copied() {
            self.taken += 1;
            self.forward(at_us, segment);
        }
    }

    fn forward(&mut self, at_us: u64, segment: Segment) {
        let network = &self.situation.network;
        let begin_us = self.free_us.max(at_us);
        if self.losing == 0 && self.rng.chance(network.loss) {
            self.losing = 1 + self.rng.below(network.burst);
        }
        let is_lost = self.losing > 0;
        self.losing = self.losing.saturating_sub(1);
        if is_lost || (begin_us - at_us) / network.service_us > network.queue {
            return;
        }
        self.free_us = begin_us + network.service_us;
        let arrival_us = self.free_us + self.one_way_us(at_us);
        let is_marked = self.situation.setup.ecn && self.rng.chance(network.mark);
        let delay_us = self.lateness(network.late);
        self.add(arrival_us + delay_us, Event::Segment(segment, is_marked));
        if self.rng.chance(network.duplicate) {
            let delay_us = self.rng.below(network.rtt_us);
            self.add(arrival_us + delay_us, Event::Segment(segment, is_marked));
        }
    }

    fn send_ack(&mut self, at_us: u64, ack: PeerAck) {
        let network = &self.situation.network;
        if self.rng.chance(network.ack_loss) {
            return;
        }
        let arrival_us = at_us + self.one_way_us(at_us) + self.lateness(network.ack_late) + self.jitter();
        self.add(arrival_us, Event::Ack(ack));
    }

    fn jitter(&mut self) -> u64 {
        self.rng.below(JITTER_US)
    }

    fn lateness(&mut self, (probability, most_us): (f64, u64)) -> u64 {
        if self.rng.chance(probability) { self.rng.below(most_us) } else { 0 }
    }

    fn one_way_us(&self, at_us: u64) -> u64 {
        let Network { rtt_us, path_change, .. } = &self.situation.network;
        let changed = path_change.filter(|(from_us, _)| at_us >= self.situation.setup.established_us + from_us);
        changed.map_or(*rtt_us, |(_, rtt_us)| rtt_us) / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::play;

    #[test]
    fn a_script_gives_what_its_closed_loop_gave() {
        for seed in 0..50 {
            let situation = Situation::drawn(
                seed,
                "cubic",
                crate::Kernel { release: control::LinuxRelease::V6_1, tick_us: 4000, max_header: 256 },
            );
            let script = script_of(&situation).unwrap();
            let recording = play(&script).unwrap();
            assert_eq!(recording.states.len(), script.acks.len());
            assert_eq!(play(&script).unwrap(), recording, "seed {seed}");
            // A peer acknowledges only segments that were sent: the script fits the sender that plays it.
            for ack in &script.acks {
                let sent = recording.sent.iter().filter(|sent| sent.at_us < ack.at_us).map(|sent| sent.seq + 1).max();
                assert!(ack.ack <= sent.unwrap_or(0), "seed {seed}: {ack:?}");
            }
        }
    }

    #[test]
    fn events_keep_away_from_ticks() {
        for at_us in 0..40_000 {
            let snapped = snap(at_us, 4000);
            assert!(snapped >= at_us && (1000..=3000).contains(&(snapped % 4000)) && snapped - at_us <= 2000);
        }
    }
}
