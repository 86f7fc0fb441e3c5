//! Two hosts on a bad network, which restart and whose wall clocks jump: nothing is opened that was not sealed, and
//! nothing twice; and once the network is good, each opens the other's datagrams.

use crate::test_peer::{TestPeer, WALL_CLOCK, entropy, key};
use seal::{Established, HandshakeConfig, PresharedKey, SealDevice};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use testnet::LinkConfig;
use units::{Instant, RngStream, Span};

/// Interval at which each host seals a datagram.
const INTERVAL: Span = Span::from_millis(50);

type Bodies = Rc<RefCell<BTreeSet<Vec<u8>>>>;

struct TestHost {
    seed: u64,
    index: usize,
    peer: TestPeer,
    restarts: u64,
    /// Error of the wall clock, nanoseconds.
    clock_error: u64,
    next_datagram: Instant,
    outgoing: VecDeque<Vec<u8>>,
    /// Bodies that both hosts have sealed.
    sealed: Bodies,
    opened: BTreeSet<Vec<u8>>,
}

impl TestHost {
    fn new(seed: u64, index: usize, sealed: &Bodies) -> Self {
        let (peer, opened) = (test_peer(seed, index, 0), BTreeSet::new());
        let (outgoing, sealed) = (VecDeque::new(), Rc::clone(sealed));
        Self { seed, index, peer, restarts: 0, clock_error: 0, next_datagram: Instant::ZERO, outgoing, sealed, opened }
    }

    fn restart(&mut self) {
        self.restarts += 1;
        self.peer = test_peer(self.seed, self.index, self.restarts);
    }

    /// Packet numbers of a peer that has lost its state begin at zero.
    fn on_established(&mut self, established: Option<Established>) {
        if established.is_some_and(|established| established.numbers_reset) {
            self.peer.next_packet_number = 0;
        }
    }
}

fn test_peer(seed: u64, index: usize, restarts: u64) -> TestPeer {
    let names = ["a", "b"];
    let config = HandshakeConfig { under_load_threshold: 5, ..HandshakeConfig::new(key(seed, names[index])) };
    let mut device = SealDevice::new(config, Box::new(entropy(seed, &format!("{index} {restarts}"))));
    let preshared = PresharedKey::generate(&mut entropy(seed, "preshared"));
    let peer_id = device.add(key(seed, names[1 - index]).public_key(), Some(preshared)).unwrap();
    device.start_initiating(Instant::ZERO, peer_id);
    TestPeer { device, peer_id, next_packet_number: 0 }
}

impl testnet::Host for TestHost {
    type Datagram = Vec<u8>;

    fn deadline(&self, _: Instant) -> Instant {
        self.peer.device.deadline().min(self.next_datagram)
    }

    fn on_timeout(&mut self, now: Instant) {
        while let Some(peer) = self.peer.device.initiation_due(now, (WALL_CLOCK + now.0).wrapping_add(self.clock_error))
        {
            let initiation = self.peer.device.initiation(now, peer, 0);
            self.outgoing.extend(initiation.map(|message| message.as_bytes().to_vec()));
        }
        if now < self.next_datagram {
            return;
        }
        self.next_datagram = now + INTERVAL;
        let established = self.peer.device.status(self.peer.peer_id).and_then(|status| status.latest_handshake);
        if established.is_some_and(|handshake| now.since(handshake) < seal::REJECT_AFTER) {
            let body = format!("{} {} {now:?}", self.index, self.restarts).into_bytes();
            self.outgoing.push_back(self.peer.seal(now, &body));
            self.sealed.borrow_mut().insert(body);
        }
    }

    fn receive(&mut self, now: Instant, _: usize, datagram: Vec<u8>) {
        if datagram[0] == 0 {
            let Ok(outcome) = self.peer.device.receive(now, |_| 0, &[self.index as u8], &datagram) else { return };
            self.on_established(outcome.established);
            self.outgoing.extend(outcome.reply.map(|reply| reply.as_bytes().to_vec()));
        } else if let Ok((opened, body)) = self.peer.open(now, &datagram) {
            self.on_established(opened.established);
            assert!(self.sealed.borrow().contains(&body), "seed {}: opened what was not sealed", self.seed);
            assert!(self.opened.insert(body), "seed {}: opened twice", self.seed);
        }
    }

    fn poll_transmit(&mut self, _: Instant) -> Option<(usize, u32, Vec<u8>)> {
        self.outgoing.pop_front().map(|datagram| (0, datagram.len() as u32, datagram))
    }

    fn corrupt(mut datagram: Vec<u8>, rng: &mut RngStream) -> Option<Vec<u8>> {
        let bit = rng.below(datagram.len() as u64 * 8) as usize;
        datagram[bit / 8] ^= 1 << (bit % 8);
        Some(datagram)
    }
}

/// Returns the numbers of opened datagrams and of restarts.
fn run(seed: u64) -> (usize, u64) {
    let mut rng = RngStream::named(seed, "network");
    let (delay, reordering) = (Span::from_millis(20), Span::from_millis(500));
    let link = LinkConfig { delay, reordering, loss: 0.2, duplication: 0.1, corruption: 0.1, ..LinkConfig::ideal() };
    let sealed = Bodies::default();
    let hosts = [0, 1].map(|index| TestHost::new(seed, index, &sealed));
    let mut simulation = testnet::Simulation::new(seed, vec![[link; 2]], hosts);
    for _ in 0..100 {
        let max_pause = if rng.chance(0.02) { 60_000 } else { 400 };
        simulation.run_for(Span::from_millis(rng.below(max_pause)));
        let host = usize::from(rng.chance(0.5));
        match rng.below(20) {
            0 => simulation.hosts[host].restart(),
            1 => simulation.hosts[host].clock_error = rng.below(20_000_000_000),
            2 => simulation.with_host(host, |host, now| host.peer.device.rekey(now, host.peer.peer_id)),
            3..8 => simulation.replay(),
            _ => {}
        }
    }
    let opened_counts = simulation.hosts.each_ref().map(|host| host.opened.len());
    // A clock may be 20 s behind, and a cookie may be required.
    simulation.network.links[0] = [LinkConfig { delay, ..LinkConfig::ideal() }; 2];
    simulation.run_for(Span::from_secs(45));
    for (host, opened_before) in simulation.hosts.iter().zip(opened_counts) {
        assert!(host.opened.len() > opened_before + 100, "seed {seed}: no new session");
    }
    (opened_counts.iter().sum(), simulation.hosts.iter().map(|host| host.restarts).sum())
}

#[test]
fn only_sealed_datagrams_are_opened_and_only_once_on_any_network() {
    let (mut opened, mut restarts) = (0, 0);
    let seeds = testing::campaign(100);
    for seed in seeds.range() {
        let run = run(seed);
        opened += run.0;
        restarts += run.1;
    }
    let reached = opened > 10_000 && restarts > 100;
    assert!(reached || !seeds.reach_every_situation(), "the campaign has to reach both: {opened}, {restarts}");
}
