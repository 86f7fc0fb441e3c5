//! `cargo xtask bench resources`: the cost of one datagram of each kind for the receiving host: CPU time, memory that stays
//! allocated, and bytes of answers.
//!
//! The host is `node::Node` with the tunnel's own endpoint, sessions and ciphers, without sockets and device, in virtual
//! time: 10 000 datagrams per second. Times are ratios to that of a datagram of 1150 bytes in order, measured together with
//! the others in each round. Nothing here logs: the data plane writes no log line per datagram.

use crate::shell;
use machine::{Delivery, Entropy, PathConfig, Payload, Reassembler, TunnelOptions};
use nix::time::{ClockId, clock_gettime};
use node::{Address, Node, Route};
use peak_alloc::PeakAlloc;
use seal::{HandshakeConfig, PrivateKey, SealDevice, SystemEntropy};
use serde_json::{Value, json};
use std::sync::Arc;
use testnet::{Attack, HostilePeer, InnerAddresses, PATH_CONFIG};
use units::{Instant, RngStream, Span};

/// Datagrams of each kind in a round.
const DATAGRAMS: u64 = 4000;
/// Rounds, in each of which every kind is measured in turn.
const ROUNDS: usize = 5;
/// Virtual time between two datagrams.
const INTERVAL: Span = Span::from_micros(100);
/// Virtual time of the initial handshake.
const START: Instant = Instant(1_000_000_000);
/// 2024, nanoseconds since 1970.
const WALL_CLOCK: u64 = 1_704_067_200_000_000_000;
const INNER: InnerAddresses =
    InnerAddresses { own: [10, 77, 0, 3], foreign: [10, 77, 0, 1], target: [10, 77, 0, 2], port: 9000 };

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The address of a sender.
#[derive(Clone, Debug, PartialEq)]
struct Source(u32);

impl Address for Source {
    fn octets(&self, octets: &mut Vec<u8>) {
        octets.extend_from_slice(&self.0.to_be_bytes());
    }

    fn is_same_host(&self, other: &Self) -> bool {
        self == other
    }
}

/// Bytes of a received datagram, which keep it in memory.
#[derive(Clone, Debug)]
struct Bytes {
    buffer: Arc<[u8]>,
    start: u32,
    end: u32,
}

impl Payload for Bytes {
    fn len(&self) -> u32 {
        self.end - self.start
    }

    fn slice(&self, start: u32, end: u32) -> Self {
        Self { buffer: Arc::clone(&self.buffer), start: self.start + start, end: self.start + end }
    }
}

/// A kind of datagram.
#[derive(Clone, Copy)]
enum Kind {
    Random,
    NoSession,
    WrongMac1,
    UnknownKey,
    UnknownKeyUnderLoad,
    NoHandshake,
    Replay,
    Forgery,
    ReplayedInitiation,
    InOrder,
    Handshake,
    Attack(Attack),
}

impl Kind {
    fn all() -> Vec<Self> {
        let mut kinds = vec![
            Self::InOrder,
            Self::Random,
            Self::NoSession,
            Self::WrongMac1,
            Self::UnknownKey,
            Self::UnknownKeyUnderLoad,
            Self::NoHandshake,
            Self::Replay,
            Self::Forgery,
            Self::ReplayedInitiation,
            Self::Handshake,
        ];
        kinds.extend(Attack::ALL.map(Self::Attack));
        kinds
    }

    /// The sender, and a description of the datagram.
    fn words(self) -> [String; 2] {
        let [who, what] = match self {
            Self::Random => ["stranger", "random bytes"],
            Self::NoSession => ["stranger", "a sealed datagram of no session"],
            Self::WrongMac1 => ["stranger", "an initiation with a wrong mac1"],
            Self::UnknownKey => ["stranger with the public key", "an initiation, 50 per second"],
            Self::UnknownKeyUnderLoad => ["stranger with the public key", "an initiation, 10 000 per second"],
            Self::NoHandshake => ["stranger", "a response to no handshake"],
            Self::Replay => ["on the path", "a replayed datagram"],
            Self::Forgery => ["on the path", "a datagram with a flipped bit"],
            Self::ReplayedInitiation => ["on the path", "a replayed initiation"],
            Self::InOrder => ["peer", "1150 bytes in order"],
            Self::Handshake => ["peer", "an initiation, 10 000 per second"],
            Self::Attack(attack) => return ["peer".to_owned(), format!("{attack:?}")],
        };
        [who, what].map(str::to_owned)
    }

    /// Virtual time between two of them.
    fn interval(self) -> Span {
        if matches!(self, Self::UnknownKey) { Span::from_millis(20) } else { INTERVAL }
    }
}

/// The total cost of the datagrams of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    cpu_ns: f64,
    bytes: u64,
    held: i64,
    answered: u64,
}

/// A host with a peer that has a session.
struct Scene {
    node: Node<Bytes, Source>,
    reassembler: Reassembler<Vec<Bytes>>,
    route: Route<Source>,
    attacker: HostilePeer,
    /// A peer that is unknown to the host.
    stranger: HostilePeer,
    rng: RngStream,
}

impl Scene {
    fn new() -> Self {
        let private_keys = [1, 2, 3].map(|byte| PrivateKey::from_bytes([byte; 32]));
        let [host, peer, stranger] = private_keys;
        let public = host.public_key();
        let device = SealDevice::new(HandshakeConfig::new(host), Box::new(SystemEntropy));
        let mut node = Node::new(device, Box::new(|_: &Route<Source>| -> PathConfig { PATH_CONFIG }));
        let new_config = || TunnelOptions::default().endpoint_config(&[], Entropy::seeded(7)).expect("the defaults");
        node.add_peer(peer.public_key(), None, Box::new(new_config)).expect("a peer's key");
        let mut scene = Self {
            node,
            reassembler: Reassembler::default(),
            route: Route { socket: 0, remote: Source(1) },
            attacker: HostilePeer::new(peer, public),
            stranger: HostilePeer::new(stranger, public),
            rng: RngStream::named(16, "resources"),
        };
        scene.connect(START);
        scene
    }

    /// Completes the handshake, and opens path 0.
    fn connect(&mut self, now: Instant) {
        let initiation = self.attacker.initiation(now, WALL_CLOCK).expect("one is due");
        let mut answers = Vec::new();
        self.receive(now, &mut initiation.as_bytes().to_vec(), |answer| answers.push(answer.to_vec()));
        answers.iter_mut().for_each(|answer| drop(self.attacker.receive(now, answer)));
        let mut ping = Vec::new();
        wire::frame::Frame::Ping { token: 1 }.write(&mut ping);
        let mut datagram = self.attacker.seal(now, 0, &ping).expect("a session");
        self.receive(now, &mut datagram, |_| {});
    }

    /// Datagram `k` of a kind.
    fn datagram(&mut self, kind: Kind, k: u64, now: Instant) -> Vec<u8> {
        let random = |rng: &mut RngStream, len: usize| (0..len).map(|_| rng.bits() as u8).collect::<Vec<u8>>();
        let header =
            wire::frame::DataHeader { stream: 1, sequence: k as u32, first: true, last: true, ..Default::default() };
        let in_order = [&header.to_bytes()[..], &[0x45; 1150]].concat();
        match kind {
            Kind::Random => random(&mut self.rng, 1200),
            Kind::NoSession => [&[0x30, 0, 0x88, 0xb5][..], &random(&mut self.rng, 1200)].concat(),
            Kind::WrongMac1 | Kind::ReplayedInitiation if k > 0 => Vec::new(),
            Kind::UnknownKey | Kind::UnknownKeyUnderLoad | Kind::WrongMac1 => {
                self.stranger.restart(now);
                let initiation = self.stranger.initiation(now, WALL_CLOCK + now.0);
                let mut bytes = initiation.map_or_else(Vec::new, |initiation| initiation.as_bytes().to_vec());
                if matches!(kind, Kind::WrongMac1) {
                    bytes[140] ^= 1;
                }
                bytes
            }
            Kind::ReplayedInitiation | Kind::Handshake => {
                self.attacker.restart(now);
                let initiation = self.attacker.initiation(now, WALL_CLOCK + now.0);
                initiation.map_or_else(Vec::new, |initiation| initiation.as_bytes().to_vec())
            }
            Kind::NoHandshake => {
                [&[0, 0, 0x88, 0xb6, 2, seal::VERSION, 0, 0, 0][..], &random(&mut self.rng, 87)].concat()
            }
            Kind::Replay | Kind::Forgery if k > 0 => Vec::new(),
            Kind::Replay | Kind::Forgery | Kind::InOrder => self.attacker.seal(now, 0, &in_order).expect("a session"),
            Kind::Attack(attack) => {
                let (path, body) = attack.datagram(k, &INNER, &mut self.rng);
                self.attacker.seal(now, path, &body).expect("a session")
            }
        }
    }

    /// Handles a datagram as the daemon does; passes each answer to `answered`.
    fn receive(&mut self, now: Instant, datagram: &mut [u8], mut answered: impl FnMut(&[u8])) {
        let route = self.route.clone();
        if let Ok(Some(opened)) = self.node.open(now, &route, datagram) {
            let buffer: Arc<[u8]> = (&*datagram).into();
            let payload = |range: std::ops::Range<usize>, _| Bytes {
                buffer: buffer.clone(),
                start: range.start as u32,
                end: range.end as u32,
            };
            let _ = self.node.process(now, &route, false, opened, datagram, payload);
        }
        if self.node.deadline(now) <= now {
            self.node.on_timeout(now);
        }
        while let Some((_, message)) = self.node.poll_handshake(now, || WALL_CLOCK + now.0) {
            answered(message.as_bytes());
        }
        while let Some((_, delivery)) = self.node.poll_delivery() {
            let delivery: Delivery<Bytes> = delivery;
            let _ = self.reassembler.add(&delivery);
        }
        while self.node.poll_event(now).is_some() {}
        while let Some((peer, transmit)) = self.node.poll_transmit(now) {
            let mut datagram = vec![0; self.node.encode_length(peer, &transmit)];
            if self.node.seal_into(now, peer, &transmit, &mut datagram, |_, _| false) {
                answered(&datagram);
            }
        }
    }
}

/// CPU time of this thread, nanoseconds.
fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a thread has it");
    time.tv_sec() as f64 * 1e9 + time.tv_nsec() as f64
}

fn measure(kind: Kind) -> Cost {
    let mut scene = Scene::new();
    let mut now = START;
    let mut datagrams: Vec<Vec<u8>> = Vec::new();
    for k in 0..DATAGRAMS {
        now += kind.interval();
        let datagram = scene.datagram(kind, k, now);
        // An empty entry stands for the first one again.
        datagrams.push(if datagram.is_empty() { datagrams[0].clone() } else { datagram });
    }
    if matches!(kind, Kind::Forgery) {
        datagrams.iter_mut().for_each(|datagram| datagram[20] ^= 1);
    }
    let mut cost = Cost { bytes: datagrams.iter().map(|datagram| datagram.len() as u64).sum(), ..Cost::default() };
    let (mut now, mut answered) = (START, 0);
    let (held, start) = (ALLOCATOR.current_usage() as i64, cpu_ns());
    for datagram in &mut datagrams {
        now += kind.interval();
        scene.receive(now, datagram, |answer| answered += answer.len() as u64);
    }
    cost.cpu_ns = cpu_ns() - start;
    cost.held = ALLOCATOR.current_usage() as i64 - held;
    Cost { answered, ..cost }
}

/// Measures and prints; `--json` prints numbers for programs.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let is_json = match options {
        [] => false,
        ["--json"] => true,
        unknown => return Err(format!("bench resources has no option `{}`", unknown.join(" "))),
    };
    let kinds = Kind::all();
    let rounds: Vec<Vec<Cost>> = (0..ROUNDS).map(|_| kinds.iter().map(|kind| measure(*kind)).collect()).collect();
    let rows: Vec<Value> = kinds.iter().enumerate().map(|(index, kind)| row(*kind, index, &rounds)).collect();
    if is_json {
        return shell::print(&format!("{:#}\n", Value::from(rows)));
    }
    shell::print(&format!(
        "{:<30}{:<34}{:>6}{:>9}{:>12}{:>10}\n",
        "sender", "datagram", "bytes", "CPU", "held, kB", "answers"
    ))?;
    for row in rows {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| row[key].as_f64().unwrap_or_default();
        let line = format!(
            "{:<30}{:<34}{:>6.0}{:>9.2}{:>12.1}{:>10.2}\n",
            text("sender"),
            text("datagram"),
            number("bytes"),
            number("cpu_ratio"),
            number("held_kb"),
            number("answer_ratio")
        );
        shell::print(&line)?;
    }
    shell::print(&format!(
        "\nCPU: times that of a datagram of 1150 bytes in order (now {:.2} us). held: after {DATAGRAMS} datagrams. answers: bytes per received byte.\n",
        median(rounds.iter().map(|round| round[0].cpu_ns)) / DATAGRAMS as f64 / 1e3
    ))
}

fn row(kind: Kind, index: usize, rounds: &[Vec<Cost>]) -> Value {
    let [sender, datagram] = kind.words();
    let cost = rounds[0][index];
    json!({
        "sender": sender,
        "datagram": datagram,
        "bytes": cost.bytes / DATAGRAMS,
        "cpu_ratio": median(rounds.iter().map(|round| round[index].cpu_ns / round[0].cpu_ns)),
        "held_kb": median(rounds.iter().map(|round| round[index].held.max(0) as f64 / 1e3)),
        "answer_ratio": cost.answered as f64 / cost.bytes as f64,
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut ascending: Vec<f64> = values.collect();
    ascending.sort_by(f64::total_cmp);
    ascending[ascending.len() / 2]
}
