//! MPT's tunnel: packets with one common counter over all paths, in plain GRE-in-UDP, neither sealed nor answered.
//!
//! Outward a super-packet is cut, each packet gets a path from the scheduler and its number, and joins that path's batch.
//! Inward a datagram must come from its path's peer; its packet goes through the resequencer, and what comes out is
//! coalesced into super-packets again. What a legacy `mptsrv` expects is kept: no key and no checksum on the wire, no
//! duplicates, whole-second keepalives if so configured, the outer header's DSCP alone (its ECN would be lost).

mod life;
mod numbers;

use super::batch::Outlet;
use super::buffer::Slice;
use super::inlet::Inlet;
use super::reactor::{Engine, Io};
use super::report::{MptPathReport, MptReport, Report};
use super::setup::{Error, MptPath, MptSetup};
use super::socket::{Arrival, Route, Sent, Socket};
use life::Life;
use machine::{Resequencer, Striper};
use numbers::{Number, Numbers};
use std::collections::BTreeMap;
use units::{Instant, PathId};
use wire::inner::ecn::{self, Ecn};
use wire::mpt::{self, Keepalive};
use wire::offload::Offload;
use wire::segment::Segmenter;
use wire::{gre, inner};

/// ECN's two bits of a TOS byte.
const ECN: u8 = 3;

struct Path {
    socket: usize,
    outlet: Outlet,
    life: Life,
    was_up: bool,
    report: MptPathReport,
}

/// What arrives is put back into order.
struct Order {
    numbers: Numbers,
    resequencer: Resequencer<Slice>,
}

/// One MPT connection.
pub(super) struct Mpt {
    setup: MptSetup,
    striper: Striper,
    paths: Vec<Path>,
    order: Option<Order>,
    inlet: Inlet,
    keepalive: [u8; Keepalive::LEN],
    pathless: u64,
    /// The earliest deadline of a path's life.
    life_deadline: Instant,
}

impl Mpt {
    /// Nothing sent yet.
    ///
    /// # Errors
    /// A scheduler that is not there or needs measurements, a path without a socket, or of the other address family.
    pub(super) fn new(setup: MptSetup, io: &Io) -> Result<Self, Error> {
        let entry = schedule::find(&setup.scheduler).filter(|entry| entry.needs == schedule::Needs::Nothing);
        let entry = entry.ok_or_else(|| {
            let names: Vec<&str> =
                schedule::REGISTRY.iter().filter(|e| e.needs == schedule::Needs::Nothing).map(|e| e.name).collect();
            Error::setup(format!("mpt mode has no scheduler `{}`; there are {}", setup.scheduler, names.join(", ")))
        })?;
        let weights: Vec<u32> = setup.paths.iter().map(|path| path.weight).collect();
        let scheduler = entry.scheduler(&weights, 0, &BTreeMap::new());
        let scheduler = scheduler.map_err(|bad| Error::setup(format!("scheduler {}: {bad:?}", entry.name)))?;
        let paths = setup.paths.iter().map(|path| open(path, io)).collect::<Result<Vec<_>, _>>()?;
        let order = setup.reorder.map(|reorder| Order {
            numbers: Numbers::new(reorder.window),
            resequencer: Resequencer::new(reorder.window, reorder.timeout, reorder.deliver_late),
        });
        Ok(Self {
            striper: Striper::new(scheduler, paths.len()),
            keepalive: Keepalive { sender: setup.local, receiver: setup.remote }.to_bytes(),
            inlet: Inlet::new(&io.device),
            pathless: 0,
            life_deadline: Instant::ZERO,
            setup,
            paths,
            order,
        })
    }

    /// Lays the next packet of `cut` on a path. False after the last.
    fn lay(&mut self, sockets: &mut [Socket], now: Instant, cut: &mut Segmenter<'_>, tos: u8, protocol: u16) -> bool {
        let most = cut.longest();
        let Some((sequence, id)) = self.striper.assign(now, most as u32) else {
            self.pathless += 1;
            return false;
        };
        let sequence = self.setup.sequence.then_some(sequence as u32);
        let header = gre::Header { protocol, sequence, ..gre::Header::default() };
        let Path { outlet, socket, report, .. } = &mut self.paths[id.index()];
        let sent = outlet.push(&mut sockets[*socket], header.len() + most, tos & !ECN, |datagram| {
            let Some(len) = cut.next_into(&mut datagram[header.len()..]) else { return 0 };
            header.write(&mut datagram[..header.len() + len]);
            report.sent.add(1, len);
            header.len() + len
        });
        self.note(now, id.index(), sent);
        true
    }

    fn flush_paths(&mut self, io: &mut Io, now: Instant) {
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            let sent = path.outlet.flush(&mut io.sockets[path.socket]);
            self.note(now, index, sent);
        }
    }

    /// What sending told of a path.
    fn note(&mut self, now: Instant, path: usize, sent: Sent) {
        if sent == Sent::Gone {
            self.paths[path].life.rest(now);
            self.refresh(path);
        }
    }

    /// Tells the scheduler what a path's life says.
    fn refresh(&mut self, index: usize) {
        let path = &mut self.paths[index];
        let up = path.life.is_up();
        if up != path.was_up {
            path.was_up = up;
            path.report.failures += u64::from(!up);
            self.striper.set_usable(PathId(index as u16), up);
        }
        self.life_deadline = self.paths.iter().map(|path| path.life.deadline()).min().unwrap_or(Instant::NEVER);
    }

    /// One datagram of `path`. False if nobody can use it.
    fn accept(&mut self, io: &mut Io, now: Instant, path: usize, datagram: &Slice) -> bool {
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
        self.order(io, now, header.sequence, packet);
        true
    }

    /// Lets a packet through the resequencer, if there is one and the packet has a number (RFC 2890, section 2.2: one
    /// without is always in order).
    fn order(&mut self, io: &mut Io, now: Instant, sequence: Option<u32>, packet: Slice) {
        let (Some(order), Some(low)) = (&mut self.order, sequence) else {
            self.inlet.push(&mut io.device, packet);
            return;
        };
        let inlet = &mut self.inlet;
        match order.numbers.expand(low) {
            Number::Is(number) => {
                order.resequencer.handle(now, number, packet, |up| inlet.push(&mut io.device, up.packet));
            }
            Number::Restart(number) => {
                order.resequencer.restart(now, number, |up| inlet.push(&mut io.device, up.packet));
                order.resequencer.handle(now, number, packet, |up| inlet.push(&mut io.device, up.packet));
            }
            Number::Stale => {}
        }
    }

    fn send_keepalive(&mut self, io: &mut Io, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        let socket = &mut io.sockets[path.socket];
        path.outlet.push(socket, Keepalive::LEN, 0, |datagram| {
            datagram.copy_from_slice(&self.keepalive);
            Keepalive::LEN
        });
        let sent = path.outlet.flush(socket);
        self.note(now, index, sent);
    }
}

/// A path over one of the sockets.
fn open(path: &MptPath, io: &Io) -> Result<Path, Error> {
    let Some(socket) = io.sockets.get(path.socket) else {
        return Err(Error::setup(format!("path {}: there is no socket {}", path.name, path.socket)));
    };
    if socket.is_ipv4().is_some_and(|v4| v4 != path.remote.is_ipv4()) {
        return Err(Error::setup(format!("path {}: {} is not of its socket's address family", path.name, path.remote)));
    }
    let outlet = Outlet::new(Route { remote: path.remote, source: None });
    let report = MptPathReport { up: true, ..MptPathReport::default() };
    Ok(Path { socket: path.socket, outlet, life: Life::new(path.keepalive), was_up: true, report })
}

impl Engine for Mpt {
    fn outward(&mut self, io: &mut Io, now: Instant, len: usize) {
        let Io { device, sockets, scratch, .. } = io;
        let parcel = &scratch[..len];
        let parsed = if device.has_header() { Offload::parse(parcel) } else { Ok((Offload::default(), parcel)) };
        let cut = parsed
            .and_then(|(offload, packet)| Ok((Segmenter::new(offload, packet)?, offload.packets(packet), packet)));
        let Ok((mut cut, packets, packet)) = cut else {
            device.report.malformed += 1;
            return;
        };
        let tos = inner::tos(packet).unwrap_or(0);
        let protocol = if packet[0] >> 4 == 6 { gre::IPV6 } else { gre::IPV4 };
        for _ in 0..packets {
            if !self.lay(sockets, now, &mut cut, tos, protocol) {
                break;
            }
        }
        if self.setup.holds_back {
            self.flush_paths(io, now);
        }
    }

    fn inward(&mut self, io: &mut Io, now: Instant, socket: usize, arrival: &Arrival) {
        let from = arrival.route.remote.ip();
        let is_ours = |path: &Path| path.socket == socket && path.outlet.route().remote.ip() == from;
        let datagrams = arrival.len.div_ceil(arrival.segment.max(1));
        let Some(path) = self.paths.iter().position(is_ours) else {
            io.sockets[socket].report.refused += datagrams as u64;
            return;
        };
        if Ecn::of(arrival.tos) == Ecn::Marked {
            mark(&mut io.scratch[..arrival.len], arrival.segment);
        }
        let Some(whole) = io.pool.keep(&mut io.scratch, arrival.len) else { return };
        let mut refused = 0;
        for start in (0..arrival.len).step_by(arrival.segment.max(1)) {
            let end = arrival.len.min(start + arrival.segment);
            refused += u64::from(!self.accept(io, now, path, &whole.slice(start as u32, end as u32)));
        }
        io.sockets[socket].report.refused += refused;
        if refused < datagrams as u64 {
            self.paths[path].life.hear(now);
            self.refresh(path);
        }
    }

    fn flush(&mut self, io: &mut Io, now: Instant) {
        self.inlet.flush(&mut io.device);
        self.flush_paths(io, now);
    }

    fn writable(&mut self, io: &mut Io, now: Instant, socket: usize) {
        for index in 0..self.paths.len() {
            let path = &mut self.paths[index];
            if path.socket == socket {
                let sent = path.outlet.retry(&mut io.sockets[socket]);
                self.note(now, index, sent);
            }
        }
    }

    fn holds_back(&self) -> bool {
        self.setup.holds_back && self.paths.iter().any(|path| path.outlet.is_blocked())
    }

    fn is_blocked(&self, socket: usize) -> bool {
        self.paths.iter().any(|path| path.socket == socket && path.outlet.is_blocked())
    }

    fn deadline(&self) -> Instant {
        let order = self.order.as_ref().map_or(Instant::NEVER, |order| order.resequencer.deadline());
        self.life_deadline.min(order)
    }

    fn on_timeout(&mut self, io: &mut Io, now: Instant) {
        if let Some(order) = &mut self.order {
            let inlet = &mut self.inlet;
            order.resequencer.on_timeout(now, |up| inlet.push(&mut io.device, up.packet));
        }
        if now < self.life_deadline {
            return;
        }
        for index in 0..self.paths.len() {
            if self.paths[index].life.on_timeout(now) {
                self.send_keepalive(io, now, index);
            }
            self.refresh(index);
        }
    }

    fn set_link(&mut self, _io: &mut Io, _now: Instant, socket: usize, up: bool) {
        for index in 0..self.paths.len() {
            if self.paths[index].socket == socket {
                self.paths[index].life.link = up;
                self.refresh(index);
            }
        }
    }

    fn set_path(&mut self, _io: &mut Io, _now: Instant, path: usize, enabled: bool) {
        if path < self.paths.len() {
            self.paths[path].life.enabled = enabled;
            self.refresh(path);
        }
    }

    fn report(&self, report: &mut Report) {
        let path = |path: &Path| MptPathReport { up: path.was_up, heard: path.life.heard(), ..path.report };
        report.mpt = Some(MptReport {
            paths: self.paths.iter().map(path).collect(),
            resequencing: self.order.as_ref().map(|order| *order.resequencer.counters()),
            held: self.order.as_ref().map_or(0, |order| order.resequencer.held()),
            pathless: self.pathless,
        });
    }
}

/// Marks the inner packet of each datagram whose outer header was marked (RFC 6040). One whose transport cannot be told
/// stays as it is: MPT has no way to say it otherwise.
fn mark(datagrams: &mut [u8], segment: usize) {
    for datagram in datagrams.chunks_mut(segment.max(1)) {
        let payload = gre::Header::parse(datagram).map_or(0, |(_, payload)| payload.len());
        let start = datagram.len() - payload;
        ecn::mark(&mut datagram[start..]);
    }
}
