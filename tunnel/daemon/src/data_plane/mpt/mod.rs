//! The engine of MPT's tunnel: packets with one sequence number over all paths in plain GRE-in-UDP, neither authenticated nor
//! acknowledged.
//!
//! A super-packet from the device is segmented; each packet gets a sequence number and a path from the scheduler, and joins that
//! path's batch. A received datagram must come from its path's peer; its packet passes the resequencer and is coalesced into
//! super-packets again. On the wire everything is as `mptsrv` expects it: no key, no checksum, no duplicates, whole-second
//! keepalives if so configured, the DSCP alone in the outer header (its ECN field would be lost).

mod liveness;
mod sequence;

use super::address::PathAddress;
use super::buffer::BufferSlice;
use super::config::{Error, KeepaliveConfig, MptConfig, MptPathConfig};
use super::event_loop::{Engine, Io};
use super::receive::ReceiveBatch;
use super::report::{MptPathReport, MptReport, Report};
use super::socket::{ReceivedDatagrams, SendOutcome, Socket};
use super::transmit::TransmitQueue;
use crate::config::NamedAlgorithm;
use liveness::Liveness;
use machine::{Resequencer, Striper};
use schedule::{Needs, Scheduler, SchedulerEntry};
use sequence::{Sequence, SequenceExpander};
use units::{Instant, PathId};
use wire::inner::ecn::{self, Ecn};
use wire::mpt::{self, Keepalive};
use wire::offload::Offload;
use wire::segment::Segmenter;
use wire::{gre, inner};

/// The ECN field of a TOS byte.
const ECN: u8 = 3;

/// A path of the connection.
struct MptPath {
    socket: usize,
    queue: TransmitQueue,
    liveness: Liveness,
    was_up: bool,
    report: MptPathReport,
}

/// The reorder buffer.
struct Reorder {
    expander: SequenceExpander,
    resequencer: Resequencer<BufferSlice>,
}

/// An MPT connection.
pub(super) struct MptEngine {
    config: MptConfig,
    striper: Striper,
    paths: Vec<MptPath>,
    reorder: Option<Reorder>,
    receive: ReceiveBatch,
    keepalive: [u8; Keepalive::LEN],
    pathless: u64,
    /// The earliest deadline of a path's liveness.
    liveness_deadline: Instant,
}

impl MptEngine {
    /// A connection that has sent nothing.
    ///
    /// # Errors
    /// An unknown scheduler or one that needs measurements; a path without a socket of its address family.
    pub(super) fn new(config: MptConfig, io: &Io) -> Result<Self, Error> {
        let weights: Vec<u32> = config.paths.iter().map(|path| path.weight).collect();
        let scheduler = mpt_scheduler(&config.scheduler, &weights)?;
        let paths = config.paths.iter().map(|path| open(path, config.keepalive, io)).collect::<Result<Vec<_>, _>>()?;
        let reorder = config.reorder.map(|reorder| Reorder {
            expander: SequenceExpander::new(reorder.window),
            resequencer: Resequencer::new(reorder.window, reorder.timeout, reorder.deliver_late),
        });
        Ok(Self {
            striper: Striper::new(scheduler, paths.len()),
            keepalive: Keepalive { sender: config.local, receiver: config.remote }.to_bytes(),
            receive: ReceiveBatch::new(&io.device),
            pathless: 0,
            liveness_deadline: Instant::ZERO,
            config,
            paths,
            reorder,
        })
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
        let max = segments.longest();
        let Some((sequence, id)) = self.striper.assign(now, max as u32) else {
            self.pathless += 1;
            return false;
        };
        let header = gre::Header { protocol, sequence: Some(sequence as u32), ..gre::Header::default() };
        let MptPath { queue, socket, report, .. } = &mut self.paths[id.index()];
        let sent = queue.push(&mut sockets[*socket], header.len() + max, tos & !ECN, |datagram| {
            let Some(len) = segments.next_into(&mut datagram[header.len()..]) else { return 0 };
            header.write(&mut datagram[..header.len() + len]);
            report.sent.add(1, len);
            header.len() + len
        });
        self.on_sent(now, id.index(), sent);
        true
    }

    fn flush_paths(&mut self, io: &mut Io, now: Instant) {
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            let sent = path.queue.flush(&mut io.sockets[path.socket]);
            self.on_sent(now, index, sent);
        }
    }

    /// Suspends a path whose interface refused a packet.
    fn on_sent(&mut self, now: Instant, path: usize, sent: SendOutcome) {
        if sent == SendOutcome::Unreachable {
            self.paths[path].liveness.suspend(now);
            self.update_usable(path);
        }
    }

    /// Tells the scheduler whether a path is up.
    fn update_usable(&mut self, index: usize) {
        let path = &mut self.paths[index];
        let up = path.liveness.is_up();
        if up != path.was_up {
            path.was_up = up;
            path.report.failures += u64::from(!up);
            self.striper.set_usable(PathId(index as u16), up);
        }
        self.liveness_deadline = self.paths.iter().map(|path| path.liveness.deadline()).min().unwrap_or(Instant::NEVER);
    }

    /// Handles one datagram of `path`. False if it was dropped.
    fn on_datagram(&mut self, io: &mut Io, now: Instant, path: usize, datagram: &BufferSlice) -> bool {
        let Ok((header, payload)) = gre::Header::parse(datagram) else { return false };
        let (first, bytes) = (payload.first().copied().unwrap_or(0), payload.len());
        let start = (datagram.len() - bytes) as u32;
        if mpt::is_control(payload) {
            let is_keepalive = Keepalive::parse(payload).is_ok();
            self.paths[path].report.keepalives += u64::from(is_keepalive);
            return is_keepalive;
        }
        if !matches!(first >> 4, 4 | 6) {
            return false;
        }
        self.paths[path].report.received.add(1, bytes);
        let packet = datagram.slice(start, datagram.len() as u32);
        self.resequence(io, now, header.sequence, packet);
        true
    }

    /// Passes a packet through the reorder buffer, if there is one. A packet without a sequence number is always in order
    /// (RFC 2890, section 2.2).
    fn resequence(&mut self, io: &mut Io, now: Instant, sequence: Option<u32>, packet: BufferSlice) {
        let (Some(reorder), Some(low)) = (&mut self.reorder, sequence) else {
            self.receive.push(&mut io.device, packet);
            return;
        };
        let receive = &mut self.receive;
        match reorder.expander.expand(low) {
            Sequence::Number(number) => {
                reorder.resequencer.handle(now, number, packet, |release| receive.push(&mut io.device, release.packet));
            }
            Sequence::Restart(number) => {
                reorder.resequencer.restart(now, number, |release| receive.push(&mut io.device, release.packet));
                reorder.resequencer.handle(now, number, packet, |release| receive.push(&mut io.device, release.packet));
            }
            Sequence::Stale => {}
        }
    }

    fn send_keepalive(&mut self, io: &mut Io, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        let socket = &mut io.sockets[path.socket];
        path.queue.push(socket, Keepalive::LEN, 0, |datagram| {
            datagram.copy_from_slice(&self.keepalive);
            Keepalive::LEN
        });
        let sent = path.queue.flush(socket);
        self.on_sent(now, index, sent);
    }
}

/// The scheduler of a connection, which measures nothing.
fn mpt_scheduler(named: &NamedAlgorithm, weights: &[u32]) -> Result<Box<dyn Scheduler>, Error> {
    let usable = |entry: &&SchedulerEntry| entry.needs == Needs::Nothing;
    let entry = schedule::find(&named.name).filter(usable).ok_or_else(|| {
        let names: Vec<&str> = schedule::REGISTRY.iter().copied().filter(usable).map(|entry| entry.name).collect();
        Error::config(format!("mpt mode has no scheduler `{}`; there are {}", named.name, names.join(", ")))
    })?;
    let scheduler = entry.scheduler(weights, 0, &named.parameters);
    scheduler.map_err(|bad| Error::config(format!("scheduler {}: {bad}", entry.name)))
}

/// A path over one of the sockets.
fn open(path: &MptPathConfig, keepalive: Option<KeepaliveConfig>, io: &Io) -> Result<MptPath, Error> {
    let Some(socket) = io.sockets.get(path.socket) else {
        return Err(Error::config(format!("path {}: there is no socket {}", path.name, path.socket)));
    };
    if socket.is_ipv4().is_some_and(|v4| v4 != path.remote.is_ipv4()) {
        return Err(Error::config(format!(
            "path {}: {} is not of its socket's address family",
            path.name, path.remote
        )));
    }
    let queue = TransmitQueue::new(PathAddress::to(path.remote));
    let report = MptPathReport { up: true, ..MptPathReport::default() };
    Ok(MptPath { socket: path.socket, queue, liveness: Liveness::new(keepalive), was_up: true, report })
}

impl Engine for MptEngine {
    fn on_device_packet(&mut self, io: &mut Io, now: Instant, len: usize) {
        let Io { device, sockets, read_buffer, .. } = io;
        let bytes = &read_buffer[..len];
        let parsed = if device.has_header() { Offload::parse(bytes) } else { Ok((Offload::default(), bytes)) };
        let segmented = parsed
            .and_then(|(offload, packet)| Ok((Segmenter::new(offload, packet)?, offload.packets(packet), packet)));
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
        if self.config.backpressure {
            self.flush_paths(io, now);
        }
    }

    fn on_datagrams(&mut self, io: &mut Io, now: Instant, socket: usize, received: &ReceivedDatagrams) {
        let from = received.address.remote.ip();
        let is_path = |path: &MptPath| path.socket == socket && path.queue.address().remote.ip() == from;
        let datagrams = received.len.div_ceil(received.segment.max(1));
        let Some(path) = self.paths.iter().position(is_path) else {
            io.sockets[socket].report.refused += datagrams as u64;
            return;
        };
        if Ecn::of(received.tos) == Ecn::Marked {
            mark_ce(&mut io.read_buffer[..received.len], received.segment);
        }
        let Some(whole) = io.pool.freeze(&mut io.read_buffer, received.len) else { return };
        let mut refused = 0;
        for start in (0..received.len).step_by(received.segment.max(1)) {
            let end = received.len.min(start + received.segment);
            refused += u64::from(!self.on_datagram(io, now, path, &whole.slice(start as u32, end as u32)));
        }
        io.sockets[socket].report.refused += refused;
        if refused < datagrams as u64 {
            self.paths[path].liveness.on_received(now);
            self.update_usable(path);
        }
    }

    fn flush(&mut self, io: &mut Io, now: Instant) {
        self.receive.flush(&mut io.device);
        self.flush_paths(io, now);
    }

    fn on_writable(&mut self, io: &mut Io, now: Instant, socket: usize) {
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            if path.socket == socket {
                let sent = path.queue.send_queued(&mut io.sockets[socket]);
                self.on_sent(now, index, sent);
            }
        }
    }

    fn is_device_paused(&self) -> bool {
        self.config.backpressure && self.paths.iter().any(|path| path.queue.is_blocked())
    }

    fn is_blocked(&self, socket: usize) -> bool {
        self.paths.iter().any(|path| path.socket == socket && path.queue.is_blocked())
    }

    fn deadline(&self) -> Instant {
        let reorder = self.reorder.as_ref().map_or(Instant::NEVER, |reorder| reorder.resequencer.deadline());
        self.liveness_deadline.min(reorder)
    }

    fn on_timeout(&mut self, io: &mut Io, now: Instant) {
        if let Some(reorder) = &mut self.reorder {
            let receive = &mut self.receive;
            reorder.resequencer.on_timeout(now, |release| receive.push(&mut io.device, release.packet));
        }
        if now < self.liveness_deadline {
            return;
        }
        for index in 0..self.paths.len() {
            if self.paths[index].liveness.on_timeout(now) {
                self.send_keepalive(io, now, index);
            }
            self.update_usable(index);
        }
    }

    fn set_link(&mut self, _io: &mut Io, _now: Instant, socket: usize, up: bool) {
        for index in 0..self.paths.len() {
            if self.paths[index].socket == socket {
                self.paths[index].liveness.link = up;
                self.update_usable(index);
            }
        }
    }

    fn set_path_enabled(&mut self, _io: &mut Io, _now: Instant, path: usize, enabled: bool) {
        if path < self.paths.len() {
            self.paths[path].liveness.enabled = enabled;
            self.update_usable(path);
        }
    }

    fn report(&self, report: &mut Report) {
        let path = |path: &MptPath| MptPathReport { up: path.was_up, heard: path.liveness.heard(), ..path.report };
        report.mpt = Some(MptReport {
            paths: self.paths.iter().map(path).collect(),
            resequencing: self.reorder.as_ref().map(|reorder| *reorder.resequencer.counters()),
            held: self.reorder.as_ref().map_or(0, |reorder| reorder.resequencer.held()),
            pathless: self.pathless,
        });
    }
}

/// Marks the inner packet of each datagram CE (RFC 6040). Packets that are not ECN-capable stay as they are.
fn mark_ce(datagrams: &mut [u8], segment: usize) {
    for datagram in datagrams.chunks_mut(segment.max(1)) {
        let payload = gre::Header::parse(datagram).map_or(0, |(_, payload)| payload.len());
        let start = datagram.len() - payload;
        ecn::mark(&mut datagram[start..]);
    }
}
