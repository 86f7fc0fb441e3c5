//! One peer: its machine while there is a session, the way out of each of its paths, what it may send and receive.

use super::assembler::Assembler;
use super::parcel::Parcel;
use crate::plane::batch::Outlet;
use crate::plane::reactor::Io;
use crate::plane::report::{Count, PeerReport, RouteReport};
use crate::plane::setup::{Carriage, Error, PeerPath, PeerSetup};
use crate::plane::socket::{Route, Sent, Socket};
use protocol::tunnel::{Content, Data, Endpoint, Event, MOST_PATHS, PathSetup, Setup, Transmit};
use seal::{Entropy, HEADER, OVERHEAD, PeerId, Peers, SystemEntropy};
use units::{Instant, PathId};
use wire::frame::DataHeader;

/// ECN's bits of a TOS byte, and those of ECT(0).
const ECN: u8 = 3;
const CAPABLE: u8 = 2;
/// What is tried on a path of which nothing is known: Ethernet's MTU.
const USUAL_MTU: u16 = 1500;

/// Where a path leads now.
pub(super) struct Lane {
    pub(super) socket: usize,
    pub(super) outlet: Outlet,
    /// The largest packet number that came by it: older ones do not move the path.
    newest: Option<u64>,
}

/// One peer.
pub(super) struct Peer {
    setup: PeerSetup,
    pub(super) id: PeerId,
    pub(super) endpoint: Option<Endpoint<Parcel>>,
    /// Paths that a person took out of use.
    disabled: [bool; MOST_PATHS],
    /// By path id; `None` as long as nobody knows where the path leads.
    pub(super) lanes: Vec<Option<Lane>>,
    pub(super) assembler: Assembler,
    pub(super) sent: Count,
    pub(super) received: Count,
    pub(super) sessionless: u64,
    pub(super) foreign: u64,
    /// Packets that made no sense once they were whole.
    pub(super) malformed: u64,
    /// Frames of a datagram as bytes; lent out while they are sealed.
    frames: Vec<u8>,
}

impl Peer {
    /// No session yet.
    ///
    /// # Errors
    /// An algorithm that is not there, a path without a socket or of another address family.
    pub(super) fn new(setup: PeerSetup, id: PeerId, io: &Io) -> Result<Self, Error> {
        machine(&setup)?;
        if setup.paths.len() > MOST_PATHS {
            return Err(Error::setup(format!("peer {}: at most {MOST_PATHS} paths", setup.name)));
        }
        let lanes = setup.paths.iter().map(|path| lane(path, io)).collect::<Result<_, _>>()?;
        Ok(Self {
            setup,
            id,
            endpoint: None,
            disabled: [false; MOST_PATHS],
            lanes,
            assembler: Assembler::new(),
            sent: Count::default(),
            received: Count::default(),
            sessionless: 0,
            foreign: 0,
            malformed: 0,
            frames: Vec::new(),
        })
    }

    /// Whether we know where to find it, and so ask for a session ourselves.
    pub(super) fn is_known(&self) -> bool {
        self.lanes.iter().any(Option::is_some)
    }

    /// Both ends begin anew: nothing of the old machine is left.
    pub(super) fn begin(&mut self, io: &Io) {
        // It was built before from the same setup.
        let Ok(setup) = machine(&self.setup) else { return };
        self.assembler = Assembler::new();
        self.endpoint = Some(Endpoint::new(setup));
        for index in 0..self.lanes.len() {
            if let Some(lane) = &mut self.lanes[index] {
                lane.newest = None;
                self.open_path(io, index);
            }
        }
    }

    /// The machine may use a path.
    fn open_path(&mut self, io: &Io, index: usize) {
        let (Some(endpoint), Some(Some(lane))) = (&mut self.endpoint, self.lanes.get(index)) else { return };
        let path = self.setup.paths.get(index);
        let mtu = path.map_or(USUAL_MTU, |path| path.mtu);
        let v4 = io.sockets[lane.socket].local().is_none_or(|local| local.is_ipv4());
        let headers = if v4 { 28 } else { 48 };
        let setup = PathSetup {
            backup: path.is_some_and(|path| path.backup),
            metered: path.is_some_and(|path| path.metered),
            largest: u32::from(mtu).saturating_sub(headers),
            headers,
            most: path.and_then(|path| path.rate),
        };
        endpoint.set_path(PathId(index as u16), setup);
    }

    /// An authentic datagram came by `path`: the path leads to where it came from. False if there can be no such path.
    pub(super) fn follow(&mut self, io: &mut Io, path: u8, number: u64, socket: usize, route: Route) -> bool {
        let index = usize::from(path);
        if index >= MOST_PATHS {
            return false;
        }
        if self.lanes.len() <= index {
            self.lanes.resize_with(index + 1, || None);
        }
        match &mut self.lanes[index] {
            Some(lane) if lane.newest.is_some_and(|newest| number < newest) => return true,
            Some(lane) if lane.socket == socket => lane.outlet.set_route(&mut io.sockets[socket], route),
            lane => *lane = Some(Lane { socket, outlet: Outlet::new(route), newest: None }),
        }
        if let Some(lane) = &mut self.lanes[index] {
            lane.newest = Some(number);
        }
        if self.endpoint.as_ref().is_some_and(|endpoint| !endpoint.has_path(PathId(u16::from(path)))) {
            self.open_path(io, index);
        }
        true
    }

    /// A path is taken out of use, or put back. Nothing is sent on it then, not even answers to probes, so that both ends
    /// find it dead; its numbers go on when it is back.
    pub(super) fn set_enabled(&mut self, now: Instant, path: usize, enabled: bool) {
        let Some(disabled) = self.disabled.get_mut(path) else { return };
        *disabled = !enabled;
        if let Some(endpoint) = self.endpoint.as_mut().filter(|_| !enabled) {
            endpoint.on_unreachable(now, PathId(path as u16));
        }
    }

    /// Sends what the machine lets out now, and says what happened.
    pub(super) fn transmit(&mut self, sockets: &mut [Socket], seal: &mut Peers, now: Instant) {
        while let Some(transmit) = self.endpoint.as_mut().and_then(|endpoint| endpoint.poll_transmit(now)) {
            let path = transmit.path;
            let sent = self.send(sockets, seal, now, &transmit);
            self.note(now, path, sent);
        }
        for index in 0..self.lanes.len() {
            let Some(lane) = &mut self.lanes[index] else { continue };
            let sent = lane.outlet.flush(&mut sockets[lane.socket]);
            self.note(now, PathId(index as u16), sent);
        }
    }

    /// Seals one datagram into its path's batch.
    fn send(&mut self, sockets: &mut [Socket], seal: &mut Peers, now: Instant, transmit: &Transmit<Parcel>) -> Sent {
        let index = transmit.path.index();
        let Some(Some(lane)) = self.lanes.get_mut(index).filter(|_| !self.disabled[index]) else { return Sent::Gone };
        let (id, path, number) = (self.id, transmit.path.0 as u8, transmit.number);
        let socket = &mut sockets[lane.socket];
        let mut sealed = |most: usize, tos: u8, body: &dyn Fn(&mut [u8])| {
            lane.outlet.push(socket, OVERHEAD + most, tos, |datagram| {
                body(&mut datagram[HEADER..HEADER + most]);
                match seal.seal(now, id, path, number, datagram) {
                    Ok(()) => datagram.len(),
                    Err(_) => 0,
                }
            })
        };
        match &transmit.content {
            Content::Data(data) => {
                let header = data_header(data).to_bytes();
                let bytes = &data.payload.bytes;
                sealed(header.len() + bytes.len(), outer(data.payload.tos), &|body| {
                    body[..header.len()].copy_from_slice(&header);
                    body[header.len()..].copy_from_slice(bytes);
                })
            }
            Content::Control { pad_to } => {
                self.frames.clear();
                let frames = self.endpoint.as_ref().map_or(&[][..], Endpoint::control);
                frames.iter().for_each(|frame| frame.write(&mut self.frames));
                self.frames.resize(self.frames.len().max(*pad_to as usize), 0);
                let frames = &self.frames;
                sealed(frames.len(), 0, &|body| body.copy_from_slice(frames))
            }
        }
    }

    /// What sending told of a path.
    pub(super) fn note(&mut self, now: Instant, path: PathId, sent: Sent) {
        let Some(endpoint) = &mut self.endpoint else { return };
        match sent {
            Sent::TooBig => endpoint.on_too_large(now, path),
            Sent::Gone => endpoint.on_unreachable(now, path),
            Sent::Done | Sent::Blocked(_) => {}
        }
    }

    /// What the machine has to tell: whether the session should be renewed, and whether the peer went away.
    pub(super) fn events(&mut self) -> (bool, bool) {
        let Some(endpoint) = &mut self.endpoint else { return (false, false) };
        let (mut failed, mut closed) = (false, false);
        while let Some(event) = endpoint.poll_event() {
            failed |= matches!(event, Event::PathDown(_));
            closed |= event == Event::Closed;
        }
        (failed && endpoint.status().paths.iter().all(|path| !path.up), closed)
    }

    pub(super) fn report(&self, seal: &Peers) -> PeerReport {
        let lanes = (0..).zip(&self.lanes).filter_map(|(path, lane)| Some((path, lane.as_ref()?)));
        let route =
            |(path, lane): (u8, &Lane)| RouteReport { path, socket: lane.socket, remote: lane.outlet.route().remote };
        PeerReport {
            name: self.setup.name.clone(),
            seal: seal.status(self.id),
            status: self.endpoint.as_ref().map(Endpoint::status),
            routes: lanes.map(route).collect(),
            sent: self.sent,
            received: self.received,
            sessionless: self.sessionless,
            foreign: self.foreign,
            broken: self.assembler.broken + self.malformed,
        }
    }
}

fn data_header(data: &Data<Parcel>) -> DataHeader {
    DataHeader {
        stream: data.stream,
        sequence: data.sequence,
        first: data.first,
        last: data.last,
        again: data.again,
        offload: data.payload.offload,
    }
}

/// The outer header's TOS: the inner DSCP, and ECN as RFC 6040 copies it. A mark that the packet bears already travels
/// inside, and would count against this path: outside, it is one that can be marked.
fn outer(inner: u8) -> u8 {
    if inner & ECN == ECN { inner & !ECN | CAPABLE } else { inner }
}

/// The machine's setup, built from names.
fn machine(setup: &PeerSetup) -> Result<Setup, Error> {
    let Carriage { scheduler, congestion, .. } = &setup.carriage;
    let bad = |what: String| Error::setup(format!("peer {}: {what}", setup.name));
    let weights: Vec<u32> = setup.paths.iter().map(|path| path.weight).collect();
    let entry = schedule::find(&scheduler.name).filter(|entry| entry.fill == schedule::Fill::Window);
    let entry = entry.ok_or_else(|| bad(format!("there is no scheduler `{}` for tunnels", scheduler.name)))?;
    let built = entry.scheduler(&weights, 0, &scheduler.parameters);
    let built = built.map_err(|error| bad(format!("scheduler {}: {error}", entry.name)))?;
    let controller = congestion.as_ref().map(|choice| {
        let entry = control::registry::find(&choice.name);
        let entry = entry.ok_or_else(|| bad(format!("there is no congestion control `{}`", choice.name)))?;
        entry.controller(&choice.parameters).map_err(|error| bad(format!("{}: {error}", entry.name)))
    });
    let mut seed = [0; 8];
    SystemEntropy.fill(&mut seed);
    let usual = Setup::usual(built, controller.transpose()?, u64::from_le_bytes(seed));
    Ok(Setup {
        repair: setup.carriage.repair,
        order: setup.carriage.order,
        deliver_late: setup.carriage.deliver_late,
        hold_most: setup.carriage.hold_most.unwrap_or(usual.hold_most),
        ..usual
    })
}

fn lane(path: &PeerPath, io: &Io) -> Result<Option<Lane>, Error> {
    let Some(socket) = io.sockets.get(path.socket) else {
        return Err(Error::setup(format!("path {}: there is no socket {}", path.name, path.socket)));
    };
    let Some(remote) = path.remote else { return Ok(None) };
    if socket.local().is_some_and(|local| local.is_ipv4() != remote.is_ipv4()) {
        return Err(Error::setup(format!("path {}: {remote} is not of its socket's address family", path.name)));
    }
    let outlet = Outlet::new(Route { remote, source: None });
    Ok(Some(Lane { socket: path.socket, outlet, newest: None }))
}
