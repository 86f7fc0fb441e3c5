//! The engine of MPT's tunnel: sockets, device and buffers around [`mpt::Sender`] and [`mpt::Receiver`].
//!
//! A super-packet from the device is segmented; each packet gets a sequence number and a path from the sender, and
//! joins that path's batch. A received datagram must come from its path's peer; its packet passes the receiver, must have
//! a source that the peer may use, and is coalesced into super-packets again. Datagrams are as `mptsrv` expects them:
//! no key, no checksum, no duplicates, and only the DSCP in the outer header (its ECN field would be lost).

use super::address::PathAddress;
use super::allowed_ips::AllowedIps;
use super::buffer::BufferSlice;
use super::config::{Error, MptConfig, MptPathConfig};
use super::device::Device;
use super::event::{Change, EventSender, PathChange, PathName, PeerChange, PeerName};
use super::event_loop::{Engine, Io};
use super::receive::ReceiveBatch;
use super::report::{MptPathReport, MptReport, Report};
use super::socket::{ReceivedDatagrams, SendOutcome, Socket};
use super::transmit::{FreeBatches, TransmitQueue};
use control::AlgorithmChoice;
use ipnet::IpNet;
use mpt::{Content, Keepalive, Receiver, Sender};
use schedule::{Needs, Scheduler, SchedulerEntry};
use units::{Instant, PathId};
use wire::inner::Inner;
use wire::inner::ecn::{self, Ecn};
use wire::segment::Segmenter;
use wire::virtio::VirtioNetHeader;
use wire::{gre, inner};

/// The ECN field of a TOS byte.
const ECN_MASK: u8 = 3;

/// A path of the connection.
struct MptPath {
    socket: usize,
    queue: TransmitQueue,
    report: MptPathReport,
    name: PathName,
    /// Whether it was reported as up; `None` before the first report.
    told: Option<bool>,
}

/// An MPT connection.
pub(super) struct MptEngine {
    /// Whether the device waits while a path's socket is full.
    backpressure: bool,
    sender: Sender,
    receiver: Receiver<BufferSlice>,
    paths: Vec<MptPath>,
    delivery: Delivery,
    peer: PeerName,
}

/// Delivery of received packets to the device.
struct Delivery {
    allowed_ips: AllowedIps<()>,
    batch: ReceiveBatch,
    /// Packets whose source is not in the peer's allowed IPs.
    unallowed_source: u64,
    malformed: u64,
}

impl Delivery {
    /// Adds a packet to the batch, or drops and counts it.
    fn push(&mut self, device: &mut Device, packet: BufferSlice) {
        match Inner::parse(&packet) {
            Ok(inner) if self.allowed_ips.find(inner.source).is_some() => self.batch.push(device, packet),
            Ok(_) => self.unallowed_source += 1,
            Err(_) => self.malformed += 1,
        }
    }
}

fn allowed_ips(networks: &[IpNet]) -> AllowedIps<()> {
    AllowedIps::new(networks.iter().map(|network| (*network, ())))
}

impl MptEngine {
    /// A connection that has sent nothing.
    ///
    /// # Errors
    /// An unknown scheduler or one that needs measurements; a path without a socket of its address family.
    pub(super) fn new(config: &MptConfig, io: &Io) -> Result<Self, Error> {
        let weights: Vec<u32> = config.paths.iter().map(|path| path.weight).collect();
        let scheduler = mpt_scheduler(&config.scheduler, &weights)?;
        let paths = config.paths.iter().map(|path| open_path(path, io)).collect::<Result<Vec<_>, _>>()?;
        let peer = PeerName { public_key: None, name: config.peer_name.clone() };
        for path in &paths {
            let change = PeerChange::Path(path.name.clone(), PathChange::Configured);
            io.events.send(Change::Peer(peer.clone(), change));
        }
        let addresses = Keepalive { sender: config.local, receiver: config.remote };
        Ok(Self {
            backpressure: config.backpressure,
            sender: Sender::new(scheduler, paths.len(), addresses, config.keepalive),
            receiver: Receiver::new(config.reorder),
            paths,
            delivery: Delivery {
                allowed_ips: allowed_ips(&config.allowed_ips),
                batch: ReceiveBatch::new(&io.device),
                unallowed_source: 0,
                malformed: 0,
            },
            peer,
        })
    }

    /// Reports the paths that came up or went down.
    fn tell(&mut self, events: &EventSender) {
        for (path, id) in self.paths.iter_mut().zip((0..).map(PathId)) {
            let up = self.sender.status(id).up;
            if path.told.replace(up) != Some(up) {
                let change = if up { PathChange::Up(None) } else { PathChange::Down };
                events.send(Change::Peer(self.peer.clone(), PeerChange::Path(path.name.clone(), change)));
            }
        }
    }

    /// Sends the next of `segments`. False if no path is up.
    fn send(
        &mut self,
        sockets: &mut [Socket],
        now: Instant,
        segments: &mut Segmenter<'_>,
        tos: u8,
        protocol: u16,
    ) -> bool {
        let max_len = segments.max_len();
        let Some((id, header)) = self.sender.assign(now, max_len as u32, protocol) else { return false };
        let MptPath { queue, socket, report, .. } = &mut self.paths[id.index()];
        let outcome = queue.push(&mut sockets[*socket], header.len() + max_len, tos & !ECN_MASK, |datagram| {
            let Some(len) = segments.next_into(&mut datagram[header.len()..]) else { return 0 };
            header.write(&mut datagram[..header.len() + len]);
            report.sent.add(1, len);
            header.len() + len
        });
        self.on_send_outcome(now, id, outcome);
        true
    }

    fn flush_paths(&mut self, io: &mut Io, now: Instant) {
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            let outcome = path.queue.flush(&mut io.sockets[path.socket]);
            self.on_send_outcome(now, PathId(index as u16), outcome);
        }
    }

    /// Suspends a path whose interface refused a packet.
    fn on_send_outcome(&mut self, now: Instant, path: PathId, outcome: SendOutcome) {
        if outcome == SendOutcome::Unreachable {
            self.sender.suspend(now, path);
        }
    }

    /// Handles one datagram of `path`. False if it was dropped.
    fn on_datagram(&mut self, io: &mut Io, now: Instant, path: usize, datagram: &BufferSlice) -> bool {
        match Content::parse(datagram) {
            Ok(Content::Keepalive) => {}
            Ok(Content::Packet { start, sequence }) => {
                self.paths[path].report.received.add(1, datagram.len() - start);
                let packet = datagram.slice(start as u32, datagram.len() as u32);
                self.receiver.handle(now, sequence, packet, |packet| self.delivery.push(&mut io.device, packet));
            }
            Err(_) => return false,
        }
        true
    }

    fn send_keepalive(&mut self, io: &mut Io, now: Instant, id: PathId) {
        let path = &mut self.paths[id.index()];
        let socket = &mut io.sockets[path.socket];
        let keepalive = self.sender.keepalive();
        path.queue.push(socket, keepalive.len(), 0, |datagram| {
            datagram.copy_from_slice(keepalive);
            keepalive.len()
        });
        let outcome = path.queue.flush(socket);
        self.on_send_outcome(now, id, outcome);
    }
}

/// The scheduler of a connection, which measures nothing.
fn mpt_scheduler(choice: &AlgorithmChoice, weights: &[u32]) -> Result<Box<dyn Scheduler>, Error> {
    let needs_no_measurements = |entry: &&SchedulerEntry| entry.needs == Needs::Nothing;
    let entry = schedule::find(&choice.name).filter(needs_no_measurements).ok_or_else(|| {
        let names: Vec<&str> =
            schedule::entries().into_iter().filter(needs_no_measurements).map(|entry| entry.name).collect();
        Error::config(format!("mpt mode has no scheduler `{}`; there are {}", choice.name, names.join(", ")))
    })?;
    let scheduler = entry.scheduler(weights, 0, &choice.parameters);
    scheduler.map_err(|error| Error::config(format!("scheduler {}: {error}", entry.name)))
}

/// A path over one of the sockets.
fn open_path(path: &MptPathConfig, io: &Io) -> Result<MptPath, Error> {
    let Some(socket) = io.sockets.get(path.socket) else {
        return Err(Error::config(format!("path {}: there is no socket {}", path.name, path.socket)));
    };
    if socket.is_ipv4().is_some_and(|v4| v4 != path.remote.is_ipv4()) {
        return Err(Error::config(format!(
            "path {}: {} is not of its socket's address family",
            path.name, path.remote
        )));
    }
    let queue = TransmitQueue::new(PathAddress::to_remote(path.remote), FreeBatches::default());
    let bound = socket.config();
    let name = PathName {
        name: path.name.clone(),
        opened_by_peer: false,
        remote: Some(path.remote),
        interface: bound.and_then(|socket| socket.interface.clone()),
        source: bound.map(|socket| socket.bind.ip()).filter(|source| !source.is_unspecified()),
    };
    Ok(MptPath { socket: path.socket, queue, report: MptPathReport::default(), name, told: None })
}

impl Engine for MptEngine {
    fn on_device_packet(&mut self, io: &mut Io, now: Instant, len: usize) {
        let Io { device, sockets, read_buffer, .. } = io;
        let bytes = &read_buffer[..len];
        let parsed =
            if device.has_header() { VirtioNetHeader::parse(bytes) } else { Ok((VirtioNetHeader::default(), bytes)) };
        let segmented = parsed.and_then(|(offload, packet)| {
            Ok((Segmenter::new(offload, packet)?, offload.segment_count(packet), packet))
        });
        let Ok((mut segments, packets, packet)) = segmented else {
            device.report.malformed += 1;
            return;
        };
        let tos = inner::tos(packet).unwrap_or(0);
        let protocol = if packet[0] >> 4 == 6 { gre::IPV6 } else { gre::IPV4 };
        for _ in 0..packets {
            if !self.send(sockets, now, &mut segments, tos, protocol) {
                break;
            }
        }
        if self.backpressure {
            self.flush_paths(io, now);
        }
    }

    fn on_datagrams(&mut self, io: &mut Io, now: Instant, socket: usize, received: &ReceivedDatagrams) {
        let remote = received.address.remote.ip();
        let is_path = |path: &MptPath| path.socket == socket && path.queue.address().remote.ip() == remote;
        let datagrams = received.len.div_ceil(received.segment_size.max(1));
        let Some(path) = self.paths.iter().position(is_path) else {
            io.sockets[socket].report.refused += datagrams as u64;
            return;
        };
        if received.ecn == Ecn::Ce {
            mark_ce(&mut io.read_buffer[..received.len], received.segment_size);
        }
        let Some(buffer) = io.pool.freeze(&mut io.read_buffer, received.len) else { return };
        let mut refused = 0;
        for start in (0..received.len).step_by(received.segment_size.max(1)) {
            let end = received.len.min(start + received.segment_size);
            refused += u64::from(!self.on_datagram(io, now, path, &buffer.slice(start as u32, end as u32)));
        }
        io.sockets[socket].report.refused += refused;
        if refused < datagrams as u64 {
            self.sender.on_received(now, PathId(path as u16));
        }
    }

    fn flush(&mut self, io: &mut Io, now: Instant) {
        self.delivery.batch.flush(&mut io.device);
        self.flush_paths(io, now);
        self.tell(&io.events);
    }

    fn on_writable(&mut self, io: &mut Io, now: Instant, socket: usize) {
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            if path.socket == socket {
                let outcome = path.queue.send_queued(&mut io.sockets[socket]);
                self.on_send_outcome(now, PathId(index as u16), outcome);
            }
        }
    }

    fn is_device_paused(&self) -> bool {
        self.backpressure && self.paths.iter().any(|path| path.queue.is_blocked())
    }

    fn is_blocked(&self, socket: usize) -> bool {
        self.paths.iter().any(|path| path.socket == socket && path.queue.is_blocked())
    }

    /// No pauses, as in MPT's own program: they would cost flows with small windows most of their rate.
    fn coalesces_wake_ups(&self) -> bool {
        false
    }

    fn deadline(&self) -> Instant {
        self.sender.deadline().min(self.receiver.deadline())
    }

    fn on_timeout(&mut self, io: &mut Io, now: Instant) {
        self.receiver.on_timeout(now, |packet| self.delivery.push(&mut io.device, packet));
        while let Some(path) = self.sender.poll_keepalive(now) {
            self.send_keepalive(io, now, path);
        }
    }

    fn set_link(&mut self, _io: &mut Io, _now: Instant, socket: usize, up: bool) {
        for (index, _) in self.paths.iter().enumerate().filter(|(_, path)| path.socket == socket) {
            self.sender.set_link(PathId(index as u16), up);
        }
    }

    fn set_allowed_ips(&mut self, networks: &[IpNet]) {
        self.delivery.allowed_ips = allowed_ips(networks);
    }

    fn report(&self, report: &mut Report) {
        let path_report = |(path, id): (&MptPath, PathId)| {
            let status = self.sender.status(id);
            MptPathReport { up: status.up, failures: status.failures, ..path.report }
        };
        report.mpt = Some(MptReport {
            paths: self.paths.iter().zip((0..).map(PathId)).map(path_report).collect(),
            resequencer: self.receiver.counters().copied(),
            buffered_packets: self.receiver.buffered_packets(),
            no_path_packets: self.sender.no_path_packets(),
            unallowed_source: self.delivery.unallowed_source,
            malformed: self.delivery.malformed,
        });
    }
}

/// Marks the inner packet of each datagram CE (RFC 6040). Packets that are not ECN-capable stay as they are.
fn mark_ce(datagrams: &mut [u8], segment_size: usize) {
    for datagram in datagrams.chunks_mut(segment_size.max(1)) {
        let payload = gre::Header::parse(datagram).map_or(0, |(_, payload)| payload.len());
        let start = datagram.len() - payload;
        ecn::set_ce(&mut datagram[start..]);
    }
}
