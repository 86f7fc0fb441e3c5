//! Enrolment: a client with a session by the one-time key of its token sends its own public key.
//!
//! The client connects by TCP to the server's inner address, through the tunnel, and sends one line: `rw1 `, its public
//! key in base64, and perhaps ` psk=` with a new preshared key and ` lan=` with the networks behind it, which the server may
//! take (`config::lan`). The server knows the peer by the inner source address, because a packet with that source was sealed
//! with the peer's key. It answers `ok` with the networks that it has taken, or `error: ` and the reason, and closes.
//! When the client has read the answer, the client's keys replace those of the token in the tunnel.
//!
//! Earlier versions neither send nor take a preshared key: then the token's stays.
//!
//! A client that has a key of its own sends other lines to the same port ([`super::clients`]).
//!
//! The listener is bound to the tunnel's device. A peer has one connection at a time, with one line of at most
//! [`MAX_LINE_LEN`] bytes within [`TIMEOUT`]. Peers with a token take no place from the others, and the other way round.

use super::clients::Hello;
use super::diagnosis::Devices;
use super::reload::Reloader;
use super::server::{PendingRequest, Refusal, Request};
use crate::config::{
    ClientIdentity, ConfiguredPeer, Enrolment, LOCK_INTERVAL, LOCK_TIMEOUT, MAX_ANNOUNCEMENT_LEN, Mode, PeersFile,
    TunnelConfig, enrolled_peers, is_private_lan, overlap, unix_time,
};
use crate::event::{Event, EventKind, EventLevel};
use ipnet::IpNet;
use seal::{PresharedKey, PublicKey};
use socket2::{Domain, Socket, Type};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream as BlockingStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, error};
use zeroize::Zeroizing;

/// The TCP port on the server's inner address.
pub const PORT: u16 = 4754;
/// The longest line of a client, and the longest answer, bytes.
const MAX_LINE_LEN: usize = 512;
/// The time for a line, and for the client to close.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most connections at a time of peers with a token.
const MAX_CONNECTIONS: usize = 16;
/// The most connections at a time of the other peers.
const MAX_CLIENT_CONNECTIONS: usize = 64;
/// The least time between two connections of a client that has a key of its own.
pub(super) const CLIENT_INTERVAL: Duration = Duration::from_millis(200);
/// The end of a refusal that is over soon.
pub(super) const TRY_AGAIN: &str = "try again";
/// The beginning of a line: the version.
const GREETING: &str = "rw1 ";
/// The beginning of a hello.
const HELLO: &str = "rw1 hello ";
/// The beginning of a client's line that replaces its key.
const ROTATE: &str = "rw1 rotate ";
/// The prefix of a client's new preshared key.
const PSK: &str = "psk=";
/// The prefix of the networks behind a client.
const LAN: &str = "lan=";
/// The answer of every version to a line that it does not know.
const LINE_HELP: &str = "a line is `rw1 PUBLICKEY`";
/// The most networks that a client may name.
const MAX_LANS: usize = 8;

/// Listens on the first inner address of the tunnel's device, if the configuration has a `peers-file`.
///
/// # Errors
/// The address cannot be bound.
pub(super) fn listen(config: &TunnelConfig) -> io::Result<Option<TcpListener>> {
    let (Some(_), Some(address)) = (&config.interface.peers_file, config.interface.addresses.first()) else {
        return Ok(None);
    };
    let address = SocketAddr::new(address.addr(), PORT);
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    // Duplicate address detection of an IPv6 address may still run.
    if address.is_ipv6() {
        socket.set_freebind_v6(true)?;
    }
    socket.bind_device(Some(config.interface.name.as_bytes()))?;
    socket.bind(&address.into())?;
    socket.listen((MAX_CONNECTIONS + MAX_CLIENT_CONNECTIONS) as i32)?;
    TcpListener::from_std(socket.into()).map(Some)
}

/// The open connections: of peers with a token, and of the others.
#[derive(Clone, Debug, Default)]
pub(super) struct Enrolments(Arc<Mutex<[BTreeSet<PublicKey>; 2]>>);

impl Enrolments {
    /// Serves a connection from `source` on a task of its own, if that is a peer whose token has not expired.
    pub(super) fn accept(
        &self,
        stream: TcpStream,
        source: IpAddr,
        config: &TunnelConfig,
        requests: &mpsc::Sender<PendingRequest>,
    ) {
        let refuse = |reason: &str| {
            // A new connection's send buffer has room for the line. The client may have closed the connection.
            let _ = stream.try_write(format!("error: {reason}\n").as_bytes());
        };
        let peer = peer_of(config, source).filter(|peer| peer.token_expires.is_none_or(|end| end > unix_time()));
        let Some((peer, key)) = peer.and_then(|peer| Some((peer, peer.public_key?))) else {
            return refuse("the token has been used already, or has expired");
        };
        let (group, limit) =
            if peer.token_expires.is_some() { (0, MAX_CONNECTIONS) } else { (1, MAX_CLIENT_CONNECTIONS) };
        {
            let mut connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if connections[group].len() >= limit || !connections[group].insert(key) {
                return refuse(&format!("another enrolment is under way: {TRY_AGAIN}"));
            }
        }
        let (connections, requests) = (self.clone(), requests.clone());
        tokio::spawn(async move {
            if let Err(error) = serve(stream, source, &requests).await {
                debug!(%source, "enrolment: {error}");
            }
            if group == 1 {
                // So many connections of a client cost no more than a few.
                tokio::time::sleep(CLIENT_INTERVAL).await;
            }
            connections.0.lock().unwrap_or_else(PoisonError::into_inner)[group].remove(&key);
        });
    }
}

async fn serve(mut stream: TcpStream, source: IpAddr, requests: &mpsc::Sender<PendingRequest>) -> io::Result<()> {
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the client sent no line");
    let line = tokio::time::timeout(TIMEOUT, read_line(&mut stream)).await.map_err(late)??;
    let line = line.as_str();
    if let Some(hello) = line.strip_prefix(HELLO).and_then(Hello::parse) {
        return answer_hello(stream, requests, source, hello).await;
    }
    let rotation = line.strip_prefix(ROTATE).and_then(|rest| parse_line(&Zeroizing::new([GREETING, rest].concat())));
    let answer = match (rotation, parse_line(line)) {
        (Some(client), _) => until_unlocked(requests, || Request::Rotate(source, client.clone())).await,
        (None, Some(client)) => until_unlocked(requests, || Request::Enrol(source, client.clone())).await,
        (None, None) => {
            debug!(%source, "enrolment: a malformed line");
            Err(format!("{LINE_HELP}, and perhaps ` psk=PRESHAREDKEY` and ` lan=NETWORK,NETWORK`"))
        }
    };
    let text = match &answer {
        Err(reason) => format!("error: {reason}\n"),
        Ok(enrolled) => enrolled.split_once(' ').map_or("ok\n".into(), |(_, lans)| format!("ok {LAN}{lans}\n")),
    };
    let written = async {
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await?;
        // The session with the one-time key carries the answer, and ends when the key changes.
        stream.read(&mut [0; 1]).await
    };
    let written = tokio::time::timeout(TIMEOUT, written).await;
    if answer.is_ok() {
        let _ = request(requests, Request::EndEnrolment).await;
    }
    written.map_or(Ok(()), |written| written.map(drop))
}

/// Answers a hello with what the server announces.
async fn answer_hello(
    mut stream: TcpStream,
    requests: &mpsc::Sender<PendingRequest>,
    source: IpAddr,
    hello: Hello,
) -> io::Result<()> {
    let text = match request(requests, Request::Hello(source, hello)).await {
        Ok(announcement) => format!("ok {announcement}\n"),
        Err(refusal) => format!("error: {}\n", refusal.text()),
    };
    stream.write_all(text.as_bytes()).await
}

/// The keys and the networks of a client's line.
fn parse_line(line: &str) -> Option<ClientIdentity> {
    let mut words = line.strip_prefix(GREETING)?.split(' ').peekable();
    let public_key = words.next()?.parse().ok()?;
    let psk = words.next_if(|word| word.starts_with(PSK));
    let preshared_key = psk.map(|word| word[PSK.len()..].parse().ok()).map_or(Some(None), |key| key.map(Some))?;
    let lans = words.next().map_or(Some(Vec::new()), parse_networks)?;
    words.next().is_none().then_some(ClientIdentity { public_key, preshared_key, lans })
}

/// The line of a client.
pub(super) fn line_of(client: &ClientIdentity) -> Zeroizing<String> {
    let psk = client.preshared_key.as_ref().map(PresharedKey::to_text);
    let psk = psk.as_ref().map(|psk| [" ", PSK, psk]).unwrap_or_default().concat();
    let lans = if client.lans.is_empty() { String::new() } else { format!(" {LAN}{}", join(&client.lans)) };
    let line = format!("{GREETING}{}{}{lans}\n", client.public_key, *Zeroizing::new(psk));
    Zeroizing::new(line)
}

/// The networks of `lan=NETWORK,NETWORK`.
fn parse_networks(word: &str) -> Option<Vec<IpNet>> {
    word.strip_prefix(LAN)?.split(',').map(|text| text.parse().ok()).collect()
}

/// Networks with commas between them.
fn join(networks: &[IpNet]) -> String {
    networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// Requests a change of the list of peers, again while that is locked. The control loop does not wait for it.
async fn until_unlocked(
    requests: &mpsc::Sender<PendingRequest>,
    change: impl Fn() -> Request,
) -> Result<String, String> {
    let start = tokio::time::Instant::now();
    loop {
        match request(requests, change()).await {
            Err(Refusal::Busy) if start.elapsed() < LOCK_TIMEOUT => tokio::time::sleep(LOCK_INTERVAL).await,
            result => return result.map_err(|refusal| refusal.text().to_owned()),
        }
    }
}

async fn request(requests: &mpsc::Sender<PendingRequest>, request: Request) -> Result<String, Refusal> {
    let (sender, receiver) = oneshot::channel();
    let closing = || Refusal::Other("the tunnel is going down".to_owned());
    requests.send((request, sender)).await.map_err(|_| closing())?;
    receiver.await.unwrap_or_else(|_| Err(closing()))
}

/// Reads a line; returns it without its end.
async fn read_line(stream: &mut TcpStream) -> io::Result<Zeroizing<String>> {
    let (mut line, mut len) = (Zeroizing::new([0; MAX_LINE_LEN]), 0);
    loop {
        let count = stream.read(&mut line[len..]).await?;
        len += count;
        if let Some(end) = line[..len].iter().position(|byte| *byte == b'\n') {
            return Ok(String::from_utf8_lossy(&line[..end]).into_owned().into());
        }
        if count == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the client sent no line of at most 512 bytes"));
        }
    }
}

/// The peer of packets with this inner source: the one with the longest matching prefix.
pub(super) fn peer_of(config: &TunnelConfig, source: IpAddr) -> Option<&ConfiguredPeer> {
    let prefix_len = |peer: &ConfiguredPeer| {
        let networks = peer.allowed_ips.iter().filter(|network| network.contains(&source));
        networks.map(IpNet::prefix_len).max()
    };
    let peers = config.peers.iter().filter_map(|peer| prefix_len(peer).map(|len| (len, peer)));
    peers.max_by_key(|(len, _)| *len).map(|(_, peer)| peer)
}

/// The event about an enrolment: the peer's name and its networks, or the reason for the refusal.
pub(super) fn event(source: IpAddr, result: &Result<String, Refusal>) -> Event {
    match result {
        Ok(enrolled) => {
            let (name, lans) = enrolled.split_once(' ').unwrap_or((enrolled, ""));
            let behind = if lans.is_empty() { String::new() } else { format!(", with {lans} behind it") };
            let message = format!("{name} is enrolled{behind}: its token is used, and it has a key of its own");
            Event::new(EventLevel::Info, EventKind::Enrolment, message)
        }
        Err(refusal) => {
            let reason = refusal.text();
            Event::new(EventLevel::Warn, EventKind::Enrolment, format!("enrolment of {source} refused: {reason}"))
        }
    }
}

impl Reloader {
    /// Writes the client's keys and its acceptable networks into the `peers-file`. The tunnel uses them from
    /// [`Request::EndEnrolment`] on. Returns the peer's name and, after a blank, these networks if there are any.
    pub(super) fn enrol(&self, source: IpAddr, client: &ClientIdentity) -> Result<String, Refusal> {
        let config = &self.control.config;
        let refused = |reason: &str| Refusal::Other(reason.to_owned());
        let peer = peer_of(config, source).and_then(|peer| peer.public_key);
        let current = peer.ok_or_else(|| refused("no peer has this address"))?;
        let file = config.interface.peers_file.as_ref().ok_or_else(|| refused("this end does not enrol clients"))?;
        let mut taken: Vec<_> = config.peers.iter().filter_map(|peer| peer.public_key).collect();
        if let Mode::Ropewalk { private_key } = &config.mode {
            taken.push(private_key.public_key());
        }
        let internal = |error: &dyn fmt::Display| {
            error!("enrolment: {error}");
            refused("the server cannot write its list of peers: its log has the reason")
        };
        let mut peers = PeersFile::try_open(file).map_err(|error| internal(&error))?.ok_or(Refusal::Busy)?;
        let lans = acceptable_lans(&client.lans, config, current);
        let client = ClientIdentity { lans, ..client.clone() };
        match peers.enrol(current, &client, &taken, unix_time()).map_err(|error| internal(&error))? {
            Enrolment::Enrolled(name, lans) if lans.is_empty() => Ok(name),
            Enrolment::Enrolled(name, lans) => Ok(format!("{name} {}", join(&lans))),
            Enrolment::Refused(reason) => Err(Refusal::Other(reason)),
        }
    }

    /// The configuration in force with the keys of the `peers-file`.
    pub(super) fn enrolled_config(&self) -> TunnelConfig {
        let mut config = self.control.config.clone();
        let peers = config.interface.peers_file.as_ref().and_then(|file| enrolled_peers(file).ok());
        for entry in peers.iter().flatten() {
            let is_entry =
                |peer: &&mut ConfiguredPeer| peer.token_expires.is_some() && peer.name.as_ref() == Some(&entry.name);
            if let Some(peer) = config.peers.iter_mut().find(is_entry) {
                (peer.public_key, peer.token_expires) = (Some(entry.public_key), entry.token_expires);
                peer.preshared_key.clone_from(&entry.preshared_key);
                peer.allowed_ips.clone_from(&entry.allowed_ips);
            }
        }
        config
    }
}

/// The acceptable ones of a client's networks: private networks of a usual size, which neither this host nor another
/// peer has. So a client cannot use a token to attract the traffic of others.
fn acceptable_lans(lans: &[IpNet], config: &TunnelConfig, client: PublicKey) -> Vec<IpNet> {
    let others = config.peers.iter().filter(|peer| peer.public_key != Some(client));
    let mut taken: Vec<IpNet> = others.flat_map(|peer| peer.allowed_ips.iter().copied()).collect();
    taken.extend(&config.interface.addresses);
    taken.extend(Devices::read().networks().map(|(_, network)| network));
    let mut accepted: Vec<IpNet> = Vec::new();
    for lan in lans.iter().map(IpNet::trunc) {
        let is_free = !taken.iter().chain(&accepted).any(|other| overlap(*other, lan));
        if is_free && is_private_lan(lan) && accepted.len() < MAX_LANS {
            accepted.push(lan);
        }
    }
    accepted
}

/// Why a client was not enrolled.
#[derive(Debug)]
pub enum EnrolError {
    /// There is no answer, or the answer is not from an enrolment server.
    Connection(io::Error),
    /// The server's reason.
    Refused(String),
}

impl fmt::Display for EnrolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => write!(f, "no answer to the enrolment: {error}"),
            Self::Refused(reason) => write!(f, "the server refuses: {reason}"),
        }
    }
}

impl std::error::Error for EnrolError {}

impl EnrolError {
    /// Whether the server does not know a part of the line: it has an earlier version.
    #[must_use]
    pub fn is_unknown_line(&self) -> bool {
        matches!(self, Self::Refused(reason) if reason.contains(LINE_HELP))
    }
}

/// The client's side: sends `client` to the server at the inner address `server`. Returns the networks that the server
/// has taken.
///
/// # Errors
/// The server does not answer, or refuses.
pub fn enrol(server: IpAddr, client: &ClientIdentity) -> Result<Vec<IpNet>, EnrolError> {
    let answer = exchange(server, &line_of(client))?;
    let wrong = || EnrolError::Connection(io::Error::new(io::ErrorKind::InvalidData, "it is no answer"));
    if answer.is_empty() { Ok(Vec::new()) } else { parse_networks(&answer).ok_or_else(wrong) }
}

/// Sends a line to the server. Returns what follows `ok`.
///
/// # Errors
/// The server does not answer, or refuses.
pub(super) fn exchange(server: IpAddr, line: &str) -> Result<String, EnrolError> {
    let mut answer = String::new();
    let mut exchange = || -> io::Result<()> {
        let mut stream = BlockingStream::connect_timeout(&SocketAddr::new(server, PORT), TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        // A server that refuses at once closes before it reads; its reason can be read nevertheless.
        let written = stream.write_all(line.as_bytes());
        let read = stream.take(MAX_LINE_LEN as u64 + MAX_ANNOUNCEMENT_LEN).read_to_string(&mut answer);
        if answer.is_empty() { written.and(read.map(drop)) } else { Ok(()) }
    };
    exchange().map_err(EnrolError::Connection)?;
    let text = answer.trim_end();
    if let Some(reason) = text.strip_prefix("error: ") {
        // Only printable characters: the text is shown in a terminal.
        return Err(EnrolError::Refused(reason.chars().filter(|c| !c.is_control()).collect()));
    }
    let rest = text.strip_prefix("ok").filter(|rest| rest.is_empty() || rest.starts_with(' '));
    let rest =
        rest.ok_or_else(|| EnrolError::Connection(io::Error::new(io::ErrorKind::InvalidData, "it is no answer")));
    rest.map(|rest| rest.trim_start().to_owned())
}
