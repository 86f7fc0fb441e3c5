//! A Ropewalk tunnel: two endpoints of the protocol that the daemon runs, with simulated inner packets and the relay's
//! messages as payload.
//!
//! An inner packet leaves the slab when it enters the tunnel, and returns to it when its last fragment has been
//! delivered. The datagrams in between are packets of the slab; their contents are kept here.

use crate::error::Error;
use crate::network::{Component, Network, Tunnel};
use crate::packet::{Body, Content, Direction, Packet, PacketDescriptor};
use crate::trace::Traced;
use crate::tunnel::event_loop::{EventLoop, Input};
use crate::tunnel::payload::{Datagram, InnerPacket, TunnelPayload};
use crate::tunnel::relay::RelayEnd;
use link::{EcnField, Packet as _};
use machine::{
    Arrival, DATA_HEADER_BYTES, Endpoint, EndpointConfig, EndpointStatus, Entropy, FIRST_REALTIME_STREAM,
    FIRST_UNORDERED_STREAM, Fragment, MAX_PATHS, PathConfig, Payload as _, ReassembledPacket, Reassembler,
    SEAL_OVERHEAD, TransmitBody,
};
use record::{PathSender, RopewalkTunnel, Summary};
use scenario::model;
use schedule::Fill;
use std::collections::VecDeque;
use std::sync::Arc;
use units::{Instant, PathId, RngStream, Span};
use wire::frame::{Bundle, Frame};
use wire::virtio::VirtioNetHeader;

/// The flow id of the tunnel's datagrams, which belong to no flow of the scenario.
const TUNNEL_FLOW_ID: u16 = u16::MAX;

/// The id that queues hash for the tunnel's datagrams on a path: one UDP flow per path.
fn tunnel_flow_hash(path: u16) -> u16 {
    TUNNEL_FLOW_ID - path
}

/// What a write to the device takes: the host has handled a packet before the next one comes. Measured: 2 to 4 us.
const WRITE: Span = Span::from_micros(2);

/// One end of the tunnel.
#[derive(Debug)]
struct TunnelEnd {
    machine: Endpoint<TunnelPayload>,
    reassembler: Reassembler<Option<Arc<InnerPacket>>>,
    relay: Option<Box<RelayEnd>>,
    event_loop: EventLoop,
    /// The time at which its next timer is due.
    deadline: Instant,
    /// Bytes of datagrams and inner packets that it has carried.
    carried: u64,
    /// Inner packets delivered, the relay's messages included.
    delivered: u64,
    /// Inner packets that are still to be written to the device, and when the host has them.
    unwritten: VecDeque<(Instant, PacketDescriptor)>,
}

impl TunnelEnd {
    fn set_timer(&mut self, now: Instant) {
        let relay_deadline = self.relay.as_ref().map_or(Instant::NEVER, |relay| relay.deadline());
        self.deadline = self.machine.deadline(now).min(relay_deadline);
    }

    fn receive(&mut self, now: Instant, Datagram { transmit, frames, fragments, bytes }: Datagram, ce: bool) {
        self.carried += u64::from(bytes);
        let arrival = Arrival { path: transmit.path, packet_number: transmit.packet_number, ce };
        match transmit.body {
            TransmitBody::Data(data) => self.machine.receive_data(now, arrival, data),
            TransmitBody::Bundle => self.machine.receive_bundle(now, arrival, &frames, fragments.into_iter()),
            TransmitBody::Control { .. } => self.machine.receive_control(now, arrival, &frames),
        }
    }
}

/// An iteration of an end's event loop.
#[derive(Debug)]
struct Iteration {
    /// The empty buffer of its inputs.
    inputs: Vec<Input>,
    reads: usize,
    /// Bytes that the end had carried before the iteration.
    carried: u64,
}

/// Both ends of the tunnel, by the direction in which they send.
#[derive(Debug)]
pub(crate) struct Ropewalk {
    ends: [TunnelEnd; 2],
    /// Indices of the tunnel's paths in the topology.
    paths: Vec<u16>,
    /// Size of the outer IP and UDP headers, bytes.
    headers: u32,
    /// Streams that flows are hashed to: those of marked packets are not among them.
    streams: u8,
    /// Size of the virtio-net header in front of a host's packet, bytes: its checksum is offloaded.
    offload_header: u32,
}

impl Ropewalk {
    pub(crate) fn new(
        tunnel: &model::Tunnel,
        settings: &model::Ropewalk,
        paths: &[model::Path],
        seed: u64,
    ) -> Result<Self, Error> {
        if tunnel.paths.len() > MAX_PATHS {
            return Err(tunnel_error(format!("{} paths, of which it can have {MAX_PATHS}", tunnel.paths.len())));
        }
        let new_end = |name: &str| -> Result<TunnelEnd, Error> {
            let seed = RngStream::named(seed, &format!("tunnel {name}")).bits();
            let mut machine = Endpoint::new(endpoint_config(tunnel, settings, seed)?);
            machine.set_bundling(settings.bundles);
            for (path_index, path) in tunnel.paths.iter().enumerate() {
                machine
                    .set_path(PathId(path_index as u16), path_config(tunnel, settings, path_index, paths[*path].mtu));
            }
            let relay = settings.relay.as_ref().map(|_| Box::new(RelayEnd::new(settings.options.memory_bytes)));
            let (event_loop, deadline) = (EventLoop::default(), Instant::ZERO);
            Ok(TunnelEnd {
                machine,
                reassembler: Reassembler::default(),
                relay,
                event_loop,
                deadline,
                carried: 0,
                delivered: 0,
                unwritten: VecDeque::new(),
            })
        };
        Ok(Self {
            ends: [new_end("forward")?, new_end("reverse")?],
            paths: tunnel.paths.iter().map(|path| *path as u16).collect(),
            headers: tunnel.overhead,
            streams: settings.options.realtime.map_or(FIRST_UNORDERED_STREAM, |_| FIRST_REALTIME_STREAM),
            offload_header: if settings.offload { VirtioNetHeader::LEN as u32 } else { 0 },
        })
    }

    /// Begins an iteration of an end's event loop, with everything that has arrived and the timers that are due; returns
    /// the inputs that were read, for [`finish_iteration`](Self::finish_iteration). `None` if the loop pauses or nothing is due.
    fn begin_iteration(&mut self, now: Instant, direction: Direction) -> Option<Iteration> {
        let (streams, offload_header) = (u16::from(self.streams), self.offload_header);
        let end = &mut self.ends[direction as usize];
        if now < end.event_loop.next_iteration(end.deadline) {
            return None;
        }
        let (mut inputs, carried) = (end.event_loop.take(), end.carried);
        let reads = inputs.len();
        for input in inputs.drain(..) {
            match input {
                Input::Packet(packet, descriptor) => {
                    end.carried += u64::from(descriptor.bytes());
                    let payload = TunnelPayload::packet(packet, descriptor, offload_header);
                    end.machine.offer(now, (packet.flow % streams) as u8, payload);
                }
                Input::Datagram(datagram, ce) => end.receive(now, datagram, ce),
            }
        }
        if now >= end.deadline {
            end.machine.on_timeout(now);
            if let Some(relay) = &mut end.relay {
                relay.on_timeout(now);
            }
        }
        Some(Iteration { inputs, reads, carried })
    }

    /// Ends an iteration, after everything that it had to deliver and to transmit.
    fn finish_iteration(&mut self, now: Instant, direction: Direction, iteration: Iteration) {
        let Iteration { inputs, reads, carried } = iteration;
        let end = &mut self.ends[direction as usize];
        end.set_timer(now);
        end.event_loop.finish(now, inputs, reads, end.carried - carried, end.deadline);
    }

    /// Transmits a datagram of an end, if one may be sent now, and returns whether. Its outer header is ECN-capable if the
    /// inner one is (RFC 6040). A CE mark by the tunnel's ingress queue is not copied to the outer header, because no link of
    /// the path set it.
    fn transmit_one(&mut self, direction: Direction, network: &mut Network) -> bool {
        let now = network.world.now;
        let TunnelEnd { machine, relay, carried, .. } = &mut self.ends[direction as usize];
        if let Some(relay) = relay {
            relay.fill(now, machine);
        }
        let Some(transmit) = machine.poll_transmit(now) else { return false };
        let (frames, fragments) = match &transmit.body {
            TransmitBody::Data(_) => (Vec::new(), Vec::new()),
            TransmitBody::Bundle => (machine.control_frames().to_vec(), machine.bundle().to_vec()),
            TransmitBody::Control { .. } => (machine.control_frames().to_vec(), Vec::new()),
        };
        let frame_bytes = frames.iter().map(Frame::len).sum::<usize>();
        let (body, ecn) = match &transmit.body {
            TransmitBody::Data(data) => (DATA_HEADER_BYTES + data.payload.len(), data.payload.outer_ecn()),
            TransmitBody::Bundle => {
                let entry_len = |fragment: &Fragment<TunnelPayload>| Bundle::entry_len(fragment.payload.len() as usize);
                let entries = fragments.iter().map(entry_len).sum::<usize>();
                let ecn = fragments.first().map_or(EcnField::NotEct, |first| first.payload.outer_ecn());
                ((Bundle::frames_len(frame_bytes) + entries) as u32, ecn)
            }
            TransmitBody::Control { pad_to } => ((frame_bytes as u32).max(*pad_to), EcnField::NotEct),
        };
        let (path, body) = (self.paths[transmit.path.index()], SEAL_OVERHEAD + body);
        *carried += u64::from(body);
        let id = network.world.store.tunnel_datagrams.insert(Datagram { transmit, frames, fragments, bytes: body });
        let packet = Packet::new(Content::new(Body::TunnelDatagram(id)), TUNNEL_FLOW_ID, 0, direction);
        let is_data = direction == Direction::Forward;
        let slot = network.world.slab.insert(packet);
        let bytes = self.headers + body;
        network.world.enter(path, PacketDescriptor::new(slot, bytes, tunnel_flow_hash(path), ecn, is_data));
        true
    }

    /// Transmits the datagrams that an end may send now.
    fn transmit_all(&mut self, direction: Direction, network: &mut Network) {
        while self.transmit_one(direction, network) {}
        if network.world.is_tapped() {
            self.traced(direction).for_each(|traced| network.push_trace(traced));
        }
    }

    /// Schedules the next iteration of an end's event loop.
    fn schedule_iteration(&mut self, direction: Direction, network: &mut Network) {
        let TunnelEnd { event_loop, deadline, .. } = &self.ends[direction as usize];
        network.schedule(Component::Ingress(direction), event_loop.next_iteration(*deadline).max(network.world.now));
    }

    /// The next inner packet that the end sending in `direction` delivers: it was sent in the other direction. The
    /// relay's messages are delivered to the relay.
    fn deliver(&mut self, now: Instant, direction: Direction) -> Option<(Packet, PacketDescriptor)> {
        let TunnelEnd { machine, reassembler, relay, carried, delivered, .. } = &mut self.ends[direction as usize];
        while machine.poll_event().is_some() {}
        loop {
            let Some(ReassembledPacket { buffer, ce }) = reassembler.add(&machine.poll_delivery()?) else { continue };
            *delivered += 1;
            match (Arc::unwrap_or_clone(buffer.take()?), &mut *relay) {
                (InnerPacket::Packet(packet, mut descriptor), _) => {
                    if ce {
                        descriptor.mark();
                    }
                    *carried += u64::from(descriptor.bytes());
                    return Some((packet, descriptor));
                }
                (InnerPacket::Message(message), Some(relay)) => relay.receive(now, message),
                (InnerPacket::Message(_), None) => {}
            }
        }
    }

    /// Writes the packets of an iteration to the device, one after the other.
    fn write_all(&mut self, direction: Direction, network: &mut Network) {
        let now = network.world.now;
        let mut written = self.ends[direction as usize].unwritten.back().map_or(now, |(latest, _)| *latest + WRITE);
        while let Some((packet, descriptor)) = self.deliver(now, direction) {
            let slot = network.world.slab.insert(packet);
            self.ends[direction as usize].unwritten.push_back((written, descriptor.moved(slot)));
            written += WRITE;
        }
        self.hand_over(direction, network);
    }

    /// Hands the packets to the host that are written.
    fn hand_over(&mut self, direction: Direction, network: &mut Network) {
        let unwritten = &mut self.ends[direction as usize].unwritten;
        while let Some((written, descriptor)) = unwritten.front().copied() {
            if written > network.world.now {
                return network.schedule(Component::Egress(direction), written);
            }
            network.delivered.push(descriptor);
            unwritten.pop_front();
        }
    }

    /// The status of an end.
    fn status(&self, direction: Direction) -> EndpointStatus {
        self.ends[direction as usize].machine.status()
    }

    /// What a trace has of an end since the last call: the choices of its scheduler, and the states of its paths.
    fn traced(&mut self, direction: Direction) -> impl Iterator<Item = Traced> + use<> {
        let end = &mut self.ends[direction as usize].machine;
        let choices = end.choices_mut().take().into_iter();
        let choices = choices.map(move |choice| Traced::TunnelChoice { direction, choice });
        let states = end.status().paths.into_iter();
        choices.chain(states.map(move |status| Traced::TunnelPath { direction, status }))
    }
}

impl Tunnel for Ropewalk {
    /// Both ends validate the paths at once.
    fn start(&mut self, network: &mut Network) {
        for end in [Direction::Forward, Direction::Reverse] {
            network.schedule(Component::Ingress(end), Instant::ZERO);
        }
    }

    fn enter(&mut self, direction: Direction, descriptor: PacketDescriptor, network: &mut Network) {
        let packet = *network.world.slab.remove(descriptor.slot());
        self.ends[direction as usize].event_loop.push(Input::Packet(packet, descriptor));
        self.schedule_iteration(direction, network);
    }

    fn receive(&mut self, descriptor: PacketDescriptor, network: &mut Network) {
        let &Packet { content: Content { body: Body::TunnelDatagram(id), .. }, direction, .. } =
            network.world.slab.get(descriptor.slot())
        else {
            return;
        };
        if let Some(datagram) = network.world.store.tunnel_datagrams.take(id) {
            let input = Input::Datagram(datagram, descriptor.ecn() == EcnField::Ce);
            self.ends[direction.other() as usize].event_loop.push(input);
        }
        self.schedule_iteration(direction.other(), network);
    }

    /// An iteration of an end's event loop, or the end of a write to its device.
    fn wake(&mut self, timer: Component, network: &mut Network) {
        let direction = match timer {
            Component::Ingress(direction) => direction,
            Component::Egress(direction) => return self.hand_over(direction, network),
            _ => return,
        };
        if let Some(iteration) = self.begin_iteration(network.world.now, direction) {
            self.write_all(direction, network);
            self.transmit_all(direction, network);
            self.finish_iteration(network.world.now, direction, iteration);
        }
        self.schedule_iteration(direction, network);
    }

    /// The tunnel takes packets out of the slab until they are to be written.
    fn queued(&self) -> u64 {
        self.ends.iter().map(|end| end.unwritten.len() as u64).sum()
    }

    fn record(&self) -> record::Tunnel {
        let sender = self.status(Direction::Forward).counters;
        let receiver = self.status(Direction::Reverse).counters;
        let relays = || self.ends.iter().filter_map(|end| end.relay.as_deref());
        let mean = receiver.reorder_wait_ns as f64 / receiver.delivered_fragments.max(1) as f64 / 1e6;
        record::Tunnel {
            delivered_packets: self.ends[Direction::Reverse as usize].delivered,
            reorder_buffered_packets: receiver.reorder_buffered_fragments,
            late_packets: receiver.late_fragments,
            dropped_packets: sender.ingress_dropped_packets,
            reorder_delay_ms: Summary { mean, ..Summary::default() },
            ropewalk: Some(RopewalkTunnel {
                marked_packets: sender.ingress_marked_or_trimmed_packets,
                sent_fragments: Some(
                    sender.new_fragments + sender.retransmitted_fragments + sender.redundant_fragments,
                ),
                retransmitted_fragments: Some(sender.retransmitted_fragments),
                duplicate_fragments: Some(receiver.duplicate_fragments),
                missing_fragments: Some(receiver.missing_fragments),
                relayed_connections: relays().map(|relay| relay.connections).sum(),
                max_relayed_bytes: Some(relays().map(RelayEnd::max_memory).max().unwrap_or(0)),
            }),
            ..record::Tunnel::default()
        }
    }

    fn path_record(&self, path: usize) -> Option<PathSender> {
        let position = self.paths.iter().position(|tunnel_path| usize::from(*tunnel_path) == path)?;
        let sender = self.status(Direction::Forward).paths.get(position).copied()?;
        Some(PathSender {
            declared_lost_packets: sender.lost_packets,
            spurious_losses: sender.spurious_losses,
            failures: sender.failures,
        })
    }

    fn controller_failures(&self) -> Vec<String> {
        let directions = [Direction::Forward, Direction::Reverse];
        directions.into_iter().filter_map(|direction| self.status(direction).controller_failure).collect()
    }

    fn start_trace(&mut self) {
        self.ends.iter_mut().for_each(|end| end.machine.choices_mut().keep());
    }

    fn relay(&mut self, direction: Direction) -> Option<&mut RelayEnd> {
        self.ends[direction as usize].relay.as_deref_mut()
    }

    /// Does nothing while the end's event loop pauses.
    fn transmit(&mut self, direction: Direction, network: &mut Network) {
        if !self.ends[direction as usize].event_loop.is_paused(network.world.now) {
            self.transmit_all(direction, network);
            self.ends[direction as usize].set_timer(network.world.now);
        }
        self.schedule_iteration(direction, network);
    }
}

fn endpoint_config(tunnel: &model::Tunnel, settings: &model::Ropewalk, seed: u64) -> Result<EndpointConfig, Error> {
    let name = &settings.options.scheduler.name;
    let entry = schedule::find(name).ok_or_else(|| Error::UnknownScheduler { name: name.clone() })?;
    if entry.fill != Fill::Cwnd {
        return Err(tunnel_error(format!("`{}` fills send buffers, which paths of a tunnel do not have", entry.name)));
    }
    settings.options.endpoint_config(&tunnel.weights, Entropy::seeded(seed)).map_err(tunnel_error)
}

fn path_config(tunnel: &model::Tunnel, settings: &model::Ropewalk, path_index: usize, mtu: u32) -> PathConfig {
    PathConfig {
        backup: settings.backup.contains(&path_index),
        metered: settings.metered.contains(&path_index),
        secondary: settings.secondary.contains(&path_index),
        ..PathConfig::regular(mtu.saturating_sub(tunnel.overhead), tunnel.overhead)
    }
}

fn tunnel_error(reason: String) -> Error {
    Error::Tunnel { reason }
}
