//! A server with a thousand clients: sessions, paths, packets, and the memory of a client that is idle.

mod network;
mod servers;

use machine::MAX_PATHS;
use network::Network;
use units::{Instant, Span};

#[global_allocator]
static COUNTING: testing::CountingAllocator = testing::CountingAllocator;

const CLIENTS: usize = 1000;
/// Memory of a client that is idle, with a session and two paths, bytes.
const MAX_IDLE_CLIENT_BYTES: i64 = 32 << 10;

#[test]
fn a_thousand_clients_have_sessions_and_their_packets_arrive() {
    let mut network = Network::new(1 + CLIENTS as u32, testing::bytes_in_use);
    for client in 1..=CLIENTS {
        network.add_peer(0, client, 0);
        network.add_peer(client, 0, 2);
    }
    let before_sessions = network.host(0).bytes_held / CLIENTS as i64;
    network.run_until(Instant(12_000_000_000));
    for client in 0..CLIENTS {
        let id = network.host(0).peers[client];
        assert!(network.host(0).node.has_session(id), "client {client}");
        let up = network
            .host(0)
            .node
            .endpoint(id)
            .map(|endpoint| endpoint.status().paths.iter().filter(|path| path.up).count());
        assert_eq!(up, Some(2), "client {client}");
    }
    for client in 1..=CLIENTS {
        let (at_server, at_client) = (network.host(0).peers[client - 1], network.host(client).peers[0]);
        network.offer(0, at_server, client as u32);
        network.offer(client, at_client, client as u32);
    }
    let end = network.now() + Span::from_secs(2);
    network.run_until(end);
    assert!(network.host(0).delivered.iter().copied().eq(1..=CLIENTS as u32));
    for client in 1..=CLIENTS {
        assert!(network.host(client).delivered.iter().copied().eq([client as u32]), "client {client}");
    }
    let end = network.now() + Span::from_secs(30);
    network.run_until(end);
    let idle_bytes = network.host(0).bytes_held / CLIENTS as i64;
    assert!(
        idle_bytes <= MAX_IDLE_CLIENT_BYTES,
        "{idle_bytes} bytes a client, {before_sessions} before its session, with at most {MAX_PATHS} paths"
    );
}
