//! One peer: its endpoint, and by which routes its paths go.

use machine::{Endpoint, MAX_PATHS, PathConfig, PathStatus, Payload, Transmit};
use std::collections::BTreeMap;
use std::fmt::Debug;
use units::{Instant, PathId, Span};

/// A path that only the peer knows of is forgotten after so long without a sign.
const FORGET_AFTER: Span = Span::from_secs(60);
/// A peer that goes on with a path which we took away is told again after so long.
const REMINDER: Span = Span::from_millis(200);

/// Where datagrams come from and go to, as the driver tells addresses apart.
pub trait Address: Clone + PartialEq + Debug {
    /// The octets that a sender must be able to read at: IP address and port.
    fn octets(&self, out: &mut Vec<u8>);

    /// The peer is at the same place, however it is reached (from which of our addresses).
    fn is_at(&self, other: &Self) -> bool {
        self == other
    }
}

/// How a path reaches the peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Route<A> {
    /// The driver's number of the socket.
    pub socket: u16,
    /// The peer's address.
    pub remote: A,
}

impl<A: Address> Route<A> {
    pub(crate) fn leads_to(&self, other: &Self) -> bool {
        self.socket == other.socket && self.remote.is_at(&other.remote)
    }
}

/// How a path is used that only the peer knows of, and which came by this route.
pub type Learned<A> = Box<dyn Fn(&Route<A>) -> PathConfig + Send>;

/// Makes the endpoint's parts anew, when a peer begins without memory.
pub type Make = Box<dyn Fn() -> machine::EndpointConfig + Send>;

/// What happened with a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A session began. What was on its way before is gone if the peer has no memory of it.
    Established {
        /// It has none.
        fresh: bool,
    },
    /// The peer reaches a path from another address than before.
    Moved(PathId),
    /// About its paths.
    Tunnel(machine::EndpointEvent),
}

/// A peer.
#[derive(Debug)]
pub(crate) struct Peer<P, A> {
    pub(crate) endpoint: Endpoint<P>,
    /// Of each path: its route and how it is used.
    pub(crate) paths: BTreeMap<u8, Path<A>>,
    /// There is a session.
    pub(crate) ready: bool,
    /// How often it has begun anew.
    pub(crate) life: u64,
    /// Paths that a person took out of use, known yet or not.
    pub(crate) disabled: [bool; MAX_PATHS],
    /// Paths that we took away, and when the peer was last told.
    pub(crate) gone: [Option<Instant>; MAX_PATHS],
}

/// A path of a peer.
#[derive(Clone, Debug)]
pub(crate) struct Path<A> {
    pub(crate) setup: PathConfig,
    pub(crate) route: Route<A>,
    /// It was configured here, and is not forgotten.
    pub(crate) own: bool,
    /// The largest number that came by it, which tells where the peer is.
    pub(crate) newest: u64,
}

impl<P: Payload, A: Address> Peer<P, A> {
    pub(crate) fn new(setup: machine::EndpointConfig) -> Self {
        let endpoint = Endpoint::new(setup);
        Self {
            endpoint,
            paths: BTreeMap::new(),
            ready: false,
            life: 0,
            disabled: [false; MAX_PATHS],
            gone: [None; MAX_PATHS],
        }
    }

    /// The peer has no memory: begin anew. Paths that only the peer knew of are forgotten, too.
    pub(crate) fn renew(&mut self, setup: machine::EndpointConfig) {
        self.endpoint = Endpoint::new(setup);
        self.life += 1;
        self.gone = [None; MAX_PATHS];
        self.paths.retain(|_, path| path.own);
        for (id, path) in &mut self.paths {
            path.newest = 0;
            self.endpoint.set_path(PathId(u16::from(*id)), path.setup);
        }
    }

    /// Something authentic came by `route` on path `id`: the peer is there. True if it was elsewhere before.
    pub(crate) fn learn(
        &mut self,
        id: u8,
        number: u64,
        route: &Route<A>,
        learned: &dyn Fn(&Route<A>) -> PathConfig,
    ) -> bool {
        let Some(path) = self.paths.get_mut(&id) else {
            let setup = learned(route);
            self.endpoint.set_path(PathId(u16::from(id)), setup);
            self.paths.insert(id, Path { setup, route: route.clone(), own: false, newest: number });
            return false;
        };
        if !self.endpoint.has_path(PathId(u16::from(id))) {
            // The peer took it away, and has it again.
            self.endpoint.set_path(PathId(u16::from(id)), path.setup);
        }
        if number < path.newest {
            return false;
        }
        path.newest = number;
        if path.route == *route {
            return false;
        }
        path.route = route.clone();
        true
    }

    /// A path that is silent and that only the peer knows of is forgotten, if there is another.
    pub(crate) fn forget_silent(&mut self, now: Instant) {
        let status = self.endpoint.status();
        if !status.paths.iter().any(|path| path.up) {
            return;
        }
        let silent =
            |path: &&PathStatus| !path.up && now.since(path.last_received.unwrap_or(Instant::ZERO)) >= FORGET_AFTER;
        for path in status.paths.iter().filter(silent).map(|path| path.path) {
            if self.paths.get(&(path.0 as u8)).is_some_and(|known| !known.own) {
                self.endpoint.forget_path(now, path);
                self.paths.remove(&(path.0 as u8));
            }
        }
    }

    /// Something came by a path that we took away: it was on its way, or the peer does not know yet.
    pub(crate) fn on_gone(&mut self, now: Instant, id: u8) {
        let told = &mut self.gone[usize::from(id)];
        if told.is_some_and(|told| now.since(told) >= REMINDER) {
            *told = Some(now);
            self.endpoint.announce_removal(PathId(u16::from(id)));
        }
    }

    /// Nothing is to be sent on this path.
    pub(crate) fn is_disabled(&self, path: u8) -> bool {
        self.disabled.get(usize::from(path)).is_some_and(|disabled| *disabled)
    }

    /// What the endpoint sends next on a path that may be used. What it wants to send on another goes nowhere, but uses its
    /// number up: the numbers go on when the path is back.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Transmit<P>> {
        while self.ready {
            let transmit = self.endpoint.poll_transmit(now)?;
            if !self.disabled[transmit.path.index()] {
                return Some(transmit);
            }
            self.endpoint.on_unreachable(now, transmit.path);
        }
        None
    }
}
