//! One peer: its endpoint, and by which routes its paths go.

use protocol::tunnel::{self, Endpoint, PathSetup, Payload};
use std::collections::BTreeMap;
use std::fmt::Debug;
use units::PathId;

/// Where datagrams come from and go to, as the driver tells addresses apart.
pub trait Address: Clone + PartialEq + Debug {
    /// The octets that a sender must be able to read at: IP address and port.
    fn octets(&self, out: &mut Vec<u8>);
}

/// How a path reaches the peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Route<A> {
    /// The driver's number of the socket.
    pub socket: u16,
    /// The peer's address.
    pub remote: A,
}

/// Makes the endpoint's parts anew, when a peer begins without memory.
pub type Make = Box<dyn Fn() -> tunnel::Setup + Send>;

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
    Tunnel(tunnel::Event),
}

/// A peer.
#[derive(Debug)]
pub(crate) struct Peer<P, A> {
    pub(crate) endpoint: Endpoint<P>,
    /// Of each path: its route and how it is used.
    pub(crate) paths: BTreeMap<u8, Path<A>>,
    /// There is a session.
    pub(crate) ready: bool,
}

/// A path of a peer.
#[derive(Clone, Debug)]
pub(crate) struct Path<A> {
    pub(crate) setup: PathSetup,
    pub(crate) route: Route<A>,
    /// It was configured here: it is asked by, and not forgotten.
    pub(crate) own: bool,
    /// The largest number that came by it, which tells where the peer is.
    pub(crate) newest: u64,
}

impl<P: Payload, A: Address> Peer<P, A> {
    pub(crate) fn new(setup: tunnel::Setup) -> Self {
        Self { endpoint: Endpoint::new(setup), paths: BTreeMap::new(), ready: false }
    }

    /// The peer has no memory: begin anew. Paths that only the peer knew of are forgotten, too.
    pub(crate) fn renew(&mut self, setup: tunnel::Setup) {
        self.endpoint = Endpoint::new(setup);
        self.paths.retain(|_, path| path.own);
        for (id, path) in &mut self.paths {
            path.newest = 0;
            self.endpoint.set_path(PathId(u16::from(*id)), path.setup);
        }
    }

    /// Something authentic came by `route` on path `id`: the peer is there. True if it was elsewhere before.
    pub(crate) fn learn(&mut self, id: u8, number: u64, route: &Route<A>, setup: PathSetup) -> bool {
        let Some(path) = self.paths.get_mut(&id) else {
            self.endpoint.set_path(PathId(u16::from(id)), setup);
            self.paths.insert(id, Path { setup, route: route.clone(), own: false, newest: number });
            return false;
        };
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
}
