//! Hosts as ends of a world: real handshakes, real seals, real bytes, which strangers move to other addresses.

use machine::{Delivery, EndpointStatus, Payload};
use ropewalk_node::{Address, Malformed, Node, NodeEvent, Route};
use seal::{PeerId, Peers, PrivateKey, PublicKey};
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use testnet::{Assembly, Kind, PATH, Wire};
use units::{Instant, PathId, Span, Stream};

/// Where somebody can be reached: a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place(u32);

impl Address for Place {
    fn octets(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_be_bytes());
    }
}

/// Bytes, shared.
#[derive(Clone, Debug)]
pub(crate) struct Bytes {
    all: Rc<[u8]>,
    from: usize,
    to: usize,
}

impl Bytes {
    fn new(all: &[u8]) -> Self {
        Self { all: all.into(), from: 0, to: all.len() }
    }

    fn as_slice(&self) -> &[u8] {
        &self.all[self.from..self.to]
    }
}

impl Payload for Bytes {
    fn len(&self) -> u32 {
        (self.to - self.from) as u32
    }
    fn slice(&self, from: u32, to: u32) -> Self {
        Self { all: self.all.clone(), from: self.from + from as usize, to: self.from + to as usize }
    }
    fn signal_congestion(&mut self) -> bool {
        true
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    from: Place,
    to: Place,
    bytes: Vec<u8>,
}

/// One host and what it must answer for.
pub(crate) struct End {
    pub(crate) host: Node<Bytes, Place>,
    pub(crate) peer: PeerId,
    identity: Identity,
    /// Its address on each path, as its peer sees it.
    pub(crate) places: Vec<Place>,
    /// What its wall clock is ahead of the world's.
    pub(crate) wall: u64,
    assembly: Assembly<Bytes>,
    /// Parcels that came up, by stream, in this and the peer's present lives.
    pub(crate) up: Vec<(u8, u64)>,
    /// All that came up ever.
    pub(crate) all: BTreeSet<u64>,
    pub(crate) events: Vec<NodeEvent>,
    pub(crate) refused: u64,
}

/// What a host keeps when it crashes.
#[derive(Clone)]
struct Identity {
    seed: u64,
    side: usize,
    private: [u8; 32],
    other: PublicKey,
    kind: Kind,
}

pub(crate) type World = testnet::World<End>;

/// A client that knows the server's places, and a server that knows none of its.
pub(crate) fn world(seed: u64, wires: Vec<[Wire; 2]>, kind: Kind) -> World {
    let mut random = Stream::named(seed, "keys");
    let mut keys = [[0; 32]; 2];
    keys.iter_mut().flatten().for_each(|byte| *byte = random.bits() as u8);
    let ends = [0, 1].map(|side| {
        let other = PrivateKey::from_bytes(keys[1 - side]).public();
        let places = (0..wires.len()).map(|path| place(side, path)).collect();
        End::new(Instant::ZERO, Identity { seed, side, private: keys[side], other, kind }, places)
    });
    World::new(seed, wires, ends)
}

/// A host crashes and starts again, without any memory but its key.
pub(crate) fn restart(world: &mut World, side: usize) {
    world.act(side, End::restart);
    world.ends[1 - side].up.clear();
}

/// A middlebox forgets its mapping: the client appears elsewhere.
pub(crate) fn rebind(world: &mut World, path: usize) {
    world.ends[0].places[path].0 += 10;
}

/// The client has the path no more, as after a changed configuration.
pub(crate) fn remove_path(world: &mut World, path: u8) {
    world.act(0, |end, now| end.host.remove_path(now, end.peer, path));
}

/// The client has a path with the number `path` by the wire `by`.
pub(crate) fn add_path(world: &mut World, path: u8, by: usize) {
    let route = Route { socket: by as u16, remote: place(1, by) };
    world.act(0, |end, now| end.host.set_path(now, end.peer, path, route, PATH));
}

/// An end's secret beside the keys.
pub(crate) fn share(world: &mut World, side: usize, secret: u8) {
    let secret = seal::PresharedKey::from_bytes([secret; 32]);
    world.act(side, |end, now| end.host.set_preshared(now, end.peer, Some(secret)));
}

/// A parcel from the device of an end.
pub(crate) fn offer(world: &mut World, side: usize, stream: u8, id: u64, length: usize) {
    let parcel = Bytes::new(&content(id, length));
    world.act(side, |end, now| end.host.offer(now, end.peer, stream, parcel));
}

/// The server opens what the client sent, and takes it when the client has restarted and greeted meanwhile.
pub(crate) fn take_after_restart(world: &mut World) -> Result<(), Malformed> {
    offer(world, 0, 1, 1, 100);
    let mut datagram = world.intercept().expect("it was sent");
    let route = Route { socket: 0, remote: datagram.from };
    let opened = world.ends[1].host.open(world.now, &route, &mut datagram.bytes).expect("authentic");
    restart(world, 0);
    world.run_for(Span::from_secs(2));
    let wrap = |_: Range<usize>, _| Bytes::new(&[]);
    world.ends[1].host.process(world.now, &route, false, opened.expect("sealed"), &datagram.bytes, wrap)
}

fn place(side: usize, path: usize) -> Place {
    Place((1000 * (side + 1) + path) as u32)
}

/// What a parcel must read.
fn content(id: u64, length: usize) -> Vec<u8> {
    let mut random = Stream::named(id, "content");
    let mut bytes = [id.to_be_bytes(), (length as u64).to_be_bytes()].concat();
    bytes.extend((16..length).map(|_| random.bits() as u8));
    bytes
}

impl End {
    fn new(now: Instant, identity: Identity, places: Vec<Place>) -> Self {
        let Identity { seed, side, private, other, kind } = identity.clone();
        let mut random = Stream::named(seed + side as u64, "entropy");
        let entropy = move |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = random.bits() as u8);
        let peers = Peers::new(seal::SealConfig::new(PrivateKey::from_bytes(private)), Box::new(entropy));
        let mut host = Node::new(peers, Box::new(|_| PATH));
        let parts = Box::new(move || kind.setup(2 * seed + side as u64));
        let peer = host.add_peer(other, None, parts).expect("a good key");
        for path in 0..if side == 0 { places.len() } else { 0 } {
            host.set_path(now, peer, path as u8, Route { socket: path as u16, remote: place(1, path) }, PATH);
        }
        Self {
            host,
            peer,
            identity,
            places,
            wall: 1 << 60,
            assembly: Assembly::default(),
            up: Vec::new(),
            all: BTreeSet::new(),
            events: Vec::new(),
            refused: 0,
        }
    }

    fn restart(&mut self, now: Instant) {
        let identity = Identity { seed: self.identity.seed + 7919, ..self.identity.clone() };
        let fresh = Self::new(now, identity, std::mem::take(&mut self.places));
        *self = Self { wall: self.wall, all: std::mem::take(&mut self.all), refused: self.refused, ..fresh };
    }

    fn take_up(&mut self, delivery: Delivery<Bytes>) {
        let stream = delivery.stream;
        let Some(pieces) = self.assembly.push(delivery, |_, _| true) else { return };
        let parcel: Vec<u8> = pieces.iter().flat_map(Bytes::as_slice).copied().collect();
        let id = u64::from_be_bytes(*parcel.first_chunk().expect("a parcel has a number"));
        assert!(parcel == content(id, parcel.len()), "parcel {id} is what was sent");
        assert!(self.all.insert(id), "parcel {id} comes up once");
        self.up.push((stream, id));
    }

    fn note(&mut self, event: NodeEvent) {
        if event == (NodeEvent::Established { fresh: true }) {
            // What is on its way from an earlier life may repeat itself in the new one.
            self.up.clear();
        }
        self.events.push(event);
    }

    /// The paths that there are.
    pub(crate) fn paths(&self) -> Vec<u16> {
        let status = self.host.endpoint(self.peer).expect("it is there").status();
        status.paths.iter().map(|status| status.path.0).collect()
    }

    /// A path works, as this end sees it.
    pub(crate) fn is_up(&self, path: u16) -> bool {
        testnet::End::status(self).paths.iter().any(|status| status.path == PathId(path) && status.up)
    }
}

impl testnet::End for End {
    type Datagram = Datagram;

    fn deadline(&self, now: Instant) -> Instant {
        self.host.deadline(now)
    }

    fn on_timeout(&mut self, now: Instant) {
        self.host.on_timeout(now);
    }

    fn receive(&mut self, now: Instant, path: usize, mut datagram: Datagram) {
        let route = Route { socket: path as u16, remote: datagram.from };
        let bytes = &mut datagram.bytes;
        let Ok(opened) = self.host.open(now, &route, bytes) else {
            self.refused += 1;
            return;
        };
        let Some(opened) = opened else { return };
        assert_eq!(opened.peer, self.peer);
        let wrap = |range: Range<usize>, _| Bytes::new(&bytes[range]);
        self.host.process(now, &route, false, opened, bytes, wrap).expect("our own ends make sense");
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(usize, u32, Datagram)> {
        let (route, bytes) = self.poll_bytes(now)?;
        let path = usize::from(route.socket);
        Some((path, bytes.len() as u32, Datagram { from: self.places[path], to: route.remote, bytes }))
    }

    fn collect(&mut self, now: Instant) {
        while let Some((_, delivery)) = self.host.poll_delivery() {
            self.take_up(delivery);
        }
        while let Some((_, event)) = self.host.poll_event(now) {
            self.note(event);
        }
    }

    fn status(&self) -> EndpointStatus {
        self.host.endpoint(self.peer).expect("it is there").status()
    }

    fn corrupt(mut datagram: Datagram, random: &mut Stream) -> Option<Datagram> {
        let at = random.below(datagram.bytes.len() as u64) as usize;
        datagram.bytes[at] ^= 1 << random.below(8);
        Some(datagram)
    }

    fn is_at(&self, path: usize, datagram: &Datagram) -> bool {
        self.places[path] == datagram.to
    }
}

impl End {
    fn poll_bytes(&mut self, now: Instant) -> Option<(Route<Place>, Vec<u8>)> {
        let wall = self.wall + now.0;
        if let Some((route, message)) = self.host.poll_message(now, || wall) {
            return Some((route, message.as_bytes().to_vec()));
        }
        let fill = |payload: &Bytes, out: &mut [u8]| {
            out.copy_from_slice(payload.as_slice());
            false
        };
        loop {
            let (peer, transmit) = self.host.poll_transmit(now)?;
            let mut bytes = vec![0; self.host.length(peer, &transmit)];
            if self.host.write(now, peer, &transmit, &mut bytes, fill) {
                return Some((self.host.route(peer, transmit.path).expect("a path has a route").clone(), bytes));
            }
        }
    }
}
