//! The bridge against `transport`'s machine of multipath QUIC: it gets reports of the machine's packets as from a stack,
//! and its controller must get the same events at the same times, one by one.

use control::{AlgorithmEntry, Constructor, Context, Controller, Decision, PathEvent, PathInfo, Properties};
use ropewalk_bridge::{Algorithm, Path, StackLimits};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use transport::quic::{
    ConnectionConfig, Content, Input, Output, Packet, PathAck, PathConfig, Receiver, ReceiverConfig, Reply,
    ReplyContent, Sender,
};
use units::{Instant, PathId, RngStream, Span};

/// Payload of a packet, which is all that the machine counts.
const BYTES: u16 = 1432;
/// The bottleneck of each path: a packet per millisecond, and 20 ms to the receiver and back.
const INTERVAL: Span = Span::from_millis(1);
const DELAY: Span = Span::from_millis(20);

type Events = Arc<Mutex<Vec<(Instant, PathId, PathEvent)>>>;

/// Records the events that its algorithm gets, without what no stack tells: the RTT of a path's validation, one-way delays,
/// and when the pacer lets the next packet go.
#[derive(Debug)]
struct Recorder {
    algorithm: Box<dyn Controller>,
    events: Events,
}

impl Controller for Recorder {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        let event = match event.clone() {
            PathEvent::PathUp(info) => PathEvent::PathUp(PathInfo { rtt: None, ..info }),
            PathEvent::AckProgress(mut progress) => {
                progress.one_way_delay = None;
                PathEvent::AckProgress(progress)
            }
            PathEvent::Ack(mut sample) => {
                (sample.one_way_delay, sample.until_departure) = (None, Span::ZERO);
                PathEvent::Ack(sample)
            }
            event => event,
        };
        self.algorithm.on_event(path, &event, cx);
        self.events.lock().expect("no panic").push((cx.now, path, event));
    }

    fn decision(&self, path: PathId) -> Decision {
        self.algorithm.decision(path)
    }

    fn requests_reduction(&self, path: PathId) -> bool {
        self.algorithm.requests_reduction(path)
    }
}

fn recorder(name: &str, events: &Events) -> Recorder {
    let entry = control::registry::find(name).expect("built in");
    Recorder { algorithm: entry.controller(&BTreeMap::new()).expect("no parameters"), events: Arc::clone(events) }
}

/// What happens to the packets on their way.
#[derive(Clone, Copy, Default)]
struct Network {
    paths: usize,
    /// Packets that the bottleneck's queue takes, and from which on it marks.
    queue: u64,
    marks_from: Option<u64>,
    /// One of so many acknowledgements is lost.
    loses_ack_of: Option<u64>,
    /// The time in which every packet of the last path is lost.
    outage: Option<(Span, Span)>,
    /// Whether reports have no packet numbers, and for losses only their bytes.
    is_numberless: bool,
}

impl Network {
    /// A packet number as the bridge gets it.
    fn number(&self, number: u64) -> Option<u64> {
        (!self.is_numberless).then_some(number)
    }
}

enum Arrival {
    Packet(Packet, bool),
    Reply(Reply),
}

struct World {
    network: Network,
    machine: Sender,
    receiver: Receiver,
    bridge: Vec<Path>,
    group: ropewalk_bridge::Group,
    /// Packets in flight as the machine counts them, by path and number.
    in_flight: BTreeMap<(u16, u64), Instant>,
    ce_counts: Vec<u32>,
    persistent: Vec<u64>,
    /// When each path's bottleneck has sent what it has.
    free_at: Vec<Instant>,
    arrivals: BTreeMap<(Instant, u64), Arrival>,
    count: u64,
    acks: u64,
    unsent: u64,
}

impl World {
    fn new(name: &'static str, network: Network, machine_events: &Events, bridge_events: &Events) -> Self {
        let config = ConnectionConfig {
            paths: vec![PathConfig::default(); network.paths],
            chunk_bytes: BYTES.into(),
            packet_bytes: 1500,
            initial_window: 10,
            cwnd_clamp: PathInfo::DEFAULT.cwnd_clamp,
            pacing: false,
            handshake: false,
            tick: PathInfo::DEFAULT.tick,
            adaptive_loss_thresholds: false,
            undo: true,
            initial_max_data: u64::MAX,
        };
        let scheduler = schedule::find("minrtt").expect("built in").scheduler(&[], 0, &BTreeMap::new());
        let controller = Box::new(recorder(name, machine_events));
        // The group draws from the same stream as the machine's controller.
        let rng = RngStream::named(1, "controller");
        let machine = Sender::new(config, controller, rng, scheduler.expect("no parameters"));
        let window = u64::MAX / 2;
        let receiver =
            Receiver::new(ReceiverConfig { paths: network.paths as u16, streams: 1, window, quick_ack: true });
        let group = algorithm(name, bridge_events).group(1);
        Self {
            network,
            machine,
            receiver,
            bridge: vec![group.path(Instant::ZERO, BYTES)],
            group,
            in_flight: BTreeMap::new(),
            ce_counts: vec![0; network.paths],
            persistent: vec![0; network.paths],
            free_at: vec![Instant::ZERO; network.paths],
            arrivals: BTreeMap::new(),
            count: 0,
            acks: 0,
            unsent: 0,
        }
    }

    fn schedule(&mut self, at: Instant, arrival: Arrival) {
        self.count += 1;
        self.arrivals.insert((at, self.count), arrival);
    }

    fn handle(&mut self, now: Instant, input: Input<'_>) -> Instant {
        self.machine.handle(now, input);
        let acked = match input {
            Input::Reply(Reply { content: ReplyContent::Ack(ack), .. }) => Some(ack),
            Input::Reply(Reply { content: ReplyContent::PathResponse { .. }, .. }) => {
                self.bridge.push(self.group.path(now, BYTES));
                None
            }
            _ => None,
        };
        self.tell_bridge(now, acked);
        loop {
            match self.machine.poll(now) {
                Output::Transmit(packet) => self.send(now, packet),
                Output::WaitUntil(deadline) => return deadline,
            }
        }
    }

    /// Tells the bridge what a stack tells its controller: acknowledged packets, then lost ones, then marks.
    fn tell_bridge(&mut self, now: Instant, ack: Option<&PathAck>) {
        if let Some(ack) = ack {
            self.tell_acks(now, ack);
        }
        let mut newest = Instant::ZERO;
        for lost in self.machine.declared_lost() {
            let sent = self.in_flight.remove(&(lost.path, lost.number)).expect("it was in flight");
            newest = newest.max(sent);
            if !self.network.is_numberless {
                self.bridge[usize::from(lost.path)].on_lost(now, lost.number);
            }
        }
        let lost = self.machine.declared_lost().len() as u64;
        if self.network.is_numberless && lost > 0 {
            self.bridge[0].on_lost_bytes(now, newest, lost * u64::from(BYTES));
        }
        for (index, path) in self.machine.paths().enumerate() {
            let persistent = path.counters.persistent_congestions;
            if std::mem::replace(&mut self.persistent[index], persistent) < persistent {
                self.bridge[index].on_persistent_congestion(now);
            }
        }
        if let Some(ack) = ack {
            let index = usize::from(ack.path);
            let marks = ack.ce_count - std::mem::replace(&mut self.ce_counts[index], ack.ce_count);
            if marks > 0 {
                self.bridge[index].on_ce(now, marks);
            }
        }
    }

    fn tell_acks(&mut self, now: Instant, ack: &PathAck) {
        let path = &self.bridge[usize::from(ack.path)];
        path.set_app_limited(self.unsent == 0);
        let in_flight = &mut self.in_flight;
        for (start, end) in ack.ranges.iter().collect::<Vec<_>>().into_iter().rev() {
            let acked: Vec<_> = in_flight.range((ack.path, start)..=(ack.path, end)).map(|(key, _)| *key).collect();
            for key in acked {
                let sent = in_flight.remove(&key).expect("just found");
                path.on_acked(now, sent, self.network.number(key.1));
            }
        }
        let packets = in_flight.range((ack.path, 0)..=(ack.path, u64::MAX)).count() as u64;
        path.on_acks_end(packets * u64::from(BYTES));
    }

    fn send(&mut self, now: Instant, packet: Packet) {
        if let Content::Stream { is_again, .. } = packet.content {
            self.unsent -= u64::from(!is_again);
        }
        if !matches!(packet.content, Content::PathChallenge) {
            self.in_flight.insert((packet.path, packet.number), now);
            self.bridge[usize::from(packet.path)].on_sent(now, BYTES.into(), self.network.number(packet.number));
        }
        let free_at = &mut self.free_at[usize::from(packet.path)];
        let queued = free_at.since(now).0 / INTERVAL.0;
        let is_last = usize::from(packet.path) == self.network.paths - 1;
        let is_out = is_last
            && self.network.outage.is_some_and(|(from, to)| {
                let time = now.since(Instant::ZERO);
                time >= from && time < to
            });
        if queued < self.network.queue && !is_out {
            *free_at = (*free_at).max(now) + INTERVAL;
            let arrival = *free_at + DELAY;
            let is_marked = self.network.marks_from.is_some_and(|queue| queued >= queue);
            self.schedule(arrival, Arrival::Packet(packet, is_marked));
        }
    }

    fn arrive(&mut self, now: Instant, arrival: &Arrival) -> Instant {
        match arrival {
            Arrival::Packet(packet, is_marked) => {
                if let Some(reply) = self.receiver.handle(now, packet, *is_marked) {
                    self.acks += 1;
                    if self.network.loses_ack_of.is_none_or(|one_of| !self.acks.is_multiple_of(one_of)) {
                        self.schedule(now + DELAY, Arrival::Reply(reply));
                    }
                }
                Instant::NEVER
            }
            Arrival::Reply(reply) => self.handle(now, Input::Reply(reply)),
        }
    }

    /// Sends `writes`, each so many chunks at its time, the first with the connection's begin, and runs until `end`.
    fn run(&mut self, writes: &[(Instant, u64)], end: Instant) {
        let mut writes = writes.iter().copied().peekable();
        self.unsent = writes.next().map_or(0, |(_, chunks)| chunks);
        self.machine.handle(Instant::ZERO, Input::Write(self.unsent));
        let mut deadline = self.handle(Instant::ZERO, Input::Connect);
        loop {
            let arrival = self.arrivals.first_key_value().map_or(Instant::NEVER, |((at, _), _)| *at);
            let write = writes.peek().map_or(Instant::NEVER, |(at, _)| *at);
            let now = arrival.min(write).min(deadline);
            if now > end {
                return;
            }
            if now == write {
                let (_, chunks) = writes.next().expect("it is due");
                self.unsent += chunks;
                deadline = self.handle(now, Input::Write(chunks));
            } else if now == arrival {
                let (_, arrival) = self.arrivals.pop_first().expect("it is due");
                let is_reply = matches!(arrival, Arrival::Reply(_));
                let next = self.arrive(now, &arrival);
                deadline = if is_reply { next } else { deadline };
            } else {
                deadline = self.handle(now, Input::Timeout);
            }
        }
    }
}

/// The algorithm, registered once more with a recorder around it.
fn algorithm(name: &'static str, events: &Events) -> Algorithm {
    let events = Arc::clone(events);
    let recorded: &'static str = format!("recorded-{name}").leak();
    let entry = AlgorithmEntry {
        name: recorded,
        aliases: &[],
        title: "an algorithm whose events are recorded",
        source: "this test",
        parameters: &[],
        properties: Properties { code_version: Some("1"), ..Properties::DEFAULT },
        constructor: Constructor::CoupledDyn(Arc::new(move |_| Box::new(recorder(name, &events)))),
    };
    control::registry::register(entry).expect("a new name");
    let stack = StackLimits { name: "a machine", paces: true, counts_marks: true };
    Algorithm::new(recorded, &BTreeMap::new(), stack).expect("registered")
}

/// The events of the machine's controller in ten seconds, after comparison with those of the bridge's. Chunks are written
/// at times in milliseconds.
fn compare(name: &'static str, network: Network, writes: &[(u64, u64)]) -> Vec<PathEvent> {
    let (machine_events, bridge_events) = (Events::default(), Events::default());
    let at = |ms: u64| Instant::ZERO + Span::from_millis(ms);
    let mut world = World::new(name, network, &machine_events, &bridge_events);
    let writes: Vec<_> = writes.iter().map(|(ms, chunks)| (at(*ms), *chunks)).collect();
    world.run(&writes, at(10_000));
    // The report of the last acknowledgement may be open.
    world.bridge.iter().for_each(|path| assert!(path.window() > 0));
    let [machine, bridge] = [machine_events, bridge_events].map(|events| events.lock().expect("no panic").clone());
    for (index, (expected, found)) in machine.iter().zip(bridge.iter()).enumerate() {
        assert_eq!(expected, found, "{name}, event {index} of {}", machine.len());
    }
    assert_eq!(machine.len(), bridge.len(), "{name}");
    machine.iter().map(|(_, _, event)| event.clone()).collect()
}

fn is_path_up(event: &PathEvent) -> bool {
    matches!(event, PathEvent::PathUp(_))
}

fn count(events: &[PathEvent], is_counted: fn(&PathEvent) -> bool) -> usize {
    events.iter().filter(|event| is_counted(event)).count()
}

/// More than a path carries in the time that is compared. At the end of a transfer the events may differ: no stack tells
/// whether a packet after an idle time repeats data.
const ENDLESS: &[(u64, u64)] = &[(0, 100_000)];

#[test]
fn a_transfer_with_losses_makes_the_same_events() {
    for name in ["reno", "cubic", "vegas", "bbr3-draft"] {
        let network = Network { paths: 1, queue: 30, loses_ack_of: Some(3), ..Network::default() };
        let events = compare(name, network, ENDLESS);
        assert!(count(&events, |event| matches!(event, PathEvent::Ack(_))) > 1000, "{name}");
        assert!(count(&events, |event| matches!(event, PathEvent::Congestion { .. })) > 0, "{name}");
    }
}

#[test]
fn a_stack_that_tells_no_numbers_makes_the_same_events() {
    let network = Network { paths: 1, queue: 30, loses_ack_of: Some(3), is_numberless: true, ..Network::default() };
    for name in ["cubic", "vegas"] {
        compare(name, network, &[(0, 4000)]);
    }
}

#[test]
fn marks_make_the_same_events() {
    for name in ["cubic", "prague"] {
        let network = Network { paths: 1, queue: 60, marks_from: Some(10), ..Network::default() };
        let events = compare(name, network, ENDLESS);
        let is_marked = |event: &PathEvent| matches!(event, PathEvent::Ack(sample) if sample.marked > 0);
        assert!(count(&events, is_marked) > 5, "{name}");
    }
}

#[test]
fn idle_times_and_limits_of_the_application_make_the_same_events() {
    let network = Network { paths: 1, queue: 100, ..Network::default() };
    let events = compare("reno", network, &[(0, 3), (500, 60), (5000, 40), (5020, 5), (9000, 500)]);
    assert_eq!(count(&events, |event| matches!(event, PathEvent::IdleRestart { .. })), 4);
}

#[test]
fn an_outage_makes_the_same_events() {
    let outage = Some((Span::from_millis(300), Span::from_millis(1400)));
    let events = compare("cubic", Network { paths: 1, queue: 100, outage, ..Network::default() }, ENDLESS);
    let is_timeout = |event: &PathEvent| matches!(event, PathEvent::Congestion { cause: control::Cause::Timeout, .. });
    assert_eq!(count(&events, is_timeout), 1, "persistent congestion");
}

#[test]
fn two_coupled_paths_make_the_same_events() {
    for name in ["lia", "olia", "balia", "cmpbbr"] {
        let network = Network { paths: 2, queue: 30, loses_ack_of: Some(4), ..Network::default() };
        let events = compare(name, network, ENDLESS);
        assert_eq!(count(&events, is_path_up), 2, "{name}");
        assert!(count(&events, |event| matches!(event, PathEvent::Congestion { .. })) > 1, "{name}");
    }
}

/// The second path, which has the shorter RTT, is silent, and the first one carries its data. The second is probed by PINGs,
/// two of them after its window was unused for a retransmission timeout.
#[test]
fn pings_make_the_same_events() {
    let outage = Some((Span::from_millis(110), Span::from_millis(1500)));
    let network = Network { paths: 2, queue: 100, outage, ..Network::default() };
    let events = compare("reno", network, &[(0, 11), (120, 1)]);
    assert_eq!(count(&events, |event| matches!(event, PathEvent::ApplicationLimited { .. })), 2);
}
