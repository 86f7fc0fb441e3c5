//! Roaming as an attacker sees it: a path moves to an address of the peer that is validated (RFC 9000, sections 8 and 9),
//! and to no other.

mod blind_acks;
mod hostile;
mod network;

use hostile::HostilePeer;
use network::{Address, DELAY, Datagram, Host, Network};
use testnet::options;
use units::{Instant, Span};
use wire::frame::{DataHeader, Frame, PathState};

const CLIENT: Address = Address { ip: 1, port: 1000 };
const SERVER: Address = Address { ip: 2, port: 4754 };
/// An address of the attacker, or of its victim.
const OTHER: Address = Address { ip: 9, port: 99 };
/// Round trip of the network.
const RTT: Span = Span::from_millis(20);
/// Probe timeout of a path with that round trip: the minimum.
const PTO: Span = Span::from_millis(60);
/// UDP payload of a datagram with a ping: header 12, tag 16, type 1, token 8.
const PING_BYTES: usize = 37;
/// UDP payload of a datagram with a packet and an acknowledgement: header 12, tag 16, type 1, length of the frames 1,
/// acknowledgement 15, header and length of the packet 8, packet 1400.
const BUNDLE_BYTES: usize = 1453;

/// A client with one configured path, and a server that learns it; they have exchanged packets 0 to 1000.
fn connected() -> Network {
    let options = options("cubic", "minrtt");
    let hosts = [Host::new(0, 1, vec![CLIENT], &options), Host::new(1, 2, vec![SERVER], &options)];
    let mut network = Network::new(hosts);
    network.host_mut(0).add_path(Instant::ZERO, 0, 0, SERVER);
    network.run_for(Span::from_millis(500));
    network.exchange(0..1000);
    assert_eq!(network.host(1).route(0), (0, CLIENT));
    network
}

/// Asserts that both hosts have got all packets up to `count`.
fn assert_delivered(network: &mut Network, count: u64) {
    network.run_for(Span::from_secs(1));
    for host in [0, 1].map(|host| network.host(host)) {
        assert!(host.delivered.iter().copied().eq(0..count), "{} of {count}", host.delivered.len());
    }
}

/// An attacker that gives one datagram of the client another source, a victim's.
#[test]
fn a_datagram_with_the_source_of_a_silent_victim_moves_nothing() {
    let mut network = connected();
    let mut is_done = false;
    network.attack(move |_, mut datagram| {
        if datagram.source == CLIENT && !is_done {
            (datagram.source, is_done) = (OTHER, true);
        }
        vec![(DELAY, datagram)]
    });
    network.exchange(1000..3000);
    assert!(network.host(1).moves().is_empty(), "{:?}", network.host(1).moves());
    assert_eq!((network.host(1).route(0), network.host(1).path(0).refused_addresses), ((0, CLIENT), 1));
    let (sent, received) = network.bytes(1, OTHER);
    assert_eq!(
        (sent, received),
        (PING_BYTES, BUNDLE_BYTES),
        "the client still sends from its address: one ping is enough"
    );
    assert_delivered(&mut network, 3000);
}

/// A listener whose copies arrive before what it copies, which the receiver then drops as replayed; what is sent to it,
/// it passes on, so that its address seems to work.
fn copy(server_sees: Address, client_sees: Address) -> network::Attack {
    Box::new(move |_, datagram| {
        let (source, destination) = match (datagram.source, datagram.destination) {
            (CLIENT, _) => (server_sees, SERVER),
            (_, OTHER) => (client_sees, CLIENT),
            _ => return vec![(DELAY, datagram)],
        };
        let copy = Datagram { source, destination, bytes: datagram.bytes.clone() };
        vec![(DELAY / 2, copy), (DELAY, datagram)]
    })
}

#[test]
fn a_listener_that_copies_all_datagrams_from_its_own_address_moves_nothing() {
    for client_sees in [SERVER, OTHER] {
        let mut network = connected();
        network.attack(copy(OTHER, client_sees));
        network.exchange(1000..6000);
        assert!([0, 1].iter().all(|host| network.host(*host).moves().is_empty()), "{client_sees:?}");
        assert_eq!([network.host(0).route(0), network.host(1).route(0)], [(0, SERVER), (0, CLIENT)]);
        assert!(network.host(1).path(0).refused_addresses >= 1);
        // It is ignored for ten seconds after that.
        let (sent, _) = network.bytes(1, OTHER);
        assert!(sent <= 3 * PING_BYTES, "{sent} bytes");
        assert_delivered(&mut network, 6000);
    }
}

/// The peer's address changes from the network's point of view at once; the server has its first datagram after a
/// delay. The time from there: a round trip for the ping's answer, a probe timeout for that of the present address.
fn assert_moves(address: Address) -> Network {
    let mut network = connected();
    network.host_mut(0).sockets[0] = address;
    let change = network.now();
    network.exchange(1000..2000);
    assert_eq!(network.host(1).moves(), [change + DELAY + RTT + PTO]);
    assert_eq!(network.host(1).route(0), (0, address));
    network
}

#[test]
fn after_another_mapping_of_a_nat_a_path_keeps_its_measurements_and_no_packet_is_lost() {
    let mut network = connected();
    let before = network.host(1).path(0);
    assert_delivered(&mut network, 1000);
    let mut network = assert_moves(Address { port: 2000, ..CLIENT });
    let after = network.host(1).path(0);
    assert_eq!((after.moves, after.failures, after.max_datagram_size), (1, 0, 1472));
    assert!(after.cwnd >= before.cwnd, "{} and {}", before.cwnd, after.cwnd);
    assert_delivered(&mut network, 2000);
}

#[test]
fn in_another_network_a_path_begins_anew_and_no_packet_is_lost() {
    let mut network = connected();
    let address = Address { ip: 3, port: 1000 };
    let before = network.host(1).path(0);
    network.host_mut(0).sockets[0] = address;
    while network.host(1).moves().is_empty() {
        network.run_for(Span::from_millis(1));
    }
    let after = network.host(1).path(0);
    // RFC 6928: ten packets; RFC 9000, section 14.1: 1200 bytes.
    assert!(before.cwnd > 10 && before.max_datagram_size == 1472, "{before:?}");
    assert_eq!((after.cwnd, after.max_datagram_size, after.min_rtt), (10, 1200, Some(RTT)));
    let mut network = assert_moves(address);
    assert_eq!(network.host(1).path(0).max_datagram_size, 1472, "found again");
    assert_delivered(&mut network, 2000);
}

/// Each datagram of the client has another source: a flood of addresses.
#[test]
fn a_flood_of_addresses_costs_three_pings_a_probe_timeout_and_no_address_gets_more_than_three_times_its_bytes() {
    let mut network = connected();
    let mut port = 0;
    network.attack(move |_, mut datagram| {
        if datagram.source == CLIENT {
            port += 1;
            datagram.source = Address { port, ..OTHER };
        }
        vec![(DELAY, datagram)]
    });
    let start = network.now();
    network.exchange(1000..4000);
    let timeouts = (network.now().since(start).as_millis() / PTO.as_millis()) as usize;
    let mut pings = 0;
    for port in 0..=u16::MAX {
        let (sent, received) = network.bytes(1, Address { port, ..OTHER });
        assert!(sent <= 3 * received && sent % PING_BYTES == 0, "port {port}: {sent} and {received}");
        pings += sent / PING_BYTES;
    }
    assert!((1..=timeouts + 3).contains(&pings), "{pings} pings");
    assert!(network.host(1).moves().is_empty());
}

/// A path that a hostile peer opens with its victim's address.
#[test]
fn a_path_that_the_peer_opened_gets_three_times_its_bytes_before_it_is_validated() {
    let mut peer = HostilePeer::connect();
    // A small first datagram, and then data with gaps between its packet numbers, so that acknowledgements are long.
    peer.send_frames(OTHER, 0, &[Frame::Ping { token: 1 }]);
    let (mut to_victim, mut datagrams) = (0, 0);
    for k in 1..2000 {
        let body =
            DataHeader { stream: 1, sequence: 2 * k, first: true, last: true, ..DataHeader::default() }.to_bytes();
        if k % 2 == 0 && k < 1000 {
            let fragment = [body.as_slice(), &u64::from(k).to_be_bytes()].concat();
            peer.skip_packet_numbers(0, 20_000);
            peer.send(OTHER, 0, &fragment);
        }
        peer.network.offer(1, u64::from(k), 1000);
        let sent = peer.run_for(DELAY);
        datagrams += sent.len();
        to_victim += sent.iter().map(|datagram| datagram.bytes).sum::<usize>();
        assert!(to_victim <= 3 * peer.sent_bytes, "{to_victim} for {}", peer.sent_bytes);
        assert!(sent.iter().all(|datagram| datagram.destination == OTHER && datagram.frames.is_some()), "no data");
    }
    assert!(datagrams > 10, "{datagrams}");
    assert!(!peer.network.host(1).path(0).up);
}

/// It removes the path and opens it again before the driver has heard of the removal.
#[test]
fn a_path_that_the_peer_removed_and_opened_again_gets_three_times_its_bytes() {
    let mut peer = HostilePeer::connect();
    peer.send_frames(OTHER, 1, &[Frame::Ping { token: 1 }]);
    peer.network.offer(1, 1, 1000);
    let mut to_victim: usize = peer.run_for(DELAY).iter().map(|datagram| datagram.bytes).sum();
    peer.send_frames(OTHER, 1, &[Frame::Path { path: 1, state: PathState::Removed }]);
    peer.send_frames(OTHER, 1, &[Frame::Ping { token: 2 }]);
    for id in 2..60 {
        // The tunnel stays in use.
        peer.network.offer(1, id, 1000);
        to_victim += peer.run_for(Span::from_secs(1)).iter().map(|datagram| datagram.bytes).sum::<usize>();
    }
    assert!((1..=3 * peer.sent_bytes).contains(&to_victim), "{to_victim} for {}", peer.sent_bytes);
}

#[test]
fn datagrams_at_another_socket_of_a_configured_path_are_processed_and_move_nothing() {
    let options = options("cubic", "minrtt");
    let sockets = vec![CLIENT, Address { port: 1001, ..CLIENT }];
    let second = sockets[1];
    let hosts = [Host::new(0, 1, sockets, &options), Host::new(1, 2, vec![SERVER], &options)];
    let mut network = Network::new(hosts);
    network.host_mut(0).add_path(Instant::ZERO, 0, 0, SERVER);
    network.run_for(Span::from_millis(500));
    for source in [SERVER, OTHER] {
        network.attack(move |_, mut datagram| {
            if datagram.destination == CLIENT {
                (datagram.source, datagram.destination) = (source, second);
            }
            vec![(DELAY, datagram)]
        });
        let first = network.host(0).delivered.len() as u64;
        network.exchange(first..first + 500);
        assert_eq!(network.host(0).route(0), (0, SERVER));
        assert_eq!(network.bytes(0, OTHER).0, 0);
        assert_delivered(&mut network, first + 500);
    }
}

/// A server that has moved ends, and starts again at its configured address: it knows no address of the client.
#[test]
fn a_path_goes_back_to_its_configured_address_when_the_one_it_moved_to_is_silent() {
    let mut network = connected();
    network.host_mut(1).sockets[0] = OTHER;
    network.exchange(1000..2000);
    assert_eq!(network.host(0).route(0), (0, OTHER));
    assert_delivered(&mut network, 2000);
    *network.host_mut(1) = Host::new(1, 3, vec![SERVER], &options("cubic", "minrtt"));
    let restart = network.now();
    while network.host(1).delivered.is_empty() {
        network.offer(0, 5000, 1000);
        network.run_for(Span::from_millis(1));
        assert!(network.now().since(restart) < Span::from_secs(20), "the tunnel works again");
    }
    assert_eq!(network.host(0).route(0), (0, SERVER));
}

/// A server that is silent at the address that it moved to, and still has its session.
#[test]
fn the_configured_address_is_pinged_while_the_path_is_down_and_taken_when_it_answers() {
    let mut network = connected();
    network.host_mut(1).sockets[0] = OTHER;
    network.exchange(1000..2000);
    assert_delivered(&mut network, 2000);
    // It says nothing until it hears of the client.
    network.host_mut(1).sockets = vec![SERVER];
    let mut is_silent = true;
    network.attack(move |_, datagram| {
        is_silent &= datagram.destination != SERVER;
        let is_lost = is_silent && datagram.source == SERVER;
        if is_lost { Vec::new() } else { vec![(DELAY, datagram)] }
    });
    network.offer(0, 2000, 1000);
    network.run_for(Span::from_secs(2));
    assert_eq!(network.host(0).route(0), (0, SERVER));
    assert!(network.host(0).path(0).up);
}
