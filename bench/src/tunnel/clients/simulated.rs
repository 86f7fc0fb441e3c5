//! `ropewalk-bench clients SERVER-KEY SERVER-ADDRESS FIRST COUNT`: clients of a server without devices and packets, until
//! they are killed. Prints one line of JSON when all of them are up.

use crate::shell;
use crate::tunnel::ropewalk::GRE_IN_UDP_PORT;
use machine::{Entropy, Payload, TunnelOptions};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use node::{Address, Node, Route};
use seal::{HandshakeConfig, PeerId, PrivateKey, PublicKey, SealDevice, SystemEntropy};
use serde_json::json;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use testnet::PATH_CONFIG;
use units::Instant;

/// Maximum number of clients: each has an address in a network of 65 536.
pub(crate) const MAX_CLIENTS: usize = 60_000;
/// Time that all clients have to come up.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The longest datagram that is received, bytes.
const MAX_DATAGRAM: usize = 2048;

/// The key of a client.
pub(super) fn private_key(client: usize) -> PrivateKey {
    let mut bytes = [7; 32];
    bytes[8..16].copy_from_slice(&(client as u64).to_le_bytes());
    PrivateKey::from_bytes(bytes)
}

/// The inner address of a client.
pub(super) fn inner_address(client: usize) -> Ipv4Addr {
    let [high, low] = ((client + 2) as u16).to_be_bytes();
    Ipv4Addr::new(10, 201, high, low)
}

fn outer_address(client: usize) -> Ipv4Addr {
    let [high, low] = ((client + 2) as u16).to_be_bytes();
    Ipv4Addr::new(10, 200, high, low)
}

/// The server's address, the only one that a client sends to.
#[derive(Clone, Debug, PartialEq)]
struct Server(SocketAddrV4);

impl Address for Server {
    fn octets(&self, octets: &mut Vec<u8>) {
        octets.extend_from_slice(&self.0.ip().octets());
        octets.extend_from_slice(&self.0.port().to_be_bytes());
    }

    fn is_same_host(&self, other: &Self) -> bool {
        self.0.ip() == other.0.ip()
    }
}

/// A part of an inner packet: there are none.
#[derive(Clone, Debug)]
struct NoPacket;

impl Payload for NoPacket {
    fn len(&self) -> u32 {
        0
    }

    fn slice(&self, _: u32, _: u32) -> Self {
        Self
    }
}

struct Client {
    node: Node<NoPacket, Server>,
    peer: PeerId,
    route: Route<Server>,
    socket: UdpSocket,
    deadline: Instant,
}

impl Client {
    fn new(number: usize, server_key: PublicKey, server: SocketAddrV4) -> std::io::Result<Self> {
        let socket = UdpSocket::bind((outer_address(number), 0))?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        let sessions = SealDevice::new(HandshakeConfig::new(private_key(number)), Box::new(SystemEntropy));
        let mut node = Node::new(sessions, Box::new(|_: &Route<Server>| PATH_CONFIG));
        let new_config = move || {
            TunnelOptions::default().endpoint_config(&[1], Entropy::seeded(number as u64)).expect("the defaults")
        };
        let peer = node.add_peer(server_key, None, Box::new(new_config)).map_err(std::io::Error::other)?;
        let route = Route { socket: 0, remote: Server(server) };
        Ok(Self { node, peer, route, socket, deadline: Instant::ZERO })
    }

    /// Handles the datagrams that have arrived.
    fn receive(&mut self, now: Instant) {
        let mut buffer = [0; MAX_DATAGRAM];
        while let Ok(len) = self.socket.recv(&mut buffer) {
            let datagram = &mut buffer[..len];
            if let Ok(Some(opened)) = self.node.open(now, &self.route, datagram) {
                let _ = self.node.process(now, &self.route, false, opened, datagram, |_, _| NoPacket);
            }
        }
    }

    /// Handles the timers, and sends the datagrams that are due.
    fn send(&mut self, now: Instant) {
        if self.node.deadline(now) <= now {
            self.node.on_timeout(now);
        }
        while self.node.poll_delivery().is_some() {}
        while self.node.poll_event(now).is_some() {}
        while let Some((_, message)) = self.node.poll_handshake(now, wall_clock) {
            let _ = self.socket.send(message.as_bytes());
        }
        while let Some((peer, transmit)) = self.node.poll_transmit(now) {
            let mut datagram = vec![0; self.node.encode_length(peer, &transmit)];
            if self.node.seal_into(now, peer, &transmit, &mut datagram, |_, _| false) {
                let _ = self.socket.send(&datagram);
            }
        }
        self.deadline = self.node.deadline(now);
    }
}

fn wall_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}

/// `ropewalk-bench clients SERVER-KEY SERVER-ADDRESS FIRST COUNT`
pub(crate) fn run(arguments: &[&str]) -> Result<(), String> {
    let usage = || "clients SERVER-KEY SERVER-ADDRESS FIRST COUNT".to_owned();
    let [key, server, first, count] = arguments else { return Err(usage()) };
    let key: PublicKey = key.parse().map_err(|_| usage())?;
    let server = SocketAddrV4::new(server.parse().map_err(|_| usage())?, GRE_IN_UDP_PORT);
    let first: usize = first.parse().map_err(|_| usage())?;
    let count: usize = count.parse().map_err(|_| usage())?;
    let (_, most_files) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|error| error.to_string())?;
    setrlimit(Resource::RLIMIT_NOFILE, most_files, most_files).map_err(|error| error.to_string())?;
    let clients = (first..first + count).map(|number| Client::new(number, key, server));
    let mut clients = clients.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    serve(&mut clients)
}

/// Runs all clients, whose paths open at once. Ends with an error if they do not come up.
fn serve(clients: &mut [Client]) -> Result<(), String> {
    let start = std::time::Instant::now();
    // Not at zero, where timers that were never set would seem to be due.
    let now = || Instant(1_000_000_000 + start.elapsed().as_nanos() as u64);
    for client in clients.iter_mut() {
        client.node.set_path(now(), client.peer, 0, client.route.clone(), PATH_CONFIG);
        client.send(now());
    }
    let (mut session_ms, mut is_up) = (None, false);
    loop {
        for index in ready(clients, now())? {
            clients[index].receive(now());
            clients[index].send(now());
        }
        if !is_up {
            let elapsed_ms = start.elapsed().as_secs_f64() * 1e3;
            if session_ms.is_none() && clients.iter().all(|client| client.node.has_session(client.peer)) {
                session_ms = Some(elapsed_ms);
            }
            if clients.iter().all(|client| client.node.works(client.peer)) {
                is_up = true;
                shell::print(&format!("{}\n", json!({ "session_ms": session_ms, "up_ms": elapsed_ms })))?;
            } else if start.elapsed() > TIMEOUT {
                let missing = clients.iter().filter(|client| !client.node.works(client.peer)).count();
                return Err(format!("{missing} clients did not come up"));
            }
        }
    }
}

/// Waits for events. Returns the clients with datagrams or due timers.
fn ready(clients: &[Client], now: Instant) -> Result<Vec<usize>, String> {
    let deadline = clients.iter().map(|client| client.deadline).min().unwrap_or(Instant::NEVER);
    let wait_ms = (deadline.since(now).as_nanos().div_ceil(1_000_000)).min(1000);
    let mut sockets: Vec<PollFd<'_>> =
        clients.iter().map(|client| PollFd::new(client.socket.as_fd(), PollFlags::POLLIN)).collect();
    poll(&mut sockets, PollTimeout::from(wait_ms as u16)).map_err(|error| error.to_string())?;
    let is_ready = |socket: &PollFd<'_>| socket.any().unwrap_or(false);
    let indices = clients.iter().zip(&sockets).enumerate();
    let ready = indices.filter(|(_, (client, socket))| is_ready(socket) || client.deadline <= now);
    Ok(ready.map(|(index, _)| index).collect())
}
