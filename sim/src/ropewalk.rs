//! A Ropewalk tunnel: two endpoints of the protocol that the daemon runs, with simulated inner packets and the relay's
//! messages as payload.
//!
//! An inner packet leaves the slab when it enters the tunnel, and returns to it when its last fragment has been
//! delivered. The datagrams in between are packets of the slab; their contents are kept here.

use crate::Error;
use crate::event_loop::{EventLoop, Input};
use crate::packet::{Body, Direction, Packet, PacketDescriptor};
use crate::relay::{ByteRange, RelayEnd};
use crate::trace::Traced;
use link::{EcnField, Packet as _};
use machine::{
    Arrival, DATA_HEADER_BYTES, Endpoint, EndpointConfig, EndpointStatus, Entropy, FIRST_REALTIME_STREAM,
    FIRST_UNORDERED_STREAM, Fragment, MAX_PATHS, PacketBuffer, PathConfig, Payload, QueueRelation, ReassembledPacket,
    Reassembler, SEAL_OVERHEAD, Transmit, TransmitBody,
};
use relay::Message;
use scenario::model;
use schedule::Fill;
use std::sync::Arc;
use units::{Instant, PathId, RngStream};
use wire::frame::{Bundle, Frame};
use wire::virtio::VirtioNetHeader;

/// What the tunnel carries.
#[derive(Clone, Debug)]
enum InnerPacket {
    /// A packet, and the descriptor with which it entered; its slot may have been reused.
    Packet(Packet, PacketDescriptor),
    /// A message of the relay.
    Message(Message<ByteRange>),
}

/// Bytes `start` to `end` of an inner packet, which all its fragments share: a clone is cheap.
#[derive(Clone, Debug)]
pub(crate) struct TunnelPayload {
    inner: Arc<InnerPacket>,
    start: u32,
    end: u32,
    /// The ECN field with which the packet came, before the ingress queue marks it.
    ecn: EcnField,
}

impl TunnelPayload {
    /// A packet with an offload header of this many bytes in front.
    fn packet(packet: Packet, descriptor: PacketDescriptor, offload_header: u32) -> Self {
        let (end, ecn) = (descriptor.bytes() + offload_header, descriptor.ecn());
        Self { inner: Arc::new(InnerPacket::Packet(packet, descriptor)), start: 0, end, ecn }
    }

    /// A message of the relay, with its header.
    pub(crate) fn message(message: Message<ByteRange>) -> Self {
        let bytes = message.chunk.map_or(0, |range| (range.end - range.start) as u32);
        Self {
            start: 0,
            end: message.header.len() as u32 + bytes,
            inner: Arc::new(InnerPacket::Message(message)),
            ecn: EcnField::NotEct,
        }
    }

    /// The ECN field of the datagram that carries it: the one with which the packet came (RFC 6040, section 4.1). CE is not
    /// copied, because it does not signal congestion of the path.
    fn outer_ecn(&self) -> EcnField {
        if self.ecn == EcnField::Ce { EcnField::Ect0 } else { self.ecn }
    }
}

impl Payload for TunnelPayload {
    fn len(&self) -> u32 {
        self.end - self.start
    }

    fn slice(&self, start: u32, end: u32) -> Self {
        Self { inner: self.inner.clone(), start: self.start + start, end: self.start + end, ecn: self.ecn }
    }

    fn may_share_datagram(&self, other: &Self) -> bool {
        self.outer_ecn() == other.outer_ecn()
    }

    fn relation(&self, earlier: &Self) -> QueueRelation {
        let (InnerPacket::Packet(packet, _), InnerPacket::Packet(earlier, _)) = (&*self.inner, &*earlier.inner) else {
            return QueueRelation::Unrelated;
        };
        if (packet.flow, packet.connection) != (earlier.flow, earlier.connection) {
            return QueueRelation::Unrelated;
        }
        match (&packet.body, &earlier.body) {
            (Body::TcpAck(ack), Body::TcpAck(earlier)) if ack.supersedes(earlier) => QueueRelation::Supersedes,
            (Body::TcpAck(ack), Body::TcpAck(earlier)) if ack.ack == earlier.ack => QueueRelation::Duplicate,
            _ => QueueRelation::SameFlow,
        }
    }

    /// A packet that is not ECN-capable loses the first segment of its super-segment. The relay needs no signal: it offers
    /// only what the tunnel can carry.
    fn signal_congestion(&mut self) -> bool {
        let InnerPacket::Packet(packet, descriptor) = Arc::make_mut(&mut self.inner) else { return true };
        descriptor.mark();
        if descriptor.ecn() == EcnField::Ce {
            return true;
        }
        let Body::TcpPacket(whole) = &mut packet.body else { return false };
        let dropped = whole.trim_first();
        self.end -= dropped.unwrap_or(0);
        dropped.is_some()
    }
}

/// The contents of a datagram in flight.
#[derive(Debug)]
pub(crate) struct Datagram {
    transmit: Transmit<TunnelPayload>,
    /// The frames of [`TransmitBody::Control`] and [`TransmitBody::Bundle`].
    frames: Vec<Frame>,
    /// The fragments of [`TransmitBody::Bundle`].
    fragments: Vec<Fragment<TunnelPayload>>,
    /// Size without the outer headers, bytes.
    bytes: u32,
}

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
pub(crate) struct Iteration {
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
    /// Datagrams in flight, by id; none if a copy has arrived, which the receiver's replay window tells from the
    /// others.
    datagrams: Vec<Option<Datagram>>,
    /// Copies in flight of each of `datagrams`.
    copies: Vec<u32>,
    /// Free indices of `datagrams`.
    free: Vec<u32>,
    /// Streams that flows are hashed to: those of marked packets are not among them.
    streams: u8,
    /// Size of the virtio-net header in front of a host's packet, bytes: its checksum is offloaded.
    offload_header: u32,
}

/// A datagram to be sent on `path`; `bytes` includes the outer headers.
#[derive(Debug)]
pub(crate) struct OutgoingDatagram {
    pub path: u16,
    pub datagram_id: u32,
    pub bytes: u32,
    pub ecn: EcnField,
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
            })
        };
        Ok(Self {
            ends: [new_end("forward")?, new_end("reverse")?],
            paths: tunnel.paths.iter().map(|path| *path as u16).collect(),
            headers: tunnel.overhead,
            datagrams: Vec::new(),
            copies: Vec::new(),
            free: Vec::new(),
            streams: settings.options.realtime.map_or(FIRST_UNORDERED_STREAM, |_| FIRST_REALTIME_STREAM),
            offload_header: if settings.offload { VirtioNetHeader::LEN as u32 } else { 0 },
        })
    }

    /// Gives an inner packet to the end that sends in its direction.
    pub(crate) fn enqueue(&mut self, packet: Packet, descriptor: PacketDescriptor) {
        self.ends[packet.direction as usize].event_loop.push(Input::Packet(packet, descriptor));
    }

    /// Begins an iteration of an end's event loop, with everything that has arrived and the timers that are due; returns
    /// the inputs that were read, for [`finish_iteration`](Self::finish_iteration). `None` if the loop pauses or nothing is due.
    pub(crate) fn begin_iteration(&mut self, now: Instant, direction: Direction) -> Option<Iteration> {
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
    pub(crate) fn finish_iteration(&mut self, now: Instant, direction: Direction, iteration: Iteration) {
        let Iteration { inputs, reads, carried } = iteration;
        let end = &mut self.ends[direction as usize];
        end.set_timer(now);
        end.event_loop.finish(now, inputs, reads, end.carried - carried, end.deadline);
    }

    /// The next datagram of an end, if one may be sent now. Its outer header is ECN-capable if the inner one is (RFC
    /// 6040). A CE mark by the tunnel's ingress queue is not copied to the outer header, because no link of the path
    /// set it.
    pub(crate) fn transmit(&mut self, now: Instant, direction: Direction) -> Option<OutgoingDatagram> {
        let TunnelEnd { machine, relay, carried, .. } = &mut self.ends[direction as usize];
        if let Some(relay) = relay {
            relay.fill(now, machine);
        }
        let transmit = machine.poll_transmit(now)?;
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
        let datagram_id = self.store(Datagram { transmit, frames, fragments, bytes: body });
        Some(OutgoingDatagram { path, datagram_id, bytes: self.headers + body, ecn })
    }

    /// Gives a datagram sent in `direction`, with or without a CE mark, to the other end.
    pub(crate) fn arrive(&mut self, direction: Direction, datagram_id: u32, ce: bool) {
        let Some(datagram) = self.take(datagram_id) else { return };
        self.ends[1 - direction as usize].event_loop.push(Input::Datagram(datagram, ce));
    }

    /// The next inner packet that the end sending in `direction` delivers: it was sent in the other direction. The
    /// relay's messages are delivered to the relay.
    pub(crate) fn deliver(&mut self, now: Instant, direction: Direction) -> Option<(Packet, PacketDescriptor)> {
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

    /// The time of an end's next iteration.
    pub(crate) fn next_iteration(&self, direction: Direction) -> Instant {
        let TunnelEnd { event_loop, deadline, .. } = &self.ends[direction as usize];
        event_loop.next_iteration(*deadline)
    }

    /// Whether an end's event loop pauses.
    pub(crate) fn is_paused(&self, now: Instant, direction: Direction) -> bool {
        self.ends[direction as usize].event_loop.is_paused(now)
    }

    /// Sets an end's timer again after something other than an iteration has acted on the end.
    pub(crate) fn set_timer(&mut self, now: Instant, direction: Direction) {
        self.ends[direction as usize].set_timer(now);
    }

    /// The relay of the end that sends in `direction`, if there is one.
    pub(crate) fn relay(&mut self, direction: Direction) -> Option<&mut RelayEnd> {
        self.ends[direction as usize].relay.as_deref_mut()
    }

    /// The relay's ends, if it has a relay.
    pub(crate) fn relays(&self) -> impl Iterator<Item = &RelayEnd> {
        self.ends.iter().filter_map(|end| end.relay.as_deref())
    }

    /// The status of an end.
    pub(crate) fn status(&self, direction: Direction) -> EndpointStatus {
        self.ends[direction as usize].machine.status()
    }

    /// Keeps what a trace has from now on.
    pub(crate) fn start_trace(&mut self) {
        self.ends.iter_mut().for_each(|end| end.machine.choices_mut().keep());
    }

    /// What a trace has of an end since the last call: the choices of its scheduler, and the states of its paths.
    pub(crate) fn traced(&mut self, direction: Direction) -> impl Iterator<Item = Traced> + use<> {
        let end = &mut self.ends[direction as usize].machine;
        let choices = end.choices_mut().take().into_iter();
        let choices = choices.map(move |choice| Traced::TunnelChoice { direction, choice });
        let states = end.status().paths.into_iter();
        choices.chain(states.map(move |status| Traced::TunnelPath { direction, status }))
    }

    /// Packets delivered by the end that sends in `direction`.
    pub(crate) fn delivered(&self, direction: Direction) -> u64 {
        self.ends[direction as usize].delivered
    }

    /// Indices of the tunnel's paths in the topology.
    pub(crate) fn paths(&self) -> &[u16] {
        &self.paths
    }

    /// Datagrams in flight, every copy counted.
    pub(crate) fn in_flight(&self) -> u64 {
        self.copies.iter().copied().map(u64::from).sum()
    }

    fn store(&mut self, datagram: Datagram) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.datagrams.push(None);
            self.copies.push(0);
            (self.datagrams.len() - 1) as u32
        });
        self.datagrams[slot as usize] = Some(datagram);
        self.copies[slot as usize] = 1;
        slot
    }

    /// Takes a datagram whose first copy arrives; none for further copies.
    fn take(&mut self, datagram_id: u32) -> Option<Datagram> {
        let datagram = self.datagrams[datagram_id as usize].take();
        self.discard(datagram_id);
        datagram
    }

    /// Counts one more copy of a datagram.
    pub(crate) fn duplicate(&mut self, datagram_id: u32) {
        self.copies[datagram_id as usize] += 1;
    }

    /// Forgets a copy of a datagram that is lost or has arrived.
    pub(crate) fn discard(&mut self, datagram_id: u32) {
        let copies = &mut self.copies[datagram_id as usize];
        *copies -= 1;
        if *copies == 0 {
            self.datagrams[datagram_id as usize] = None;
            self.free.push(datagram_id);
        }
    }
}

/// The inner packet of the latest fragment.
impl PacketBuffer<TunnelPayload> for Option<Arc<InnerPacket>> {
    fn clear(&mut self) {
        *self = None;
    }

    fn append(&mut self, fragment: &TunnelPayload) {
        *self = Some(fragment.inner.clone());
    }

    fn memory_bytes(&self) -> u64 {
        size_of::<Self>() as u64
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
