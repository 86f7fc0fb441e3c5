//! The end that answers speed tests, on the control thread. Everything is bounded: one test per peer and a few in
//! total, the streams of a test, the time of a stream and of a test, the size of echoed datagrams.

use super::{Hello, PORT, PROGRESS_INTERVAL, Progress, What};
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::{Instant, timeout, timeout_at};

/// The longest time of a stream.
pub const MAX_PHASE: Duration = Duration::from_secs(30);
/// Maximum number of streams of a test at one time.
pub const MAX_STREAMS: usize = 16;
/// The longest time of a test, after which its peer may begin a new one.
const MAX_TEST: Duration = Duration::from_secs(900);
/// Maximum number of tests of all peers at one time.
const MAX_TESTS: usize = 4;
/// Maximum number of connections that have not sent their first line.
const MAX_CONNECTIONS: usize = MAX_TESTS * (MAX_STREAMS + 1);
/// The time for the first line.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest first line, and the longest datagram that is sent back, bytes.
const MAX_HELLO_LEN: usize = 96;
/// The shortest prefix of a network whose hosts belong to a peer. Shorter ones are parts of a default route.
const SHORTEST_PREFIX: u8 = 8;
const BLOCK_LEN: usize = 1 << 16;

/// Answers the tests of peers.
#[derive(Debug)]
pub struct Responder {
    networks: RwLock<Networks>,
    tests: Mutex<BTreeMap<Peer, Test>>,
    connections: tokio::sync::Semaphore,
    /// What the other end gets on this one, a line.
    about: String,
}

/// The networks of this end and of the peers.
#[derive(Debug)]
struct Networks {
    /// The networks of this end's own inner addresses.
    own: Vec<IpNet>,
    /// The networks of the peers, each with its peer.
    peers: Vec<(IpNet, Peer)>,
}

/// The key of a peer: the first of its networks, which no other peer has, and which a reload does not change.
type Peer = IpNet;

#[derive(Debug)]
struct Test {
    id: u64,
    streams: usize,
}

/// The place of a stream or a test, which ends when this is dropped.
struct Place<'a> {
    responder: &'a Responder,
    peer: Peer,
    what: What,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut tests = self.responder.tests();
        match (self.what, tests.get_mut(&self.peer)) {
            (What::Hold, _) => drop(tests.remove(&self.peer)),
            (_, Some(test)) => test.streams = test.streams.saturating_sub(1),
            (_, None) => {}
        }
    }
}

impl Networks {
    fn new<'a>(own: &[IpNet], peers: impl IntoIterator<Item = &'a [IpNet]>) -> Self {
        let with_peer = |networks: &'a [IpNet]| networks.iter().map(|network| (*network, networks[0]));
        Self { own: own.to_vec(), peers: peers.into_iter().flat_map(with_peer).collect() }
    }

    /// The peer that an address belongs to, by the longest prefix. A host of the Internet behind a server with a
    /// default route matches only that route, and is not a host of the tunnel.
    fn peer(&self, address: IpAddr) -> Option<Peer> {
        let matching = self.peers.iter().filter(|(network, _)| network.contains(&address));
        let (network, peer) = matching.max_by_key(|(network, _)| network.prefix_len())?;
        let is_own = || self.own.iter().any(|own| own.contains(&address));
        (network.prefix_len() >= SHORTEST_PREFIX || is_own()).then_some(*peer)
    }
}

impl Responder {
    /// A responder for peers with these inner networks, at an end whose addresses are in the networks `own`.
    #[must_use]
    pub fn new<'a>(own: &[IpNet], peers: impl IntoIterator<Item = &'a [IpNet]>) -> Self {
        let connections = tokio::sync::Semaphore::new(MAX_CONNECTIONS);
        let about = String::new();
        Self { networks: RwLock::new(Networks::new(own, peers)), tests: Mutex::default(), connections, about }
    }

    /// The same, which tells peers that test this version and the host's name.
    #[must_use]
    pub fn with_version(self, version: &str) -> Self {
        let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Self { about: format!("about {host} {version}\n"), ..self }
    }

    /// Changes the networks, after a reload. Running tests continue.
    pub fn set_networks<'a>(&self, own: &[IpNet], peers: impl IntoIterator<Item = &'a [IpNet]>) {
        *self.networks.write().unwrap_or_else(PoisonError::into_inner) = Networks::new(own, peers);
    }

    /// Listens on the tunnel's device and answers. It does not bind to the device's addresses: they change with a
    /// reload, and Linux takes packets for them from any device.
    ///
    /// # Errors
    /// The port is taken on this device.
    pub fn start(self: &Arc<Self>, device: &str) -> io::Result<()> {
        for address in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)] {
            let address = SocketAddr::new(address, PORT);
            let listener = match listen(address, device) {
                Ok(listener) => TcpListener::from_std(listener)?,
                // The host has no IPv6.
                Err(_) if address.is_ipv6() => continue,
                Err(error) => return Err(error),
            };
            let socket = UdpSocket::from_std(socket(address, device, socket2::Type::DGRAM)?.into())?;
            tokio::spawn(accept(Arc::clone(self), listener));
            tokio::spawn(echo(Arc::clone(self), socket));
        }
        Ok(())
    }

    /// The tests; poisoned only if this code panicked.
    fn tests(&self) -> MutexGuard<'_, BTreeMap<Peer, Test>> {
        self.tests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The peer that may test from an address; `None` for a host beyond the tunnel's own networks.
    fn peer(&self, address: IpAddr) -> Option<Peer> {
        self.networks.read().unwrap_or_else(PoisonError::into_inner).peer(address)
    }

    /// Admits a connection, or returns the reason for the refusal.
    fn admit(&self, address: IpAddr, hello: &Hello) -> Result<Place<'_>, &'static str> {
        let peer = self.peer(address).ok_or("only hosts of the tunnel's own networks may test")?;
        if hello.seconds == 0 || Duration::from_secs(hello.seconds) > MAX_PHASE && hello.what != What::Hold {
            return Err("the time is 1 to 30 seconds");
        }
        let mut tests = self.tests();
        let count = tests.len();
        match (hello.what, tests.get_mut(&peer)) {
            (What::Hold, None) if count < MAX_TESTS => {
                tests.insert(peer, Test { id: hello.id, streams: 0 });
            }
            (What::Hold, _) => return Err("busy"),
            (_, Some(test)) if test.id == hello.id && test.streams < MAX_STREAMS => test.streams += 1,
            (_, Some(test)) if test.id == hello.id => return Err("too many streams"),
            _ => return Err("no such test"),
        }
        Ok(Place { responder: self, peer, what: hello.what })
    }

    /// Whether a datagram belongs to a test of the peer that it came from.
    fn is_of_test(&self, address: IpAddr, datagram: &[u8]) -> bool {
        let Some(id) = datagram.first_chunk().map(|id| u64::from_be_bytes(*id)) else { return false };
        self.peer(address).is_some_and(|peer| self.tests().get(&peer).is_some_and(|test| test.id == id))
    }

    async fn serve(&self, mut stream: TcpStream, address: IpAddr) -> io::Result<()> {
        let line = timeout(HELLO_TIMEOUT, read_line(&mut stream)).await??;
        let Some(hello) = Hello::decode(&line) else {
            return stream.write_all(b"not a line of ropewalk-test 1\n").await;
        };
        let place = match self.admit(address, &hello) {
            Ok(place) => place,
            Err(reason) => return stream.write_all(format!("{reason}\n").as_bytes()).await,
        };
        let end = Instant::now() + Duration::from_secs(hello.seconds);
        let result = match hello.what {
            What::Hold => hold(stream).await,
            What::Down => send(stream, end).await,
            What::Up => receive(stream, Duration::from_secs(hello.seconds)).await,
            What::About => stream.write_all(self.about.as_bytes()).await,
        };
        drop(place);
        result
    }
}

fn socket(address: SocketAddr, device: &str, kind: socket2::Type) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), kind, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(kind == socket2::Type::STREAM)?;
    socket.bind_device(Some(device.as_bytes()))?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn listen(address: SocketAddr, device: &str) -> io::Result<std::net::TcpListener> {
    let socket = socket(address, device, socket2::Type::STREAM)?;
    socket.listen(16)?;
    Ok(socket.into())
}

async fn accept(responder: Arc<Responder>, listener: TcpListener) {
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            // No file descriptor is left.
            tokio::time::sleep(PROGRESS_INTERVAL).await;
            continue;
        };
        let responder = Arc::clone(&responder);
        tokio::spawn(async move {
            let Ok(_place) = responder.connections.try_acquire() else { return };
            // The client sees the end of the connection.
            let _ = responder.serve(stream, address.ip()).await;
        });
    }
}

async fn echo(responder: Arc<Responder>, socket: UdpSocket) {
    let mut bytes = [0; MAX_HELLO_LEN];
    loop {
        let Ok((length, address)) = socket.recv_from(&mut bytes).await else { continue };
        if responder.is_of_test(address.ip(), &bytes[..length]) {
            // The test counts a lost answer as a loss.
            let _ = socket.try_send_to(&bytes[..length], address);
        }
    }
}

/// The first line, without its end.
async fn read_line(stream: &mut TcpStream) -> io::Result<String> {
    let mut line = Vec::new();
    while line.len() < MAX_HELLO_LEN {
        match stream.read_u8().await? {
            b'\n' => break,
            byte => line.push(byte),
        }
    }
    String::from_utf8(line).map_err(io::Error::other)
}

/// Keeps a test open until its connection ends.
async fn hold(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(b"ok\n").await?;
    let ended = timeout(MAX_TEST, async {
        while stream.read(&mut [0; 64]).await? > 0 {}
        io::Result::Ok(())
    })
    .await;
    ended.unwrap_or(Ok(()))
}

async fn send(mut stream: TcpStream, end: Instant) -> io::Result<()> {
    let block = vec![0; BLOCK_LEN];
    while Instant::now() < end {
        match timeout_at(end, stream.write(&block)).await {
            Ok(written) => drop(written?),
            Err(_) => break,
        }
    }
    Ok(())
}

async fn receive(mut stream: TcpStream, duration: Duration) -> io::Result<()> {
    let mut block = vec![0; BLOCK_LEN];
    let mut bytes = timeout(HELLO_TIMEOUT, stream.read(&mut block)).await?? as u64;
    let start = Instant::now();
    let (end, mut next_report) = (start + duration, start);
    while Instant::now() < end {
        match timeout_at(end, stream.read(&mut block)).await {
            Ok(Ok(0)) | Err(_) => break,
            Ok(count) => bytes += count? as u64,
        }
        if Instant::now() >= next_report {
            let elapsed_us = start.elapsed().as_micros() as u64;
            stream.write_all(&Progress { elapsed_us, bytes }.encode()).await?;
            next_report = Instant::now() + PROGRESS_INTERVAL;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(id: u64, what: What, seconds: u64) -> Hello {
        Hello { id, what, seconds }
    }

    #[test]
    fn hosts_beyond_a_peer_may_not_test() {
        let networks: [IpNet; 2] = ["0.0.0.0/0".parse().unwrap(), "::/0".parse().unwrap()];
        let responder = Responder::new(&["10.77.0.2/24".parse().unwrap()], [&networks[..]]);
        let is_admitted = |host: &str| responder.admit(host.parse().unwrap(), &hello(1, What::Hold, 1)).is_ok();
        assert!(!is_admitted("192.0.2.1") && !is_admitted("2001:db8::1"));
        assert!(is_admitted("10.77.0.1"));
    }

    #[test]
    fn a_peer_that_a_reload_adds_has_one_test_with_all_its_addresses_and_those_under_way_stay() {
        let [old, new] = [["10.77.0.2/32", "fd77::2/128"], ["10.77.0.3/32", "fd77::3/128"]]
            .map(|networks| networks.map(|network| network.parse::<IpNet>().unwrap()));
        let responder = Responder::new(&[], [&old[..]]);
        let hold = |address: &str| responder.admit(address.parse().unwrap(), &hello(1, What::Hold, 1));
        let _under_way = hold("10.77.0.2").ok().unwrap();
        assert!(hold("10.77.0.3").is_err());
        responder.set_networks(&[], [&new[..], &old[..]]);
        let _added = hold("fd77::3").ok().unwrap();
        for address in ["10.77.0.3", "fd77::3", "10.77.0.2", "fd77::2"] {
            assert_eq!(hold(address).err(), Some("busy"), "{address}");
        }
    }

    #[test]
    fn one_test_of_each_peer_is_admitted_and_its_streams_are_bounded() {
        let networks: Vec<[IpNet; 1]> = (0..8).map(|peer| [format!("10.0.{peer}.0/24").parse().unwrap()]).collect();
        let responder = Responder::new(&[], networks.iter().map(|networks| &networks[..]));
        let address = |peer: u8, host: u8| IpAddr::from([10, 0, peer, host]);
        let admit = |address, hello| responder.admit(address, &hello);
        assert!(admit("192.0.2.1".parse().unwrap(), hello(1, What::Hold, 1)).is_err(), "no peer's");
        assert_eq!(admit(address(0, 1), hello(1, What::Up, 5)).err(), Some("no such test"));
        let test = admit(address(0, 1), hello(1, What::Hold, 1)).ok().unwrap();
        assert_eq!(admit(address(0, 2), hello(2, What::Hold, 1)).err(), Some("busy"), "another host of the same peer");
        assert_eq!(admit(address(0, 1), hello(2, What::Down, 5)).err(), Some("no such test"));
        assert_eq!(admit(address(0, 1), hello(1, What::Down, 31)).err(), Some("the time is 1 to 30 seconds"));
        let streams: Vec<_> =
            (0..MAX_STREAMS).map(|_| admit(address(0, 1), hello(1, What::Up, 5)).ok().unwrap()).collect();
        assert_eq!(admit(address(0, 1), hello(1, What::Up, 5)).err(), Some("too many streams"));
        drop(streams);
        assert!(admit(address(0, 1), hello(1, What::Up, 5)).is_ok());
        assert!(responder.is_of_test(address(0, 1), &1_u64.to_be_bytes()));
        assert!(
            !responder.is_of_test(address(1, 1), &1_u64.to_be_bytes()) && !responder.is_of_test(address(0, 1), &[1])
        );
        let others: Vec<_> =
            (1..4).map(|peer| admit(address(peer, 1), hello(9, What::Hold, 1)).ok().unwrap()).collect();
        assert_eq!(admit(address(5, 1), hello(9, What::Hold, 1)).err(), Some("busy"), "four in all");
        drop((test, others));
        assert!(admit(address(5, 1), hello(9, What::Hold, 1)).is_ok());
    }
}
