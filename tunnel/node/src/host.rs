//! The host: its peers and their paths, what they carry, and what happens.

use crate::peer::{Address, Event, Learned, Make, Path, Peer, Route};
use machine::{Delivery, Endpoint, PathConfig, Payload};
use seal::{Message, PeerError, PeerId, Peers};
use std::collections::{BTreeMap, VecDeque};
use units::{Instant, PathId, Span};
use wire::frame::Frame;

/// Silent paths are looked for this often.
const SWEEP: Span = Span::from_secs(10);

/// A host with all its peers. `P` is what is carried, `A` tells addresses apart.
pub struct Host<P, A> {
    pub(crate) peers: Peers,
    pub(crate) by_id: BTreeMap<PeerId, (Peer<P, A>, Make)>,
    pub(crate) learned: Learned<A>,
    pub(crate) messages: VecDeque<(Route<A>, Message)>,
    pub(crate) events: VecDeque<(PeerId, Event)>,
    pub(crate) octets: Vec<u8>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) encoded: Vec<u8>,
    /// Whose turn it is to send.
    pub(crate) turn: PeerId,
    /// When silent paths are looked for.
    sweep: Instant,
}

impl<P: Payload, A: Address> Host<P, A> {
    /// A host without peers. `learned` says how paths are used that peers open.
    #[must_use]
    pub fn new(peers: Peers, learned: Learned<A>) -> Self {
        Self {
            peers,
            by_id: BTreeMap::new(),
            learned,
            messages: VecDeque::new(),
            events: VecDeque::new(),
            octets: Vec::new(),
            frames: Vec::new(),
            encoded: Vec::new(),
            turn: PeerId(0),
            sweep: Instant::ZERO,
        }
    }

    /// Whom the host talks to from now on; `make` gives the parts of its endpoint, now and when the peer begins anew.
    ///
    /// # Errors
    /// If the key cannot be a peer's.
    pub fn add_peer(
        &mut self,
        public: seal::PublicKey,
        preshared: Option<seal::PresharedKey>,
        make: Make,
    ) -> Result<PeerId, PeerError> {
        let id = self.peers.add(public, preshared)?;
        self.by_id.insert(id, (Peer::new(make()), make));
        Ok(id)
    }

    /// Forgets a peer.
    pub fn remove_peer(&mut self, id: PeerId) {
        self.peers.remove(id);
        self.by_id.remove(&id);
    }

    /// Another secret shared with a peer: [`Peers::set_preshared`].
    pub fn set_preshared(&mut self, now: Instant, id: PeerId, preshared: Option<seal::PresharedKey>) {
        self.peers.set_preshared(now, id, preshared);
    }

    /// What a peer's endpoint is made of from now on. The present one gets the scheduler of it; all else is for the next.
    pub fn set_make(&mut self, id: PeerId, make: Make) {
        if let Some((peer, present)) = self.by_id.get_mut(&id) {
            peer.endpoint.set_scheduler(make().scheduler);
            *present = make;
        }
    }

    /// A path to a peer by a route of our own, or another use of it. A session is asked for from now on.
    ///
    /// # Panics
    /// With a path number of [`machine::MAX_PATHS`] or more.
    pub fn set_path(&mut self, now: Instant, id: PeerId, path: u8, route: Route<A>, setup: PathConfig) {
        let Some((peer, _)) = self.by_id.get_mut(&id) else { return };
        peer.endpoint.set_path(PathId(u16::from(path)), setup);
        let newest = peer.paths.get(&path).map_or(0, |path| path.newest);
        peer.paths.insert(path, Path { setup, route, own: true, newest });
        peer.gone[usize::from(path)] = None;
        self.peers.want(now, id);
    }

    /// A path is used no more: the peer is told, and again if it goes on with it. Without any path of our own, we only answer.
    ///
    /// # Panics
    /// With a path number of [`machine::MAX_PATHS`] or more.
    pub fn remove_path(&mut self, now: Instant, id: PeerId, path: u8) {
        let Some((peer, _)) = self.by_id.get_mut(&id) else { return };
        peer.endpoint.remove_path(now, PathId(u16::from(path)));
        peer.paths.remove(&path);
        peer.gone[usize::from(path)] = Some(now);
        if !peer.paths.values().any(|path| path.own) {
            self.peers.leave(id);
        }
    }

    /// A socket is closed. Paths that peers opened by it are forgotten without a word: they may come by another one.
    pub fn close_socket(&mut self, now: Instant, socket: u16) {
        self.on_link_down(now, socket);
        for (peer, _) in self.by_id.values_mut() {
            let learned = |path: &Path<A>| !path.own && path.route.socket == socket;
            for (path, _) in peer.paths.iter().filter(|(_, path)| learned(path)) {
                peer.endpoint.forget_path(now, PathId(u16::from(*path)));
            }
            peer.paths.retain(|_, path| !learned(path));
        }
    }

    /// A person takes a path of a peer out of use, or puts it back. Nothing is sent on it then, not even answers to probes,
    /// so that both ends find it dead.
    ///
    /// # Panics
    /// With a path number of [`machine::MAX_PATHS`] or more.
    pub fn set_enabled(&mut self, now: Instant, id: PeerId, path: u8, enabled: bool) {
        let Some((peer, _)) = self.by_id.get_mut(&id) else { return };
        peer.disabled[usize::from(path)] = !enabled;
        if !enabled {
            peer.endpoint.on_unreachable(now, PathId(u16::from(path)));
        }
    }

    /// The link of a socket is gone: no path works that goes by it.
    pub fn on_link_down(&mut self, now: Instant, socket: u16) {
        for (peer, _) in self.by_id.values_mut() {
            for (path, _) in peer.paths.iter().filter(|(_, path)| path.route.socket == socket) {
                peer.endpoint.on_unreachable(now, PathId(u16::from(*path)));
            }
        }
    }

    /// The link of a socket is back: the paths that go by it are asked for a sign of life now.
    pub fn on_link_up(&mut self, socket: u16) {
        for (peer, _) in self.by_id.values_mut() {
            if peer.paths.values().any(|path| path.route.socket == socket) {
                peer.endpoint.probe_now();
            }
        }
    }

    /// Tells a peer that it will be forgotten: to be followed by [`Host::poll_transmit`], and [`Host::remove_peer`].
    pub fn dismiss(&mut self, id: PeerId) {
        self.endpoint_mut(id).into_iter().for_each(Endpoint::close);
    }

    /// Tells all peers that this host goes away: to be followed by [`Host::poll_transmit`].
    pub fn close(&mut self) {
        self.by_id.values_mut().for_each(|(peer, _)| peer.endpoint.close());
    }

    /// The sessions, for their numbers.
    #[must_use]
    pub fn sessions(&self) -> &Peers {
        &self.peers
    }

    /// The endpoint of a peer.
    #[must_use]
    pub fn endpoint(&self, id: PeerId) -> Option<&Endpoint<P>> {
        self.by_id.get(&id).map(|(peer, _)| &peer.endpoint)
    }

    /// The endpoint of a peer, to tell it what the host's own network says.
    pub fn endpoint_mut(&mut self, id: PeerId) -> Option<&mut Endpoint<P>> {
        self.by_id.get_mut(&id).map(|(peer, _)| &mut peer.endpoint)
    }

    /// There is a session with the peer.
    #[must_use]
    pub fn is_ready(&self, id: PeerId) -> bool {
        self.by_id.get(&id).is_some_and(|(peer, _)| peer.ready)
    }

    /// The route of a peer's path.
    #[must_use]
    pub fn route(&self, id: PeerId, path: PathId) -> Option<&Route<A>> {
        self.by_id.get(&id)?.0.paths.get(&(path.0 as u8)).map(|path| &path.route)
    }

    /// All paths of a peer with their routes.
    pub fn routes(&self, id: PeerId) -> impl Iterator<Item = (PathId, &Route<A>)> {
        let paths = self.by_id.get(&id).into_iter().flat_map(|(peer, _)| &peer.paths);
        paths.map(|(path, known)| (PathId(u16::from(*path)), &known.route))
    }

    /// A parcel for a peer, of a flow that hashes to `stream`.
    pub fn offer(&mut self, now: Instant, id: PeerId, stream: u8, parcel: P) {
        if let Some((peer, _)) = self.by_id.get_mut(&id) {
            peer.endpoint.offer(now, stream, parcel);
        }
    }

    /// A piece that goes up.
    pub fn poll_delivery(&mut self) -> Option<(PeerId, Delivery<P>)> {
        self.by_id.iter_mut().find_map(|(id, (peer, _))| Some((*id, peer.endpoint.poll_delivery()?)))
    }

    /// What happened. A peer that goes away is forgotten, and asked for again if it is reached by a path of our own. If no
    /// path works any more, the peer may have lost its memory: it is asked for a new session.
    pub fn poll_event(&mut self, now: Instant) -> Option<(PeerId, Event)> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        let (id, event) = self.by_id.iter_mut().find_map(|(id, (peer, _))| Some((*id, peer.endpoint.poll_event()?)))?;
        let (peer, make) = self.by_id.get_mut(&id)?;
        match event {
            machine::EndpointEvent::Closed => {
                self.peers.forget(now, id);
                peer.renew(make());
                peer.ready = false;
            }
            machine::EndpointEvent::PathDown(_) if peer.endpoint.status().paths.iter().all(|path| !path.up) => {
                self.peers.renew(now, id);
            }
            machine::EndpointEvent::PathRemoved(path) if !peer.endpoint.has_path(path) => {
                peer.paths.retain(|id, known| known.own || u16::from(*id) != path.0);
            }
            _ => {}
        }
        Some((id, Event::Tunnel(event)))
    }

    /// When [`Host::on_timeout`] is due, and [`Host::poll_message`] may have something.
    #[must_use]
    pub fn deadline(&self, now: Instant) -> Instant {
        let endpoints = self.by_id.values().filter(|(peer, _)| peer.ready);
        let endpoints = endpoints.map(|(peer, _)| peer.endpoint.deadline(now)).min();
        self.peers.deadline().min(endpoints.unwrap_or(Instant::NEVER))
    }

    /// Time has passed.
    pub fn on_timeout(&mut self, now: Instant) {
        if now >= self.sweep {
            self.sweep = now + SWEEP;
            self.by_id.values_mut().for_each(|(peer, _)| peer.forget_silent(now));
        }
        for (peer, _) in self.by_id.values_mut().filter(|(peer, _)| peer.ready) {
            if peer.endpoint.deadline(now) <= now {
                peer.endpoint.on_timeout(now);
            }
        }
    }
}
