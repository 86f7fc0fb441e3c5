//! The node: its peers, their paths, and timers.

use crate::migration::RoutedPath;
use crate::peer::{Address, LearnedPathConfig, NewEndpointConfig, NodeEvent, Peer, Route};
use crate::schedule::Schedule;
use machine::{Delivery, Endpoint, PathConfig, Payload, Transmit};
use seal::{HandshakeMessage, PeerError, PeerId, SealDevice};
use std::collections::{BTreeMap, VecDeque};
use units::{Instant, PathId, Span};
use wire::frame::Frame;

/// Interval at which silent paths are removed.
const SILENT_PATH_CHECK: Span = Span::from_secs(10);

/// A host's end of all its tunnels. `P` is the payload, `A` the driver's type of addresses.
pub struct Node<P, A> {
    pub(crate) sessions: SealDevice,
    pub(crate) peers: BTreeMap<PeerId, (Peer<P, A>, NewEndpointConfig)>,
    pub(crate) learned_path_config: LearnedPathConfig<A>,
    pub(crate) messages: VecDeque<(Route<A>, HandshakeMessage)>,
    pub(crate) events: VecDeque<(PeerId, NodeEvent)>,
    pub(crate) octets: Vec<u8>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) control_buffer: Vec<u8>,
    /// The peer that sends next (round robin).
    pub(crate) next_peer: PeerId,
    pub(crate) schedule: Schedule,
    /// The other node to pass the initiation handled last to.
    pub(crate) pass_to: Option<u8>,
    /// When silent paths will next be removed.
    next_silent_path_check: Instant,
}

impl<P: Payload, A: Address> Node<P, A> {
    /// A node without peers. `learned_path_config` configures the paths that peers open.
    #[must_use]
    pub fn new(sessions: SealDevice, learned_path_config: LearnedPathConfig<A>) -> Self {
        Self {
            sessions,
            peers: BTreeMap::new(),
            learned_path_config,
            messages: VecDeque::new(),
            events: VecDeque::new(),
            octets: Vec::new(),
            frames: Vec::new(),
            control_buffer: Vec::new(),
            next_peer: PeerId(0),
            schedule: Schedule::default(),
            pass_to: None,
            next_silent_path_check: Instant::ZERO,
        }
    }

    /// Adds a peer; `new_config` configures its endpoint, now and whenever the peer restarts.
    ///
    /// # Errors
    /// If the key cannot be a peer's.
    pub fn add_peer(
        &mut self,
        public: seal::PublicKey,
        preshared: Option<seal::PresharedKey>,
        new_config: NewEndpointConfig,
    ) -> Result<PeerId, PeerError> {
        let id = self.sessions.add(public, preshared)?;
        self.peers.insert(id, (Peer::new(new_config()), new_config));
        self.schedule.touch(id);
        Ok(id)
    }

    /// Removes a peer without an announcement.
    pub fn remove_peer(&mut self, id: PeerId) {
        self.sessions.remove(id);
        self.peers.remove(&id);
        self.schedule.remove(id);
    }

    /// Sets the peers of this host's other nodes: [`SealDevice::set_other_peers`].
    pub fn set_other_peers(&mut self, peers: impl Iterator<Item = (seal::PublicKey, u8)>) {
        self.sessions.set_other_peers(peers);
    }

    /// The other node of this host to pass the datagram opened last to, which is an initiation, for
    /// [`Node::open_admitted`]. Returned once.
    pub fn take_pass_to(&mut self) -> Option<u8> {
        self.pass_to.take()
    }

    /// Sets the preshared key of a peer: [`SealDevice::set_preshared`].
    pub fn set_preshared(&mut self, now: Instant, id: PeerId, preshared: Option<seal::PresharedKey>) {
        self.sessions.set_preshared(now, id, preshared);
    }

    /// Sets the configuration of a peer's next endpoint. The current one gets its scheduler only.
    pub fn set_endpoint_config(&mut self, id: PeerId, new_config: NewEndpointConfig) {
        if let Some((peer, current)) = self.peers.get_mut(&id) {
            self.schedule.touch(id);
            peer.endpoint.set_scheduler(new_config().scheduler);
            *current = new_config;
        }
    }

    /// Adds or changes a path to a peer by a configured route. If `route` is already its configured route, the path
    /// stays at the address to which the peer has moved it. Handshakes are initiated from now on.
    ///
    /// # Panics
    /// With a path number of [`machine::MAX_PATHS`] or more.
    pub fn set_path(&mut self, now: Instant, id: PeerId, path: u8, route: Route<A>, config: PathConfig) {
        let Some((peer, _)) = self.peers.get_mut(&id) else { return };
        self.schedule.touch(id);
        peer.endpoint.set_path(PathId(u16::from(path)), config);
        match peer.paths.get_mut(&path) {
            Some(routed_path) if routed_path.configured.as_ref() == Some(&route) => routed_path.config = config,
            _ => {
                peer.endpoint.clear_candidate(PathId(u16::from(path)));
                peer.paths.insert(path, RoutedPath::new(config, route.clone(), Some(route)));
            }
        }
        peer.removals[usize::from(path)] = None;
        self.sessions.start_initiating(now, id);
    }

    /// Removes a path and announces that to the peer, again if the peer continues to use it. Without a configured path,
    /// the node only responds to handshakes.
    ///
    /// # Panics
    /// With a path number of [`machine::MAX_PATHS`] or more.
    pub fn remove_path(&mut self, now: Instant, id: PeerId, path: u8) {
        let Some((peer, _)) = self.peers.get_mut(&id) else { return };
        self.schedule.touch(id);
        peer.endpoint.remove_path(now, PathId(u16::from(path)));
        peer.paths.remove(&path);
        peer.removals[usize::from(path)] = Some(now);
        if !peer.paths.values().any(RoutedPath::is_configured) {
            self.sessions.stop_initiating(id);
        }
    }

    /// A socket is closed. Paths that peers opened by it are removed without an announcement: their datagrams may
    /// arrive by another socket.
    pub fn close_socket(&mut self, now: Instant, socket: u16) {
        self.on_link_down(now, socket);
        for (id, (peer, _)) in &mut self.peers {
            self.schedule.touch(*id);
            let is_learned = |path: &RoutedPath<A>| !path.is_configured() && path.route.socket == socket;
            for (path, _) in peer.paths.iter().filter(|(_, path)| is_learned(path)) {
                let path = PathId(u16::from(*path));
                peer.endpoint.forget_path(now, path);
                self.events.push_back((*id, NodeEvent::PathForgotten(path)));
            }
            peer.paths.retain(|_, path| !is_learned(path));
            peer.clear_candidates(socket);
        }
    }

    /// The link of a socket is down, and with it all paths by that socket.
    pub fn on_link_down(&mut self, now: Instant, socket: u16) {
        for (id, (peer, _)) in &mut self.peers {
            self.schedule.touch(*id);
            for (path, _) in peer.paths.iter().filter(|(_, path)| path.route.socket == socket) {
                peer.endpoint.on_unreachable(now, PathId(u16::from(*path)));
            }
        }
    }

    /// The link of a socket is up: the paths by that socket are probed now.
    pub fn on_link_up(&mut self, socket: u16) {
        for (id, (peer, _)) in &mut self.peers {
            if peer.paths.values().any(|path| path.route.socket == socket) {
                self.schedule.touch(*id);
                peer.endpoint.ping_now();
            }
        }
    }

    /// Closes the tunnel with a peer; [`Node::poll_transmit`] and [`Node::remove_peer`] follow.
    pub fn close_peer(&mut self, id: PeerId) {
        self.endpoint_mut(id).into_iter().for_each(Endpoint::close);
    }

    /// Closes the tunnels with all peers; [`Node::poll_transmit`] follows.
    pub fn close(&mut self) {
        for (id, (peer, _)) in &mut self.peers {
            self.schedule.touch(*id);
            peer.endpoint.close();
        }
    }

    /// The sessions, for their status.
    #[must_use]
    pub fn sessions(&self) -> &SealDevice {
        &self.sessions
    }

    /// The endpoint of a peer.
    #[must_use]
    pub fn endpoint(&self, id: PeerId) -> Option<&Endpoint<P>> {
        self.peers.get(&id).map(|(peer, _)| &peer.endpoint)
    }

    /// The endpoint of a peer, to report errors of the host's network to it.
    pub fn endpoint_mut(&mut self, id: PeerId) -> Option<&mut Endpoint<P>> {
        self.schedule.touch(id);
        self.peers.get_mut(&id).map(|(peer, _)| &mut peer.endpoint)
    }

    /// Whether there is a session with the peer.
    #[must_use]
    pub fn has_session(&self, id: PeerId) -> bool {
        self.peers.get(&id).is_some_and(|(peer, _)| peer.has_session)
    }

    /// Whether there is a session with the peer, and any path works.
    #[must_use]
    pub fn works(&self, id: PeerId) -> bool {
        let with_session = self.peers.get(&id).filter(|(peer, _)| peer.has_session);
        with_session
            .is_some_and(|(peer, _)| peer.paths.keys().any(|path| peer.endpoint.is_up(PathId(u16::from(*path)))))
    }

    /// The route of a peer's path.
    #[must_use]
    pub fn route(&self, id: PeerId, path: PathId) -> Option<&Route<A>> {
        self.peers.get(&id)?.0.paths.get(&(path.0 as u8)).map(|path| &path.route)
    }

    /// The route of a datagram that [`Node::poll_transmit`] has returned.
    #[must_use]
    pub fn transmit_route(&self, id: PeerId, transmit: &Transmit<P>) -> Option<&Route<A>> {
        self.peers.get(&id)?.0.transmit_route(transmit)
    }

    /// The paths of a peer with their routes.
    pub fn routes(&self, id: PeerId) -> impl Iterator<Item = (PathId, &Route<A>)> {
        let paths = self.peers.get(&id).into_iter().flat_map(|(peer, _)| &peer.paths);
        paths.map(|(path, routed_path)| (PathId(u16::from(*path)), &routed_path.route))
    }

    /// Queues an inner packet for a peer, of a flow that hashes to `stream`.
    pub fn offer(&mut self, now: Instant, id: PeerId, stream: u8, packet: P) {
        if let Some((peer, _)) = self.peers.get_mut(&id) {
            self.schedule.touch(id);
            peer.endpoint.offer(now, stream, packet);
        }
    }

    /// The next fragment for the device.
    pub fn poll_delivery(&mut self) -> Option<(PeerId, Delivery<P>)> {
        let Self { schedule, peers, .. } = self;
        schedule.ready().find_map(|id| Some((id, peers.get_mut(&id)?.0.endpoint.poll_delivery()?)))
    }

    /// The next event. The session of a peer that closes is dropped, and a new handshake starts if there is a
    /// configured path to it. If no path works, the peer may have restarted: a new handshake starts.
    pub fn poll_event(&mut self, now: Instant) -> Option<(PeerId, NodeEvent)> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        let Self { schedule, peers, .. } = self;
        let polled = schedule.ready().find_map(|id| Some((id, peers.get_mut(&id)?.0.endpoint.poll_event()?)));
        let (id, event) = polled?;
        schedule.touch(id);
        let (peer, new_config) = self.peers.get_mut(&id)?;
        match event {
            machine::EndpointEvent::Closed => {
                self.sessions.reset(now, id);
                peer.restart(new_config());
                peer.has_session = false;
            }
            machine::EndpointEvent::PathDown(_) if peer.endpoint.status().paths.iter().all(|path| !path.up) => {
                self.sessions.rekey(now, id);
            }
            machine::EndpointEvent::PathRemoved(path) if !peer.endpoint.has_path(path) => {
                peer.paths.retain(|id, routed_path| routed_path.is_configured() || u16::from(*id) != path.0);
            }
            _ => {}
        }
        peer.validate_configured(now);
        Some((id, NodeEvent::Tunnel(event)))
    }

    /// When [`Node::on_timeout`] is due, and [`Node::poll_handshake`] may have something.
    #[must_use]
    pub fn deadline(&self, now: Instant) -> Instant {
        let ready = self.schedule.ready().map(|id| self.endpoint_deadline(id, now)).min();
        let others = self.schedule.first_deadline_of_others();
        self.sessions.deadline().min(others).min(ready.unwrap_or(Instant::NEVER))
    }

    /// When the endpoint of a peer next has something to do without an input.
    fn endpoint_deadline(&self, id: PeerId, now: Instant) -> Instant {
        let with_session = self.peers.get(&id).filter(|(peer, _)| peer.has_session);
        with_session.map_or(Instant::NEVER, |(peer, _)| peer.endpoint.deadline(now))
    }

    /// All ready peers have been polled.
    pub(crate) fn settle(&mut self, now: Instant) {
        let mut schedule = std::mem::take(&mut self.schedule);
        schedule.settle(|id| self.endpoint_deadline(id, now));
        self.schedule = schedule;
    }

    /// Passes the sources of the peers' working paths to the sessions: a flood of initiations must not lock those peers
    /// out.
    fn remember_sources(&mut self) {
        for (id, (peer, _)) in &self.peers {
            for path in peer.endpoint.status().paths.iter().filter(|path| path.up) {
                let Some(routed_path) = peer.paths.get(&(path.path.0 as u8)) else { continue };
                self.octets.clear();
                routed_path.route.remote.octets(&mut self.octets);
                self.sessions.remember_source(*id, &self.octets);
            }
        }
    }

    /// Handles the timers that are due.
    pub fn on_timeout(&mut self, now: Instant) {
        if now >= self.next_silent_path_check {
            self.next_silent_path_check = now + SILENT_PATH_CHECK;
            for (id, (peer, _)) in &mut self.peers {
                for path in peer.remove_silent_paths(now) {
                    self.schedule.touch(*id);
                    self.events.push_back((*id, NodeEvent::PathForgotten(path)));
                }
            }
            self.remember_sources();
        }
        self.schedule.wake(now);
        let due: Vec<PeerId> = self.schedule.ready().filter(|id| self.endpoint_deadline(*id, now) <= now).collect();
        for id in due {
            self.schedule.touch(id);
            self.peers.get_mut(&id).into_iter().for_each(|(peer, _)| peer.endpoint.on_timeout(now));
            self.migrate(now, id);
        }
    }
}
