//! One peer of the host: the way out of each of its paths, what it may send and receive.

use super::Host;
use super::assembler::Assembler;
use super::place::Place;
use crate::plane::batch::Outlet;
use crate::plane::report::{Count, PeerReport, RouteReport};
use crate::plane::setup::{Carriage, Error, PeerPath, PeerSetup, SocketSetup};
use crate::plane::socket::{Route, Socket};
use machine::{Endpoint, EndpointConfig, MAX_PATHS, PathConfig};
use seal::{Entropy, PeerId, SystemEntropy};
use std::net::SocketAddr;
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
    pub(super) setup: PeerSetup,
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
    /// What [`check`] finds, and two peers with one key.
    pub(super) fn add(setup: PeerSetup, host: &mut Host, now: Instant) -> Result<(PeerId, Self), Error> {
        let id = host.add_peer(setup.public, setup.preshared.clone(), make(&setup));
        let id = id.map_err(|error| Error::setup(format!("peer {}: {error}", setup.name)))?;
        for path in &setup.paths {
            host.set_path(now, id, path.id, route(path), usage(path));
        }
        let peer = Self {
            setup,
            lanes: (0..MAX_PATHS).map(|_| None).collect(),
            assembler: Assembler::new(),
            sent: Count::default(),
            received: Count::default(),
            sessionless: 0,
            foreign: 0,
            malformed: 0,
        };
        Ok((id, peer))
    }

    /// It is as `wanted` from now on, which was checked. New paths are there before old ones go, so that the peer can be told.
    pub(super) fn change(&mut self, wanted: PeerSetup, id: PeerId, host: &mut Host, now: Instant) {
        if self.setup.preshared != wanted.preshared {
            host.set_preshared(now, id, wanted.preshared.clone());
        }
        if self.setup.weights() != wanted.weights() {
            host.set_make(id, make(&wanted));
        }
        let is_same_way = |a: &PeerPath, b: &PeerPath| (a.id, a.socket, a.remote) == (b.id, b.socket, b.remote);
        for path in wanted.paths.iter().filter(|path| !self.setup.paths.contains(path)) {
            let old = self.setup.paths.iter().find(|old| is_same_way(old, path));
            // Where it leads may have moved since.
            let present = old.and_then(|_| host.route(id, PathId(path.id.into()))).cloned();
            host.set_path(now, id, path.id, present.unwrap_or_else(|| route(path)), usage(path));
        }
        for old in self.setup.paths.iter().filter(|old| !wanted.paths.iter().any(|path| path.id == old.id)) {
            host.remove_path(now, id, old.id);
            self.lanes[usize::from(old.id)] = None;
        }
        self.setup = wanted;
    }

    /// The lanes that are there.
    pub(super) fn lanes(&mut self) -> impl Iterator<Item = (PathId, &mut Lane)> {
        (0..).map(PathId).zip(&mut self.lanes).filter_map(|(path, lane)| Some((path, lane.as_mut()?)))
    }

    /// The lane of a path, which leads by `route` from now on.
    pub(super) fn lane(&mut self, sockets: &mut [Socket], path: PathId, route: &node::Route<Place>) -> &mut Lane {
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
        let route = |(path, route): (PathId, &node::Route<Place>)| RouteReport {
            path: path.0 as u8,
            socket: usize::from(route.socket),
            remote: route.remote.0.remote,
        };
        PeerReport {
            name: self.setup.name.clone(),
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

/// Whether the host can talk to such a peer, with these sockets.
///
/// # Errors
/// A key that nobody has, an algorithm that is not there, a path without a socket or of another address family.
pub(super) fn check<'a>(
    setup: &PeerSetup,
    host: &Host,
    socket: impl Fn(usize) -> Option<&'a SocketSetup>,
) -> Result<(), Error> {
    let bad = |what: String| Error::setup(format!("peer {}: {what}", setup.name));
    machine(setup)?;
    host.sessions().check(&setup.public).map_err(|error| bad(error.to_string()))?;
    if setup.paths.iter().any(|path| usize::from(path.id) >= MAX_PATHS) {
        return Err(bad(format!("at most {MAX_PATHS} paths")));
    }
    for path in &setup.paths {
        let PeerPath { name, socket: at, remote, .. } = path;
        let found = socket(*at).ok_or_else(|| Error::setup(format!("path {name}: there is no socket {at}")))?;
        if found.bind.is_ipv4() != remote.is_ipv4() {
            return Err(Error::setup(format!("path {name}: {remote} is not of its socket's address family")));
        }
    }
    Ok(())
}

/// Builds the machine as often as the peer begins anew.
fn make(setup: &PeerSetup) -> node::Make {
    let of = setup.clone();
    Box::new(move || machine(&of).expect("it was built before from the same names"))
}

/// The machine's setup, built from names.
fn machine(setup: &PeerSetup) -> Result<EndpointConfig, Error> {
    let Carriage { scheduler, congestion, .. } = &setup.carriage;
    let bad = |what: String| Error::setup(format!("peer {}: {what}", setup.name));
    let weights = setup.weights();
    let entry = schedule::find(&scheduler.name).filter(|entry| entry.fill == schedule::Fill::Cwnd);
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
    let defaults = EndpointConfig::new(built, controller.transpose()?, u64::from_le_bytes(seed));
    Ok(EndpointConfig {
        retransmit: setup.carriage.repair,
        in_order: setup.carriage.order,
        deliver_late: setup.carriage.deliver_late,
        max_reorder_timeout: setup.carriage.hold_most.unwrap_or(defaults.max_reorder_timeout),
        ..defaults
    })
}

/// Where a path leads at first.
fn route(path: &PeerPath) -> node::Route<Place> {
    node::Route { socket: path.socket as u16, remote: Place(Route { remote: path.remote, source: None }) }
}

/// How a path is used.
fn usage(path: &PeerPath) -> PathConfig {
    let PeerPath { backup, metered, rate, .. } = *path;
    PathConfig { backup, metered, max_rate: rate, ..sizes(path.mtu, path.remote) }
}

/// How a path is used that the peer opened.
pub(super) fn learned(route: &node::Route<Place>) -> PathConfig {
    sizes(USUAL_MTU, route.remote.0.remote)
}

/// What fits an MTU: IPv4 (RFC 791) or IPv6 (RFC 8200) and UDP take their part of it.
fn sizes(mtu: u16, remote: SocketAddr) -> PathConfig {
    let header_bytes = if remote.is_ipv4() { 20 + 8 } else { 40 + 8 };
    PathConfig {
        backup: false,
        metered: false,
        max_datagram_size: u32::from(mtu).saturating_sub(header_bytes),
        header_bytes,
        max_rate: None,
    }
}
