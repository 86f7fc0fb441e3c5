//! The engine: takes the earliest component and moves packets.

use crate::agenda::Agenda;
use crate::endpoint::{Endpoint, Kind};
use crate::packet::{Body, Direction, Packet, Parcel, Slab};
use crate::pipe::Verdict;
use crate::series::Sampler;
use crate::topology::Topology;
use crate::tunnel::Tunnel;
use protocol::tcp::sender::{Input, Output};
use protocol::tcp::{Ack, Segment};
use record::{Digest, Work};
use scenario::model::{Change, Experiment, Route};
use std::fmt;
use units::{Instant, Span};

/// Why an experiment cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No algorithm of this name is registered.
    UnknownAlgorithm {
        /// The flow that asks for it.
        flow: String,
        /// The name.
        name: String,
    },
    /// A setting that the algorithm does not take.
    BadParameter {
        /// The flow that sets it.
        flow: String,
        /// The algorithm.
        algorithm: &'static str,
        /// What is wrong.
        source: control::BadParameter,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownAlgorithm { flow, name } => write!(f, "flow {flow}: no congestion control is called `{name}`"),
            Self::BadParameter { flow, algorithm, source } => write!(f, "flow {flow}: {algorithm}: {source}"),
        }
    }
}

impl std::error::Error for Error {}

/// Runs an experiment with a seed.
///
/// # Errors
/// An algorithm or a parameter that the registry does not know.
///
/// # Panics
/// If packets are not conserved: a mistake in the simulator.
pub fn run(experiment: &Experiment, seed: u64) -> Result<record::Run, Error> {
    let mut engine = Engine::new(experiment, seed)?;
    engine.run();
    Ok(crate::summary::summarise(engine, experiment, seed))
}

/// Who an agenda entry belongs to.
#[derive(Clone, Copy, Debug)]
enum Component {
    Pipe(u32),
    Sender(u16),
    Receiver(u16),
    Datagrams(u16),
    Ingress(Direction),
    Egress(Direction),
    Changes,
    Sampler,
}

/// The state of a run.
#[derive(Debug)]
pub(crate) struct Engine {
    pub now: Instant,
    pub end: Instant,
    agenda: Agenda,
    components: Vec<Component>,
    /// What the agenda holds, per component: deadlines that only move away are not set again.
    armed: Vec<Instant>,
    pub topology: Topology,
    pub slab: Slab,
    pub tunnel: Option<Tunnel>,
    pub flows: Vec<Endpoint>,
    first_flow: u32,
    first_tunnel: u32,
    changes: Vec<Change>,
    next_change: usize,
    pub sampler: Option<Sampler>,
    /// Packets that a resequencer hands up, for a moment.
    up: Vec<Parcel>,
    pub digest: Digest,
    pub work: Work,
}

const BOTH: [Direction; 2] = [Direction::Forward, Direction::Reverse];
/// A stray packet, bytes.
const STRAY: u32 = 100;
/// The flow number of packets that belong to nobody.
const NOBODY: u16 = u16::MAX;

impl Engine {
    fn new(experiment: &Experiment, seed: u64) -> Result<Self, Error> {
        let topology = Topology::new(experiment, seed);
        let flows = experiment.flows.iter().map(|flow| Endpoint::new(experiment, flow, seed));
        let mut engine = Self {
            now: Instant::ZERO,
            end: Instant::ZERO + experiment.duration,
            agenda: Agenda::new(),
            components: Vec::new(),
            armed: Vec::new(),
            topology,
            slab: Slab::default(),
            tunnel: experiment.tunnel.as_ref().map(Tunnel::new),
            flows: flows.collect::<Result<_, _>>()?,
            first_flow: 0,
            first_tunnel: 0,
            changes: experiment.events.clone(),
            next_change: 0,
            sampler: experiment.sample.map(|interval| Sampler::new(experiment, interval)),
            up: Vec::new(),
            digest: Digest::default(),
            work: Work::default(),
        };
        engine.register(experiment);
        Ok(engine)
    }

    fn add(&mut self, component: Component, at: Instant) {
        self.components.push(component);
        self.armed.push(Instant::NEVER);
        let id = self.agenda.add();
        self.arm(id, at);
    }

    /// Components in a fixed order: pipes by number, then flows, tunnel, changes, sampler.
    fn register(&mut self, experiment: &Experiment) {
        for pipe in 0..self.topology.pipes.len() as u32 {
            self.add(Component::Pipe(pipe), Instant::NEVER);
        }
        self.first_flow = self.components.len() as u32;
        for flow in 0..self.flows.len() as u16 {
            let start = self.flows[usize::from(flow)].start;
            match self.flows[usize::from(flow)].kind {
                Kind::Tcp(_) => {
                    self.add(Component::Sender(flow), start);
                    self.add(Component::Receiver(flow), Instant::NEVER);
                }
                Kind::Datagrams { .. } => {
                    self.add(Component::Datagrams(flow), start);
                    self.add(Component::Datagrams(flow), Instant::NEVER);
                }
            }
        }
        self.first_tunnel = self.components.len() as u32;
        for direction in BOTH {
            self.add(Component::Ingress(direction), Instant::NEVER);
            self.add(Component::Egress(direction), Instant::NEVER);
        }
        let change = self.changes.first().map_or(Instant::NEVER, |change| change.at);
        self.add(Component::Changes, change);
        if let Some(interval) = experiment.sample {
            self.add(Component::Sampler, Instant::ZERO + interval);
        }
        for _ in 0..experiment.tunnel.as_ref().map_or(0, |tunnel| tunnel.stray_packets) {
            BOTH.iter().for_each(|direction| self.send_stray(*direction));
        }
    }

    /// Makes sure that a component is called no later than `at`.
    fn arm(&mut self, id: u32, at: Instant) {
        if at < self.armed[id as usize] {
            self.armed[id as usize] = at;
            self.agenda.set(id, at);
        }
    }

    fn run(&mut self) {
        while let Some((at, id)) = self.agenda.pop() {
            if at > self.end {
                break;
            }
            debug_assert!(at >= self.now, "time runs forward");
            self.now = at;
            self.armed[id as usize] = Instant::NEVER;
            self.work.events += 1;
            match self.components[id as usize] {
                Component::Pipe(pipe) => self.serve(pipe),
                Component::Sender(flow) => self.wake_sender(flow),
                Component::Receiver(flow) => self.wake_receiver(flow),
                Component::Datagrams(flow) => self.send_datagram(flow),
                Component::Ingress(direction) => self.pump(direction),
                Component::Egress(direction) => self.wake_egress(direction),
                Component::Changes => self.change(),
                Component::Sampler => self.sample(),
            }
        }
        self.now = self.end;
    }

    /// A pipe's head is due.
    fn serve(&mut self, pipe: u32) {
        let taken = self.topology.pipes[pipe as usize].take(self.now);
        self.arm(pipe, self.topology.pipes[pipe as usize].next());
        let Some(parcel) = taken else { return };
        let packet = self.slab.get_mut(parcel.slot);
        packet.hop += 1;
        let (path, direction, hop) = (packet.path, packet.direction, packet.hop);
        self.work.packet_hops += 1;
        self.work.data_packet_hops += u64::from(packet.is_data());
        match self.topology.hop(path, direction, hop) {
            Some(next) => {
                self.offer(next, parcel);
            }
            None => self.arrive(parcel),
        }
    }

    /// Offers a packet to a pipe. False if its queue refused it.
    fn offer(&mut self, pipe: u32, parcel: Parcel) -> bool {
        let slot = parcel.slot;
        let verdict = self.topology.pipes[pipe as usize].offer(self.now, parcel);
        if verdict != Verdict::Accepted {
            self.slab.remove(slot);
        }
        let next = self.topology.pipes[pipe as usize].next();
        self.arm(pipe, next);
        verdict != Verdict::Dropped
    }

    /// A packet has crossed its path.
    fn arrive(&mut self, parcel: Parcel) {
        let packet = *self.slab.get(parcel.slot);
        match packet.tunnel_seq {
            Some(seq) => self.leave_tunnel(packet.direction, seq, parcel),
            None => self.deliver(parcel),
        }
    }

    fn leave_tunnel(&mut self, direction: Direction, seq: u64, parcel: Parcel) {
        let Some(tunnel) = &mut self.tunnel else { return };
        let egress = &mut tunnel.egress[direction as usize];
        let Some(resequencer) = &mut egress.resequencer else {
            egress.passed += 1;
            return self.deliver(parcel);
        };
        let mut up = std::mem::take(&mut self.up);
        let (slot, late, before) = (parcel.slot, resequencer.counters().late, up.len());
        resequencer.handle(self.now, seq, parcel, |release| {
            egress.hold.add(release.held);
            up.push(release.packet);
        });
        if resequencer.counters().late > late && up.len() == before {
            self.slab.remove(slot);
        }
        let deadline = resequencer.deadline();
        self.arm(self.first_tunnel + 2 * direction as u32 + 1, deadline);
        self.deliver_all(up);
    }

    fn wake_egress(&mut self, direction: Direction) {
        let Some(tunnel) = &mut self.tunnel else { return };
        let egress = &mut tunnel.egress[direction as usize];
        let Some(resequencer) = &mut egress.resequencer else { return };
        let mut up = std::mem::take(&mut self.up);
        resequencer.on_timeout(self.now, |release| {
            egress.hold.add(release.held);
            up.push(release.packet);
        });
        let deadline = resequencer.deadline();
        self.arm(self.first_tunnel + 2 * direction as u32 + 1, deadline);
        self.deliver_all(up);
    }

    fn deliver_all(&mut self, mut up: Vec<Parcel>) {
        up.drain(..).for_each(|parcel| self.deliver(parcel));
        self.up = up;
    }

    /// A packet has reached its host.
    fn deliver(&mut self, parcel: Parcel) {
        let packet = *self.slab.get(parcel.slot);
        self.slab.remove(parcel.slot);
        self.digest.add(self.now.0 ^ (u64::from(packet.flow) << 48));
        match packet.body {
            Body::Segment(segment) => self.on_segment(packet.flow, &segment, parcel.marked),
            Body::Ack(ack) => self.on_ack(packet.flow, &ack),
            Body::Datagram => self.on_datagram(packet.flow),
        }
    }

    fn on_segment(&mut self, flow: u16, segment: &Segment, marked: bool) {
        let Kind::Tcp(tcp) = &mut self.flows[usize::from(flow)].kind else { return };
        let ack = tcp.receiver.handle(self.now, segment, marked);
        let deadline = tcp.receiver.deadline();
        if tcp.done.is_none() && tcp.receiver.delivered() >= tcp.segments {
            tcp.done = Some(self.now);
        }
        self.work.delivered_data_packets += 1;
        self.arm(self.first_flow + 2 * u32::from(flow) + 1, deadline);
        if let Some(ack) = ack {
            self.send_ack(flow, ack);
        }
    }

    fn wake_receiver(&mut self, flow: u16) {
        let Kind::Tcp(tcp) = &mut self.flows[usize::from(flow)].kind else { return };
        let ack = tcp.receiver.on_timeout(self.now);
        let deadline = tcp.receiver.deadline();
        self.arm(self.first_flow + 2 * u32::from(flow) + 1, deadline);
        if let Some(ack) = ack {
            self.send_ack(flow, ack);
        }
    }

    fn on_ack(&mut self, flow: u16, ack: &Ack) {
        let Kind::Tcp(tcp) = &mut self.flows[usize::from(flow)].kind else { return };
        tcp.sender.handle(self.now, Input::Ack(ack));
        let rtt = tcp.sender.last_rtt();
        if rtt > Span::ZERO {
            tcp.rtt.add(rtt);
        }
        self.drive(flow);
    }

    fn wake_sender(&mut self, flow: u16) {
        let endpoint = &mut self.flows[usize::from(flow)];
        let (start, stop) = (endpoint.start, endpoint.stop);
        let Kind::Tcp(tcp) = &mut endpoint.kind else { return };
        if self.now == start {
            tcp.sender.handle(self.now, Input::Connect);
        }
        if self.now >= stop && !tcp.stopped {
            tcp.stopped = true;
            tcp.sender.handle(self.now, Input::Stop);
        }
        tcp.sender.handle(self.now, Input::Timeout);
        let stopped = tcp.stopped;
        self.drive(flow);
        if !stopped {
            self.arm(self.first_flow + 2 * u32::from(flow), stop);
        }
    }

    /// Polls a sender until it has nothing more to send now.
    fn drive(&mut self, flow: u16) {
        loop {
            let Kind::Tcp(tcp) = &mut self.flows[usize::from(flow)].kind else { return };
            match tcp.sender.poll(self.now) {
                Output::Transmit(segment) => {
                    if !self.send_segment(flow, segment) {
                        let Kind::Tcp(tcp) = &mut self.flows[usize::from(flow)].kind else { return };
                        tcp.sender.handle(self.now, Input::Refused(segment));
                    }
                }
                Output::Until(deadline) => {
                    let stop = self.flows[usize::from(flow)].stop;
                    let Kind::Tcp(tcp) = &self.flows[usize::from(flow)].kind else { return };
                    let deadline = if tcp.stopped { deadline } else { deadline.min(stop) };
                    self.arm(self.first_flow + 2 * u32::from(flow), deadline);
                    return;
                }
            }
        }
    }

    /// False if the sender's own interface refused it.
    fn send_segment(&mut self, flow: u16, segment: Segment) -> bool {
        let Kind::Tcp(tcp) = &self.flows[usize::from(flow)].kind else { return true };
        let payload = if segment.kind == protocol::tcp::Kind::Data { tcp.mss } else { 0 };
        let capable = tcp.ecn && payload > 0;
        let bytes = tcp.headers + payload;
        self.send(flow, Direction::Forward, Body::Segment(segment), bytes, capable)
    }

    fn send_ack(&mut self, flow: u16, ack: Ack) {
        let Kind::Tcp(tcp) = &self.flows[usize::from(flow)].kind else { return };
        let blocks = ack.blocks.as_slice().len() as u32;
        // SACK option: two bytes, eight a block, padded to four (RFC 2018 section 3).
        let option = if blocks == 0 { 0 } else { 4 + 8 * blocks };
        let bytes = tcp.headers + option;
        self.send(flow, Direction::Reverse, Body::Ack(ack), bytes, false);
    }

    fn send_datagram(&mut self, flow: u16) {
        let endpoint = &mut self.flows[usize::from(flow)];
        let stop = endpoint.stop;
        let Kind::Datagrams { packet, interval, sent, .. } = &mut endpoint.kind else { return };
        if self.now >= stop {
            return;
        }
        *sent += 1;
        let (bytes, next) = (*packet, self.now + *interval);
        self.send(flow, Direction::Forward, Body::Datagram, bytes, false);
        self.arm(self.first_flow + 2 * u32::from(flow), next);
    }

    fn on_datagram(&mut self, flow: u16) {
        if flow == NOBODY {
            return;
        }
        self.work.delivered_data_packets += 1;
        if let Kind::Datagrams { received, .. } = &mut self.flows[usize::from(flow)].kind {
            *received += 1;
        }
    }

    fn send_stray(&mut self, direction: Direction) {
        let packet = Packet { body: Body::Datagram, tunnel_seq: None, flow: NOBODY, path: 0, hop: 0, direction };
        let slot = self.slab.insert(packet);
        self.enter_tunnel(direction, Parcel { slot, bytes: STRAY, capable: false, marked: false });
    }

    fn send(&mut self, flow: u16, direction: Direction, body: Body, bytes: u32, capable: bool) -> bool {
        let packet = Packet { body, tunnel_seq: None, flow, path: 0, hop: 0, direction };
        let slot = self.slab.insert(packet);
        let parcel = Parcel { slot, bytes, capable, marked: false };
        match self.flows[usize::from(flow)].route {
            Route::Tunnel => {
                self.enter_tunnel(direction, parcel);
                true
            }
            Route::Path(path) => self.start_path(path as u16, parcel),
        }
    }

    /// False if the sending host's own queue refused the packet.
    fn start_path(&mut self, path: u16, parcel: Parcel) -> bool {
        let packet = self.slab.get_mut(parcel.slot);
        packet.path = path;
        let direction = packet.direction;
        match self.topology.hop(path, direction, 0) {
            Some(pipe) => self.offer(pipe, parcel) || !self.topology.is_local(pipe),
            None => true,
        }
    }

    fn enter_tunnel(&mut self, direction: Direction, parcel: Parcel) {
        let Some(tunnel) = &mut self.tunnel else { return };
        let ingress = &mut tunnel.ingress[direction as usize];
        match &mut ingress.device {
            Some(device) => {
                if !device.push(parcel) {
                    return self.slab.remove(parcel.slot);
                }
                if device.blocked.is_none() {
                    self.pump(direction);
                }
            }
            None => {
                let (seq, path) = ingress.assign(parcel.bytes);
                let parcel = ingress_bytes(parcel, ingress.overhead);
                self.slab.get_mut(parcel.slot).tunnel_seq = Some(seq);
                self.start_path(path, parcel);
            }
        }
    }

    /// The tunnel's thread: reads, picks a path, sends; blocks while that path's socket is full.
    fn pump(&mut self, direction: Direction) {
        loop {
            let Some(tunnel) = &mut self.tunnel else { return };
            let ingress = &mut tunnel.ingress[direction as usize];
            let overhead = ingress.overhead;
            let Some(device) = &mut ingress.device else { return };
            let socket = device.socket;
            let (parcel, path) = match device.blocked.take() {
                Some(blocked) => blocked,
                None => {
                    let Some(parcel) = device.pop() else { return };
                    let (seq, path) = ingress.assign(parcel.bytes);
                    self.slab.get_mut(parcel.slot).tunnel_seq = Some(seq);
                    (ingress_bytes(parcel, overhead), path)
                }
            };
            let Some(pipe) = self.topology.hop(path, direction, 0) else { return };
            let room = self.topology.pipes[pipe as usize].room_at(self.now, socket);
            if room > self.now {
                let Some(tunnel) = &mut self.tunnel else { return };
                if let Some(device) = &mut tunnel.ingress[direction as usize].device {
                    device.blocked = Some((parcel, path));
                }
                return self.arm(self.first_tunnel + 2 * direction as u32, room);
            }
            self.start_path(path, parcel);
        }
    }

    fn change(&mut self) {
        while let Some(change) = self.changes.get(self.next_change) {
            if change.at > self.now {
                let at = change.at;
                let id = self.first_tunnel + 4;
                return self.arm(id, at);
            }
            for pipe in self.topology.apply(self.now, change) {
                let next = self.topology.pipes[pipe as usize].next();
                self.arm(pipe, next);
            }
            self.next_change += 1;
        }
    }

    fn sample(&mut self) {
        let Some(mut sampler) = self.sampler.take() else { return };
        sampler.take(self);
        self.arm(self.first_tunnel + 5, self.now + sampler.interval);
        self.sampler = Some(sampler);
    }
}

/// The packet as it travels outside: with the tunnel's headers.
fn ingress_bytes(parcel: Parcel, overhead: u32) -> Parcel {
    Parcel { bytes: parcel.bytes + overhead, ..parcel }
}
