//! Two hosts, real handshakes, real seals, real bytes; and a network that loses, corrupts, repeats, reorders, and moves
//! them to other addresses.

use protocol::tunnel::{PathSetup, Payload, Setup};
use ropewalk_host::{Address, Event, Host, Nonsense, Route};
use seal::{PeerId, Peers, PrivateKey, PublicKey};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use units::{Instant, PathId, Rate, Span, Stream};

/// Where somebody can be reached: a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place(pub(crate) u32);

impl Address for Place {
    fn octets(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_be_bytes());
    }
}

/// Bytes, shared.
#[derive(Clone, Debug)]
pub(crate) struct Bytes {
    all: Rc<Vec<u8>>,
    from: usize,
    to: usize,
}

impl Bytes {
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
    fn signal(&mut self) -> bool {
        true
    }
}

/// Makes the parts of an endpoint.
pub(crate) type Make = Arc<dyn Fn(u64) -> Setup + Send + Sync>;

/// One direction of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub(crate) rate: Rate,
    pub(crate) delay: Span,
    pub(crate) jitter: Span,
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    pub(crate) corruption: f64,
    pub(crate) largest: usize,
    pub(crate) down: Option<(Instant, Instant)>,
}

/// One host and what it must answer for.
pub(crate) struct End {
    pub(crate) host: Host<Bytes, Place>,
    pub(crate) peer: PeerId,
    private: [u8; 32],
    other: PublicKey,
    /// Its address on each path, as its peer sees it.
    pub(crate) places: Vec<u32>,
    assembly: BTreeMap<u8, Vec<u8>>,
    /// Parcels that came up, by stream, in this and the peer's present lives.
    pub(crate) up: Vec<(u8, u64)>,
    /// All that came up ever.
    pub(crate) all: BTreeSet<u64>,
    pub(crate) events: Vec<Event>,
    lives: u64,
    pub(crate) refused: u64,
}

pub(crate) struct World {
    pub(crate) now: Instant,
    /// What the hosts' wall clocks are ahead of the world's.
    pub(crate) wall: [u64; 2],
    pub(crate) ends: [End; 2],
    pub(crate) wires: Vec<[Wire; 2]>,
    free_at: Vec<[Instant; 2]>,
    flying: BTreeMap<(Instant, u64), Datagram>,
    counter: u64,
    random: Stream,
    seed: u64,
    make: Make,
    pub(crate) corrupted: u64,
    /// Datagrams recorded by somebody on the path, to be sent again.
    recorded: Vec<Datagram>,
    pub(crate) replayed: u64,
    /// Datagrams that each side sent on each path.
    pub(crate) launched: [Vec<u64>; 2],
}

#[derive(Clone, Debug)]
struct Datagram {
    /// Who is to receive it.
    side: usize,
    path: usize,
    from: u32,
    bytes: Vec<u8>,
}

impl World {
    pub(crate) fn new(seed: u64, wires: Vec<[Wire; 2]>, make: Make) -> Self {
        let mut random = Stream::named(seed, "network");
        let mut keys = [[0; 32]; 2];
        keys.iter_mut().flatten().for_each(|byte| *byte = random.bits() as u8);
        let publics = keys.map(|key| PrivateKey::from_bytes(key).public());
        let places = |side: u32| (0..wires.len() as u32).map(|path| 1000 * (side + 1) + path).collect::<Vec<_>>();
        let end = |side: usize| End::new(seed, side, keys[side], publics[1 - side], places(side as u32), &make);
        let mut world = Self {
            now: Instant::ZERO,
            wall: [1 << 60; 2],
            ends: [end(0), end(1)],
            free_at: vec![[Instant::ZERO; 2]; wires.len()],
            launched: [0, 1].map(|_| vec![0; wires.len()]),
            wires,
            flying: BTreeMap::new(),
            counter: 0,
            random,
            seed,
            make,
            corrupted: 0,
            recorded: Vec::new(),
            replayed: 0,
        };
        world.begin(0);
        world.settle(0);
        world
    }

    /// The client's paths; the server learns of them.
    fn begin(&mut self, side: usize) {
        if side == 1 {
            return;
        }
        let peer = self.ends[0].peer;
        for path in 0..self.wires.len() {
            let route = Route { socket: path as u16, remote: Place(self.ends[1].places[path]) };
            self.ends[0].host.set_path(self.now, peer, path as u8, route, PATH);
        }
    }

    /// A host crashes and starts again, without any memory but its key.
    pub(crate) fn restart(&mut self, side: usize) {
        let old = &self.ends[side];
        self.counter += 1;
        let (private, other, places, lives) = (old.private, old.other, old.places.clone(), old.lives + 1);
        let all = std::mem::take(&mut self.ends[side].all);
        let end = End::new(self.seed + 7919 * lives, side, private, other, places, &self.make);
        self.ends[side] = End { lives, all, ..end };
        self.ends[1 - side].up.clear();
        self.begin(side);
        self.settle(side);
    }

    /// A middlebox forgets its mapping: the client appears elsewhere.
    pub(crate) fn rebind(&mut self, path: usize) {
        self.ends[0].places[path] += 10;
    }

    /// The client has the path no more, as after a changed configuration.
    pub(crate) fn remove_path(&mut self, path: u8) {
        let End { host, peer, .. } = &mut self.ends[0];
        host.remove_path(self.now, *peer, path);
        self.settle(0);
    }

    /// The client has a path with the number `path` by the wire `by`.
    pub(crate) fn add_path(&mut self, path: u8, by: usize) {
        let route = Route { socket: by as u16, remote: Place(self.ends[1].places[by]) };
        let End { host, peer, .. } = &mut self.ends[0];
        host.set_path(self.now, *peer, path, route, PATH);
        self.settle(0);
    }

    /// An end's secret beside the keys.
    pub(crate) fn share(&mut self, side: usize, secret: u8) {
        let End { host, peer, .. } = &mut self.ends[side];
        host.set_preshared(self.now, *peer, Some(seal::PresharedKey::from_bytes([secret; 32])));
        self.settle(side);
    }

    /// A person takes a path out of use at one end, or puts it back.
    pub(crate) fn set_enabled(&mut self, side: usize, path: u8, enabled: bool) {
        let End { host, peer, .. } = &mut self.ends[side];
        host.set_enabled(self.now, *peer, path, enabled);
        self.settle(side);
    }

    /// An end says goodbye, and forgets its peer.
    pub(crate) fn close(&mut self, side: usize) {
        self.ends[side].host.close();
        self.settle(side);
    }

    /// The server opens what the client sent, and takes it when the client has restarted and greeted meanwhile.
    pub(crate) fn take_after_restart(&mut self) -> Result<(), Nonsense> {
        self.offer(0, 1, 1, 100);
        let (_, mut datagram) = self.flying.pop_last().expect("it was sent");
        let route = Route { socket: 0, remote: Place(datagram.from) };
        let opened = self.ends[1].host.open(self.now, &route, &mut datagram.bytes).expect("authentic");
        self.restart(0);
        self.run(self.now + Span::from_secs(2));
        let wrap = |_: std::ops::Range<usize>, _| Bytes { from: 0, to: 0, all: Rc::new(Vec::new()) };
        self.ends[1].host.take(self.now, &route, false, opened.expect("sealed"), &datagram.bytes, wrap)
    }

    pub(crate) fn offer(&mut self, side: usize, stream: u8, id: u64, length: usize) {
        let bytes = content(id, length);
        let parcel = Bytes { from: 0, to: bytes.len(), all: Rc::new(bytes) };
        let End { host, peer, .. } = &mut self.ends[side];
        host.offer(self.now, *peer, stream, parcel);
        self.settle(side);
    }

    /// Somebody sends again what was recorded.
    pub(crate) fn replay(&mut self) {
        if self.recorded.is_empty() {
            return;
        }
        let index = self.random.below(self.recorded.len() as u64) as usize;
        let datagram = self.recorded[index].clone();
        self.replayed += 1;
        self.counter += 1;
        self.flying.insert((self.now, self.counter), datagram);
    }

    pub(crate) fn run(&mut self, until: Instant) {
        loop {
            let arrival = self.flying.keys().next().map_or(Instant::NEVER, |(at, _)| *at);
            let timers = [0, 1].map(|side| self.ends[side].host.deadline(self.now).max(self.now));
            let next = arrival.min(timers[0]).min(timers[1]);
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            if arrival == next {
                let (_, datagram) = self.flying.pop_first().expect("there is one");
                let side = datagram.side;
                self.arrive(datagram);
                self.settle(side);
            } else {
                let side = usize::from(timers[1] < timers[0]);
                self.ends[side].host.on_timeout(self.now);
                self.settle(side);
            }
        }
    }

    fn arrive(&mut self, mut datagram: Datagram) {
        if self.random.chance(0.02) && self.recorded.len() < 200 {
            self.recorded.push(datagram.clone());
        }
        let end = &mut self.ends[datagram.side];
        let route = Route { socket: datagram.path as u16, remote: Place(datagram.from) };
        let bytes = &mut datagram.bytes;
        let Ok(opened) = end.host.open(self.now, &route, bytes) else {
            end.refused += 1;
            return;
        };
        let Some(opened) = opened else { return };
        assert_eq!(opened.peer, end.peer);
        let wrap = |range: std::ops::Range<usize>, _| {
            let all = bytes[range].to_vec();
            Bytes { from: 0, to: all.len(), all: Rc::new(all) }
        };
        end.host.take(self.now, &route, false, opened, bytes, wrap).expect("our own ends make sense");
    }

    fn settle(&mut self, side: usize) {
        let wall = self.wall[side] + self.now.0;
        while let Some((route, message)) = self.ends[side].host.poll_message(self.now, || wall) {
            self.launch(side, &route, message.as_bytes().to_vec());
        }
        while let Some((peer, transmit)) = self.ends[side].host.poll_transmit(self.now) {
            let host = &mut self.ends[side].host;
            let mut bytes = vec![0; host.length(peer, &transmit)];
            let fill = |payload: &Bytes, out: &mut [u8]| {
                out.copy_from_slice(payload.as_slice());
                false
            };
            if host.write(self.now, peer, &transmit, &mut bytes, fill) {
                let route = host.route(peer, transmit.path).expect("a path has a route").clone();
                self.launch(side, &route, bytes);
            }
        }
        let fresh = self.ends[side].collect(self.now);
        if fresh {
            // What is on its way from an earlier life may repeat itself in the new one.
            self.ends[side].up.clear();
        }
    }

    fn launch(&mut self, side: usize, route: &Route<Place>, mut bytes: Vec<u8>) {
        let path = usize::from(route.socket);
        self.launched[side][path] += 1;
        let wire = self.wires[path][side];
        let reachable = self.ends[1 - side].places[path] == route.remote.0;
        let is_down = wire.down.is_some_and(|(from, to)| (from..to).contains(&self.now));
        if !reachable || is_down || bytes.len() > wire.largest || self.random.chance(wire.loss) {
            return;
        }
        let start = self.free_at[path][side].max(self.now);
        if start.since(self.now) > Span::from_millis(200) {
            return;
        }
        let departure = start + wire.rate.time_for(bytes.len() as u64 + 28);
        self.free_at[path][side] = departure;
        if self.random.chance(wire.corruption) {
            let at = self.random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << self.random.below(8);
            self.corrupted += 1;
        }
        for _ in 0..1 + u64::from(self.random.chance(wire.duplication)) {
            let jitter = Span(self.random.below(wire.jitter.0 + 1));
            self.counter += 1;
            let from = self.ends[side].places[path];
            let datagram = Datagram { side: 1 - side, path, from, bytes: bytes.clone() };
            self.flying.insert((departure + wire.delay + jitter, self.counter), datagram);
        }
    }

    /// Nothing waits, is on its way or held at either end.
    pub(crate) fn is_quiet(&self) -> bool {
        self.ends.iter().all(|end| {
            let status = end.host.endpoint(end.peer).expect("it is there").status();
            status.outstanding + status.waiting + status.held == 0
        })
    }
}

/// How the client's paths are used.
pub(crate) const PATH: PathSetup = PathSetup { backup: false, metered: false, largest: 1472, headers: 28, most: None };

/// What a parcel must read.
fn content(id: u64, length: usize) -> Vec<u8> {
    let mut random = Stream::named(id, "content");
    let mut bytes = [id.to_be_bytes(), (length as u64).to_be_bytes()].concat();
    bytes.extend((16..length).map(|_| random.bits() as u8));
    bytes
}

impl End {
    fn new(seed: u64, side: usize, private: [u8; 32], other: PublicKey, places: Vec<u32>, make: &Make) -> Self {
        let mut random = Stream::named(seed + side as u64, "entropy");
        let entropy = move |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = random.bits() as u8);
        let peers = Peers::new(seal::Setup::new(PrivateKey::from_bytes(private)), Box::new(entropy));
        let mut host = Host::new(peers, Box::new(|_| PATH));
        let make = make.clone();
        let parts = Box::new(move || make(2 * seed + side as u64));
        let peer = host.add_peer(other, None, parts).expect("a good key");
        Self {
            host,
            peer,
            private,
            other,
            places,
            assembly: BTreeMap::new(),
            up: Vec::new(),
            all: BTreeSet::new(),
            events: Vec::new(),
            lives: 0,
            refused: 0,
        }
    }

    /// Takes what came up. True if the peer began anew.
    fn collect(&mut self, now: Instant) -> bool {
        let mut fresh = false;
        while let Some((_, event)) = self.host.poll_event(now) {
            if event == (Event::Established { fresh: true }) {
                fresh = true;
            }
            self.events.push(event);
        }
        while let Some((_, delivery)) = self.host.poll_delivery() {
            let bytes = delivery.payload.as_slice();
            let part = self.assembly.entry(delivery.stream).or_default();
            if delivery.first || delivery.gap {
                part.clear();
            }
            if !delivery.first && part.is_empty() {
                continue; // its beginning was given up
            }
            part.extend_from_slice(bytes);
            if delivery.last {
                let parcel = std::mem::take(part);
                let id = u64::from_be_bytes(*parcel.first_chunk().expect("a parcel has a number"));
                assert!(parcel == content(id, parcel.len()), "parcel {id} is what was sent");
                assert!(self.all.insert(id), "parcel {id} comes up once");
                self.up.push((delivery.stream, id));
            }
        }
        fresh
    }

    /// The paths that there are.
    pub(crate) fn paths(&self) -> Vec<u16> {
        let status = self.host.endpoint(self.peer).expect("it is there").status();
        status.paths.iter().map(|status| status.path.0).collect()
    }

    /// A path works, as this end sees it.
    pub(crate) fn is_up(&self, path: u16) -> bool {
        let status = self.host.endpoint(self.peer).expect("it is there").status();
        status.paths.iter().any(|status| status.path == PathId(path) && status.up)
    }
}
