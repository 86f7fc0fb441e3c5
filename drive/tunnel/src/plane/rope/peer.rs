//! One peer of the host: the way out of each of its paths, what it may send and receive.

use super::Host;
use super::assembler::Assembler;
use super::place::Place;
use crate::plane::batch::Outlet;
use crate::plane::reactor::Io;
use crate::plane::report::{Count, PeerReport, RouteReport};
use crate::plane::setup::{Carriage, Error, PeerPath, PeerSetup};
use crate::plane::socket::{Route, Socket};
use protocol::tunnel::{Endpoint, MOST_PATHS, PathSetup, Setup};
use seal::{Entropy, PeerId, SystemEntropy};
use std::net::{IpAddr, SocketAddr};
use units::{Instant, PathId};

/// What is tried on a path of which nothing is known: Ethernet's MTU.
const USUAL_MTU: u16 = 1500;

/// The way out of a path, where it leads now.
pub(super) struct Lane {
    pub(super) socket: usize,
    pub(super) outlet: Outlet,
}

/// One peer.
pub(super) struct Peer {
    name: String,
    /// Inner networks that are its own.
    pub(super) allowed: Vec<(IpAddr, u8)>,
    /// By path id; `None` as long as nothing was sent there.
    lanes: Vec<Option<Lane>>,
    pub(super) assembler: Assembler,
    pub(super) sent: Count,
    pub(super) received: Count,
    pub(super) sessionless: u64,
    pub(super) foreign: u64,
    /// Datagrams and packets that made no sense once they were whole.
    pub(super) malformed: u64,
}

impl Peer {
    /// The host talks to it from now on.
    ///
    /// # Errors
    /// A key that nobody has, an algorithm that is not there, a path without a socket or of another address family.
    pub(super) fn add(setup: PeerSetup, host: &mut Host, io: &Io) -> Result<(PeerId, Self), Error> {
        let bad = |what: String| Error::setup(format!("peer {}: {what}", setup.name));
        machine(&setup)?;
        if setup.paths.len() > MOST_PATHS {
            return Err(bad(format!("at most {MOST_PATHS} paths")));
        }
        let paths = setup.paths.iter().map(|path| open_path(path, io)).collect::<Result<Vec<_>, _>>()?;
        let of = setup.clone();
        let make = Box::new(move || machine(&of).expect("it was built before from the same names"));
        let id = host.add_peer(setup.public, setup.preshared.clone(), make);
        let id = id.map_err(|error| bad(error.to_string()))?;
        for (number, (route, use_of)) in (0..).zip(paths) {
            host.set_path(Instant::ZERO, id, number, route, use_of);
        }
        let peer = Self {
            name: setup.name,
            allowed: setup.allowed,
            lanes: (0..MOST_PATHS).map(|_| None).collect(),
            assembler: Assembler::new(),
            sent: Count::default(),
            received: Count::default(),
            sessionless: 0,
            foreign: 0,
            malformed: 0,
        };
        Ok((id, peer))
    }

    /// The lanes that are there.
    pub(super) fn lanes(&mut self) -> impl Iterator<Item = (PathId, &mut Lane)> {
        (0..).map(PathId).zip(&mut self.lanes).filter_map(|(path, lane)| Some((path, lane.as_mut()?)))
    }

    /// The lane of a path, which leads by `route` from now on.
    pub(super) fn lane(&mut self, sockets: &mut [Socket], path: PathId, route: &host::Route<Place>) -> &mut Lane {
        let (socket, to) = (usize::from(route.socket), route.remote.0);
        let slot = &mut self.lanes[path.index()];
        if slot.as_ref().is_some_and(|lane| lane.socket != socket) {
            *slot = None;
        }
        let lane = slot.get_or_insert_with(|| Lane { socket, outlet: Outlet::new(to) });
        lane.outlet.set_route(&mut sockets[socket], to);
        lane
    }

    /// Whether something waits until this socket is writable.
    pub(super) fn is_blocked(&self, socket: usize) -> bool {
        self.lanes.iter().flatten().any(|lane| lane.socket == socket && lane.outlet.is_blocked())
    }

    pub(super) fn report(&self, id: PeerId, host: &Host) -> PeerReport {
        let route = |(path, route): (PathId, &host::Route<Place>)| RouteReport {
            path: path.0 as u8,
            socket: usize::from(route.socket),
            remote: route.remote.0.remote,
        };
        PeerReport {
            name: self.name.clone(),
            seal: host.sessions().status(id),
            status: host.endpoint(id).map(Endpoint::status),
            routes: host.routes(id).map(route).collect(),
            sent: self.sent,
            received: self.received,
            sessionless: self.sessionless,
            foreign: self.foreign,
            broken: self.assembler.broken + self.malformed,
        }
    }
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

/// Where a path leads at first, and how it is used.
fn open_path(path: &PeerPath, io: &Io) -> Result<(host::Route<Place>, PathSetup), Error> {
    let PeerPath { remote, socket: at, backup, metered, .. } = *path;
    let Some(socket) = io.sockets.get(at) else {
        return Err(Error::setup(format!("path {}: there is no socket {at}", path.name)));
    };
    if socket.local().is_some_and(|local| local.is_ipv4() != remote.is_ipv4()) {
        return Err(Error::setup(format!("path {}: {remote} is not of its socket's address family", path.name)));
    }
    let route = host::Route { socket: at as u16, remote: Place(Route { remote, source: None }) };
    Ok((route, PathSetup { backup, metered, most: path.rate, ..sizes(path.mtu, remote) }))
}

/// How a path is used that the peer opened.
pub(super) fn learned(route: &host::Route<Place>) -> PathSetup {
    sizes(USUAL_MTU, route.remote.0.remote)
}

/// What fits an MTU: IPv4 (RFC 791) or IPv6 (RFC 8200) and UDP take their part of it.
fn sizes(mtu: u16, remote: SocketAddr) -> PathSetup {
    let headers = if remote.is_ipv4() { 20 + 8 } else { 40 + 8 };
    PathSetup { backup: false, metered: false, largest: u32::from(mtu).saturating_sub(headers), headers, most: None }
}
