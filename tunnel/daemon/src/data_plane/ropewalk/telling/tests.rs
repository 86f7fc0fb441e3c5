//! Two hosts in virtual time, whose datagrams arrive after 10 ms.

use super::*;
use crate::config::TunnelOptions;
use crate::data_plane::config::PeerPathConfig;
use crate::data_plane::ropewalk::packet::PacketSlice;
use control::{Context, Controller, Decision, PathEvent};
use machine::PathConfig;
use node::Route;
use seal::{HandshakeConfig, PrivateKey, SealDevice};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use units::RngStream;

const PATH: PathConfig = PathConfig::regular(1472, 28);
const DELAY: Span = Span::from_millis(10);
const STEP: Span = Span::from_millis(1);

/// A policy that fails on request.
#[derive(Debug)]
struct Policy(Arc<AtomicBool>);

impl Controller for Policy {
    fn on_event(&mut self, _: PathId, _: &PathEvent, _: &mut Context<'_>) {}

    fn decision(&self, _: PathId) -> Decision {
        Decision { cwnd: 10, ssthresh: units::INFINITE_SSTHRESH, pacing_rate: None }
    }

    fn failure(&self) -> Option<&str> {
        self.0.load(Ordering::Relaxed).then_some("its answer is no number")
    }
}

struct Host {
    node: Node,
    peer: PeerId,
    config: PeerConfig,
    teller: Teller,
    told: Vec<(Instant, PeerChange)>,
}

struct World {
    now: Instant,
    hosts: [Host; 2],
    /// Arrival, destination and bytes.
    in_transit: Vec<(Instant, usize, Vec<u8>)>,
    has_failed: Arc<AtomicBool>,
}

fn address(host: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host as u8 + 1], 4754))
}

/// Host 0 knows the address of host 1, which learns that of host 0.
fn host(number: usize, has_failed: &Arc<AtomicBool>) -> Host {
    let key = |host: usize| PrivateKey::from_bytes([host as u8 + 1; 32]);
    let mut rng = RngStream::named(number as u64, "entropy");
    let entropy = move |bytes: &mut [u8]| bytes.iter_mut().for_each(|byte| *byte = rng.bits() as u8);
    let sessions = SealDevice::new(HandshakeConfig::new(key(number)), Box::new(entropy));
    let mut node = Node::new(sessions, Box::new(|_| PATH));
    let remote = address(1);
    let path = PeerPathConfig { id: 0, name: "dsl".into(), socket: 0, remote, weight: 1, path: PATH };
    let config = PeerConfig {
        public_key: key(1 - number).public_key(),
        name: None,
        preshared_key: None,
        allowed_ips: Vec::new(),
        priority: None,
        paths: if number == 0 { vec![path] } else { Vec::new() },
        options: TunnelOptions::default(),
    };
    let has_failed = Arc::clone(has_failed);
    let new_config = move || {
        let entropy = machine::Entropy::seeded(number as u64);
        let config = TunnelOptions::default().endpoint_config(&[1], entropy).expect("the defaults");
        machine::EndpointConfig { controller: Some(Box::new(Policy(Arc::clone(&has_failed)))), ..config }
    };
    let peer = node.add_peer(config.public_key, None, Box::new(new_config)).expect("another key");
    for path in &config.paths {
        let route = Route { socket: 0, remote: PathAddress::to_remote(path.remote) };
        node.set_path(Instant::ZERO, peer, path.id, route, PATH);
    }
    Host { node, peer, config, teller: Teller::default(), told: Vec::new() }
}

impl World {
    fn new() -> Self {
        let has_failed = Arc::default();
        let hosts = [0, 1].map(|number| host(number, &has_failed));
        Self { now: Instant(1_000_000_000), hosts, in_transit: Vec::new(), has_failed }
    }

    fn run_for(&mut self, time: Span) {
        let end = self.now + time;
        while self.now < end {
            self.now += STEP;
            self.receive();
            for number in 0..2 {
                self.transmit(number);
            }
        }
    }

    fn receive(&mut self) {
        let now = self.now;
        let (arrived, in_transit) = std::mem::take(&mut self.in_transit).into_iter().partition(|it| it.0 <= now);
        self.in_transit = in_transit;
        let arrived: Vec<_> = arrived;
        for (_, number, mut bytes) in arrived {
            let Host { node, .. } = &mut self.hosts[number];
            let route = Route { socket: 0, remote: PathAddress::to_remote(address(1 - number)) };
            let opened = node.open(now, &route, &mut bytes).expect("authentic");
            let payload =
                |range: std::ops::Range<usize>, offload| PacketSlice::new(bytes[range].to_vec().into(), offload, 0);
            opened.into_iter().for_each(|it| node.process(now, &route, false, it, &bytes, payload).expect("whole"));
        }
    }

    fn transmit(&mut self, number: usize) {
        let now = self.now;
        let Host { node, peer, config, teller, told } = &mut self.hosts[number];
        if node.deadline(now) <= now {
            node.on_timeout(now);
        }
        while let Some((_, message)) = node.poll_handshake(now, || now.0) {
            self.in_transit.push((now + DELAY, 1 - number, message.as_bytes().to_vec()));
        }
        while let Some((id, transmit)) = node.poll_transmit(now) {
            let mut datagram = vec![0; node.encode_length(id, &transmit)];
            if node.seal_into(now, id, &transmit, &mut datagram, |_, _| false) {
                self.in_transit.push((now + DELAY, 1 - number, datagram));
            }
        }
        while let Some((_, event)) = node.poll_event(now) {
            told.extend(teller.changes((node, *peer), config, event, |_| None).into_iter().map(|change| (now, change)));
        }
    }

    /// What a host has told since the last call.
    fn told(&mut self, number: usize) -> Vec<(Instant, PeerChange)> {
        std::mem::take(&mut self.hosts[number].told)
    }

    fn changes(&mut self, number: usize) -> Vec<PeerChange> {
        self.told(number).into_iter().map(|(_, change)| change).collect()
    }
}

fn path(name: &str, opened_by_peer: bool, remote: usize, change: PathChange) -> PeerChange {
    let (name, remote) = (name.to_owned(), Some(address(remote)));
    PeerChange::Path(PathName { name, opened_by_peer, remote, interface: None, source: None }, change)
}

#[test]
fn a_handshake_is_told_once_at_each_end_and_then_that_the_path_works() {
    let mut world = World::new();
    world.run_for(Span::from_secs(1));
    let [near, far] = [0, 1].map(|number| world.changes(number));
    let is_handshake = |change: &&PeerChange| matches!(change, PeerChange::Established { restarted: true, .. });
    let up = PathChange::Up(Some(Span::from_millis(20)));
    for (changes, expected) in [
        (near, vec![path("dsl", false, 1, up)]),
        (far, vec![path("path-0", true, 0, PathChange::Added), path("path-0", true, 0, up)]),
    ] {
        assert_eq!(changes.iter().filter(is_handshake).count(), 1, "{changes:?}");
        let paths: Vec<_> = changes.iter().filter(|change| !is_handshake(change)).cloned().collect();
        assert_eq!(paths, expected);
    }
}

#[test]
fn two_flaps_of_a_link_within_a_second_are_told_four_times_with_their_own_times() {
    let mut world = World::new();
    world.run_for(Span::from_secs(1));
    world.told(0);
    let start = world.now;
    for _ in 0..2 {
        let now = world.now;
        world.hosts[0].node.on_link_down(now, 0);
        world.run_for(Span::from_millis(100));
        world.hosts[0].node.on_link_up(0);
        world.run_for(Span::from_millis(300));
    }
    let is_path = |(_, change): &(Instant, PeerChange)| matches!(change, PeerChange::Path(..));
    let told: Vec<_> = world.told(0).into_iter().filter(is_path).collect();
    let kinds: Vec<_> =
        told.iter().map(|(_, change)| matches!(change, PeerChange::Path(_, PathChange::Down))).collect();
    assert_eq!(kinds, [true, false, true, false], "{told:?}");
    let times: Vec<_> = told.iter().map(|(time, _)| time.since(start).as_millis_f64() as u64).collect();
    assert_eq!((times[0], times[2]), (1, 401), "{times:?}");
    assert!(times.is_sorted() && times[3] < 1000, "{times:?}");
}

#[test]
fn a_policy_that_fails_is_told_once_with_its_reason() {
    let mut world = World::new();
    world.run_for(Span::from_secs(1));
    world.told(0);
    world.has_failed.store(true, Ordering::Relaxed);
    world.run_for(Span::from_secs(30));
    assert_eq!(world.changes(0), [PeerChange::ControllerFailed("its answer is no number".into())]);
}

impl World {
    /// Lets host 0 use a path by this name.
    fn set_path(&mut self, id: u8, name: &str) {
        let Host { node, peer, .. } = &mut self.hosts[0];
        let route = Route { socket: 0, remote: PathAddress::to_remote(address(1)) };
        let config = PathConfig { name: wire::frame::PathName::nearest_to(name), ..PATH };
        node.set_path(self.now, *peer, id, route, config);
    }

    /// The names that host 1 has for the paths of host 0.
    fn names(&self) -> Vec<(u8, String)> {
        self.hosts[1].teller.names().map(|(path, name)| (path, name.clone())).collect()
    }
}

#[test]
fn a_path_has_its_openers_name_at_the_other_end_and_no_two_paths_have_one() {
    let mut world = World::new();
    let named = |names: [&str; 4]| (0..).zip(names.map(str::to_owned)).collect::<Vec<(u8, String)>>();
    for (id, name) in [(0, "dsl"), (1, "dsl"), (2, "path-0"), (3, "l\u{1b}[2J te")] {
        world.set_path(id, name);
        world.run_for(Span::from_secs(1));
    }
    assert_eq!(world.names(), named(["dsl", "path-1", "path-2", "l--2J-te"]));
    world.changes(1);
    // A reload of the peer gives a path another name: to those who see it another path.
    world.set_path(1, "lte");
    world.run_for(Span::from_secs(1));
    assert_eq!(world.names(), named(["dsl", "lte", "path-2", "l--2J-te"]));
    let changes = [("path-1", PathChange::Removed), ("lte", PathChange::Added), ("lte", PathChange::Up(None))];
    assert_eq!(world.changes(1), changes.map(|(name, change)| path(name, true, 0, change)));
}
