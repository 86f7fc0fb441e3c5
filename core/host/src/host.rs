//! The host: datagrams in and out.

use crate::peer::{Address, Event, Make, Path, Peer, Route};
use protocol::tunnel::{
    Arrival, Content, DATA_HEADER_BYTES, Data, Delivery, Endpoint, MOST_PATHS, PathSetup, Payload, SEAL_BYTES, Transmit,
};
use seal::{Established, HEADER, Message, PeerError, PeerId, Peers, Refusal, TAG};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use units::{Instant, PathId};
use wire::frame::{Body, DataHeader, Frame};

/// What arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Something of the peer's: its endpoint may have something to say now.
    From(PeerId),
    /// A handshake message of nobody known yet; an answer may wait in [`Host::poll_message`].
    Nobody,
}

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is not authentic, or not new.
    Seal(Refusal),
    /// The peer sealed something that makes no sense.
    Nonsense,
}

/// A host with all its peers. `P` is what is carried, `A` tells addresses apart.
pub struct Host<P, A> {
    peers: Peers,
    by_id: BTreeMap<PeerId, (Peer<P, A>, Make)>,
    /// How a path is used that only the peer knows of.
    learned: PathSetup,
    messages: VecDeque<(Route<A>, Message)>,
    events: VecDeque<(PeerId, Event)>,
    octets: Vec<u8>,
    frames: Vec<Frame>,
    encoded: Vec<u8>,
    /// Whose turn it is to send.
    turn: PeerId,
}

impl<P: Payload, A: Address> Host<P, A> {
    /// A host without peers. `learned` says how paths are used that peers open.
    #[must_use]
    pub fn new(peers: Peers, learned: PathSetup) -> Self {
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

    /// A path to a peer by a route of our own, or another use of it. A session is asked for from now on.
    ///
    /// # Panics
    /// With a path number of [`MOST_PATHS`] or more.
    pub fn set_path(&mut self, now: Instant, id: PeerId, path: u8, route: Route<A>, setup: PathSetup) {
        let Some((peer, _)) = self.by_id.get_mut(&id) else { return };
        peer.endpoint.set_path(PathId(u16::from(path)), setup);
        let newest = peer.paths.get(&path).map_or(0, |path| path.newest);
        peer.paths.insert(path, Path { setup, route, own: true, newest });
        self.peers.want(now, id);
    }

    /// A path is used no more.
    pub fn remove_path(&mut self, now: Instant, id: PeerId, path: u8) {
        if let Some((peer, _)) = self.by_id.get_mut(&id) {
            peer.endpoint.remove_path(now, PathId(u16::from(path)));
            peer.paths.remove(&path);
        }
    }

    /// The sessions, for their numbers and for what the driver knows better.
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

    /// A datagram arrived by `route`, with CE if `marked`. It is opened where it lies; if it carries a piece, `wrap` makes
    /// a payload of that range of it, which begins with a virtio-net header if the flag says so.
    ///
    /// # Errors
    /// Why it was dropped. It is counted, and whoever sent it learns nothing.
    pub fn receive(
        &mut self,
        now: Instant,
        route: &Route<A>,
        marked: bool,
        datagram: &mut [u8],
        wrap: impl FnOnce(&[u8], Range<usize>, bool) -> P,
    ) -> Result<Received, Refused> {
        if wire::gre::Sealed::parse(datagram).is_some() {
            self.receive_sealed(now, route, marked, datagram, wrap)
        } else {
            self.receive_message(now, route, datagram)
        }
    }

    fn receive_message(&mut self, now: Instant, route: &Route<A>, datagram: &[u8]) -> Result<Received, Refused> {
        self.octets.clear();
        route.remote.octets(&mut self.octets);
        let number = self.number_of(route);
        let taken = self.peers.receive(now, number, &self.octets, datagram).map_err(Refused::Seal)?;
        self.messages.extend(taken.reply.map(|reply| (route.clone(), reply)));
        if let Some(established) = taken.established {
            self.establish(now, established);
        }
        Ok(taken.peer.map_or(Received::Nobody, Received::From))
    }

    /// The path that goes by this route, of whichever peer: cookies are kept for each.
    fn number_of(&self, route: &Route<A>) -> u8 {
        let mut paths = self.by_id.values().flat_map(|(peer, _)| &peer.paths);
        paths.find(|(_, path)| path.own && path.route == *route).map_or(0, |(number, _)| *number)
    }

    fn establish(&mut self, _now: Instant, established: Established) {
        let Established { peer: id, fresh, .. } = established;
        let Some((peer, make)) = self.by_id.get_mut(&id) else { return };
        if fresh {
            peer.renew(make());
        }
        peer.ready = true;
        peer.endpoint.greet();
        self.events.push_back((id, Event::Established { fresh }));
    }

    fn receive_sealed(
        &mut self,
        now: Instant,
        route: &Route<A>,
        marked: bool,
        datagram: &mut [u8],
        wrap: impl FnOnce(&[u8], Range<usize>, bool) -> P,
    ) -> Result<Received, Refused> {
        let opened = self.peers.open(now, datagram).map_err(Refused::Seal)?;
        if let Some(established) = opened.established {
            self.establish(now, established);
        }
        let id = opened.peer;
        let Some((peer, _)) = self.by_id.get_mut(&id) else { return Err(Refused::Nonsense) };
        if usize::from(opened.path) >= MOST_PATHS {
            return Err(Refused::Nonsense);
        }
        if peer.learn(opened.path, opened.number, route, self.learned) {
            self.events.push_back((id, Event::Moved(PathId(u16::from(opened.path)))));
        }
        let arrival = Arrival { path: PathId(u16::from(opened.path)), number: opened.number, marked };
        let end = datagram.len() - TAG;
        match Body::parse(&datagram[HEADER..end]) {
            Ok(Body::Data(header, _)) => {
                let DataHeader { stream, sequence, first, last, again, offload } = header;
                let payload = wrap(datagram, HEADER + DataHeader::LEN..end, offload);
                peer.endpoint.receive_data(now, arrival, Data { stream, sequence, first, last, again, payload });
            }
            Ok(Body::Control(frames)) => {
                self.frames.clear();
                self.frames.extend(frames.map_while(Result::ok));
                peer.endpoint.receive_control(now, arrival, &self.frames);
            }
            Err(_) => return Err(Refused::Nonsense),
        }
        Ok(Received::From(id))
    }

    /// A handshake message to be sent. `wall` is the time in nanoseconds since 1970, which must not go back.
    pub fn poll_message(&mut self, now: Instant, wall: u64) -> Option<(Route<A>, Message)> {
        while self.messages.is_empty() {
            let id = self.peers.question_due(now, wall)?;
            let Some((peer, _)) = self.by_id.get(&id) else { continue };
            // By all routes at once: whichever works first decides, and a dead one does no harm.
            for (number, path) in peer.paths.iter().filter(|(_, path)| path.own) {
                let question = self.peers.question(now, id, *number);
                self.messages.extend(question.map(|question| (path.route.clone(), question)));
            }
        }
        self.messages.pop_front()
    }

    /// A datagram to be sent to a peer, of [`Host::length`] bytes once it is [written](Host::write). Peers take turns.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(PeerId, Transmit<P>)> {
        let turn = self.turn;
        let next = |(id, (peer, _)): (&PeerId, &mut (Peer<P, A>, Make))| {
            let transmit = if peer.ready { peer.endpoint.poll_transmit(now) } else { None };
            transmit.map(|transmit| (*id, transmit))
        };
        let found = self.by_id.range_mut(turn..).find_map(next).or_else(|| self.by_id.range_mut(..turn).find_map(next));
        self.turn = found.as_ref().map_or(PeerId(0), |(id, _)| *id);
        found
    }

    /// Bytes of the datagram.
    #[must_use]
    pub fn length(&mut self, id: PeerId, transmit: &Transmit<P>) -> usize {
        let body = match &transmit.content {
            Content::Data(data) => DATA_HEADER_BYTES as usize + data.payload.len() as usize,
            Content::Control { pad_to } => {
                self.encoded.clear();
                if let Some((peer, _)) = self.by_id.get(&id) {
                    peer.endpoint.control().iter().for_each(|frame| frame.write(&mut self.encoded));
                }
                self.encoded.len().max(*pad_to as usize)
            }
        };
        body + SEAL_BYTES as usize
    }

    /// Writes and seals a datagram of [`Host::length`] bytes, which was asked for just before. `fill` copies a payload and
    /// says whether it begins with a virtio-net header. False if there is no session any more: then it must not be sent.
    pub fn write(
        &mut self,
        now: Instant,
        id: PeerId,
        transmit: &Transmit<P>,
        out: &mut [u8],
        fill: impl FnOnce(&P, &mut [u8]) -> bool,
    ) -> bool {
        let end = out.len() - TAG;
        let body = &mut out[HEADER..end];
        match &transmit.content {
            Content::Data(data) => {
                let Data { stream, sequence, first, last, again, ref payload } = *data;
                let offload = fill(payload, &mut body[DataHeader::LEN..]);
                let header = DataHeader { stream, sequence, first, last, again, offload };
                body[..DataHeader::LEN].copy_from_slice(&header.to_bytes());
            }
            Content::Control { .. } => {
                let (frames, padding) = body.split_at_mut(self.encoded.len());
                frames.copy_from_slice(&self.encoded);
                padding.fill(0);
            }
        }
        let sealed = self.peers.seal(now, id, transmit.path.0 as u8, transmit.number, out).is_ok();
        if !sealed && let Some((peer, _)) = self.by_id.get_mut(&id) {
            peer.ready = false;
        }
        sealed
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

    /// What happened.
    pub fn poll_event(&mut self) -> Option<(PeerId, Event)> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        self.by_id.iter_mut().find_map(|(id, (peer, _))| Some((*id, Event::Tunnel(peer.endpoint.poll_event()?))))
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
        for (peer, _) in self.by_id.values_mut().filter(|(peer, _)| peer.ready) {
            if peer.endpoint.deadline(now) <= now {
                peer.endpoint.on_timeout(now);
            }
        }
    }
}
