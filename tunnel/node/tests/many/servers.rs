//! A client with two servers moves to the other when one dies, within seconds, and back by the rule of the group.

use crate::network::Network;
use ropewalk_node::{PeerGroup, RETURN_TIME};
use seal::PeerId;
use units::{Instant, Span};

const CLIENT: usize = 0;
const SERVERS: [usize; 2] = [1, 2];
/// Time within which packets arrive again after a server has died.
const MOVE_TIME: Span = Span::from_secs(3);
const STEP: Span = Span::from_millis(20);

/// A client that sends a packet every 20 ms to the active server.
struct World {
    network: Network,
    servers: [PeerId; 2],
    group: PeerGroup,
    next_packet: u32,
    moves: Vec<(Instant, usize)>,
}

impl World {
    fn new() -> Self {
        let mut network = Network::new(3, testing::bytes_in_use);
        SERVERS.iter().for_each(|server| {
            network.add_peer(*server, CLIENT, 0);
        });
        let servers = SERVERS.map(|server| network.add_peer(CLIENT, server, 2));
        let group = PeerGroup::new(vec![(servers[0], 1), (servers[1], 2)], None);
        let mut world = Self { network, servers, group, next_packet: 0, moves: Vec::new() };
        world.run(Span::from_secs(5));
        assert!(world.moves.is_empty() && world.delivered(0) > 0, "{:?}", world.moves);
        world
    }

    fn run(&mut self, span: Span) {
        let end = self.network.now() + span;
        while self.network.now() < end {
            let node = &self.network.host(CLIENT).node;
            if let Some(active) = self.group.update(self.network.now(), |id| node.works(id)) {
                let server = usize::from(active == self.servers[1]);
                self.moves.push((self.network.now(), server));
            }
            self.network.offer(CLIENT, self.group.active(), self.next_packet);
            self.next_packet += 1;
            let next = self.network.now() + STEP;
            self.network.run_until(next);
        }
    }

    fn delivered(&self, server: usize) -> usize {
        self.network.host(SERVERS[server]).delivered.len()
    }

    fn set_down(&mut self, server: usize, is_down: bool) {
        self.network.set_down(SERVERS[server], is_down);
    }
}

#[test]
fn a_client_moves_within_seconds_when_its_server_dies_and_back_after_a_minute() {
    let mut world = World::new();
    world.set_down(0, true);
    let died = world.network.now();
    world.run(MOVE_TIME);
    assert_eq!(world.moves.iter().map(|(_, server)| *server).collect::<Vec<_>>(), [1]);
    assert!(world.moves[0].0.since(died) < MOVE_TIME && world.delivered(1) > 0, "{:?}", world.moves);
    world.run(Span::from_secs(20));
    world.set_down(0, false);
    let returned = world.network.now();
    world.run(Span::from_secs(90));
    assert_eq!(world.moves.len(), 2, "{:?}", world.moves);
    let (at, server) = world.moves[1];
    assert!(server == 0 && at.since(returned) >= RETURN_TIME, "{:?}", world.moves);
}

#[test]
fn a_server_that_comes_and_goes_moves_nothing() {
    let mut world = World::new();
    for _ in 0..4 {
        world.set_down(0, true);
        world.run(Span::from_secs(15));
        world.set_down(0, false);
        world.run(Span::from_secs(30));
    }
    assert_eq!(world.moves.len(), 1, "{:?}", world.moves);
}
