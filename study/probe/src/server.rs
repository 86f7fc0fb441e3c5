//! The server: sessions, their limits, and what it does for them.
//!
//! A session begins and ends with its control connection. Everything is bounded: connections that have not shown that they
//! know the token, sessions in all and of an address, flows at a time, payload and time of a session, datagrams that are
//! remembered. Datagrams are returned only to who knows the session's key, once each, and as long as they came.

use crate::datagram::{self, Datagram};
use crate::flow::{self, Bounds, FlowReport};
use crate::line::{FlowRequest, Request, Requests, answer};
use crate::returning;
use crate::token::{Token, hex, random};
use measured::Direction;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The most connections at one time, those without a session included.
const MAX_CONNECTIONS: usize = 128;
/// The most flows of a session at one time.
const MAX_FLOWS: usize = 16;
/// The most reports and streams that a session keeps.
const MAX_KEPT: usize = 4096;
/// The most datagrams that a session remembers.
const MAX_DATAGRAMS: usize = 1 << 20;
/// The time for a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest flow.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(60);

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions at one time.
    pub sessions: usize,
    /// Sessions of one address at one time.
    pub sessions_of_address: usize,
    /// Payload of all flows of a session, bytes.
    pub bytes: u64,
    /// The length of a session.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { sessions: 4, sessions_of_address: 1, bytes: 10_000_000_000, time: Duration::from_secs(3600) }
    }
}

/// A server, which answers until its process ends.
#[derive(Debug)]
pub struct Server {
    token: Token,
    limits: Limits,
    /// The name of this host, which clients write into their documents.
    name: String,
    sessions: Mutex<BTreeMap<u64, Session>>,
    connections: AtomicUsize,
    start: Instant,
}

/// What came of a stream: the number and the time, nanoseconds since the server's start, of each datagram.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Arrivals {
    pub(crate) datagrams: Vec<(u32, u64)>,
    /// Datagrams that came again.
    pub(crate) duplicates: u64,
    #[serde(skip)]
    seen: BTreeSet<u32>,
}

#[derive(Debug)]
struct Session {
    address: IpAddr,
    key: Token,
    end: Instant,
    bytes_left: u64,
    flows: usize,
    reports: BTreeMap<u32, FlowReport>,
    streams: BTreeMap<u32, Arrivals>,
    datagrams: usize,
}

impl Server {
    /// Listens at an address, with TCP and UDP, in threads of its own; the address has the port, which the system chooses
    /// for 0. The IPv6 address `::` is for IPv4, too, and a host without IPv6 then listens with IPv4 alone.
    ///
    /// # Errors
    ///
    /// The address is not this host's, or the port is taken.
    pub fn start(token: Token, address: SocketAddr, limits: Limits) -> io::Result<SocketAddr> {
        let listener = listen(address)?;
        let address = listener.local_addr()?;
        let datagrams: UdpSocket = socket(address, socket2::Type::DGRAM)?.into();
        returning::prepare(&datagrams)?;
        let name = crate::client::host_name();
        let (sessions, connections, start) = (Mutex::default(), AtomicUsize::new(0), Instant::now());
        let server = Arc::new(Self { token, limits, name, sessions, connections, start });
        let echo = Arc::clone(&server);
        thread::spawn(move || echo.echo(&datagrams));
        thread::spawn(move || server.accept(&listener));
        Ok(address)
    }

    fn accept(self: Arc<Self>, listener: &TcpListener) {
        loop {
            let Ok((stream, address)) = listener.accept() else {
                // No file descriptor is left.
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            if self.connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
                self.connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let server = Arc::clone(&self);
            thread::spawn(move || {
                // The client sees the end of the connection.
                let _ = server.serve(stream, address.ip().to_canonical());
                server.connections.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }

    fn serve(&self, mut stream: TcpStream, address: IpAddr) -> io::Result<()> {
        stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
        stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
        let mut requests = Requests::greet(&mut stream)?;
        match requests.receive(&mut stream, &self.token) {
            Ok(Request::Open) => self.control(stream, requests, address),
            Ok(Request::Flow(flow)) => self.flow(stream, &flow),
            Ok(Request::Report(_) | Request::Arrivals(_)) => answer(&mut stream, &Err("no session is open".into())),
            Err(error) => answer(&mut stream, &Err(error.to_string())),
        }
    }

    /// A session, until its connection ends.
    fn control(&self, mut stream: TcpStream, mut requests: Requests, address: IpAddr) -> io::Result<()> {
        let id = u64::from_be_bytes(random()?);
        if let Err(reason) = self.open(id, address) {
            return answer(&mut stream, &Err(reason));
        }
        let result = self.answer_requests(id, &mut stream, &mut requests);
        self.sessions().remove(&id);
        result
    }

    fn answer_requests(&self, id: u64, stream: &mut TcpStream, requests: &mut Requests) -> io::Result<()> {
        answer(stream, &Ok(format!("{} {}", hex(&id.to_be_bytes()), self.name)))?;
        loop {
            let left = self.time_left(id);
            stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            let request = requests.receive(stream, &self.token)?;
            answer(stream, &self.kept(id, &request))?;
        }
    }

    /// The answer to a request of a report, as JSON.
    fn kept(&self, id: u64, request: &Request) -> Result<String, String> {
        let sessions = self.sessions();
        let session = sessions.get(&id).ok_or("the session is over")?;
        let json = match request {
            Request::Report(flow) => session.reports.get(flow).map(serde_json::to_string),
            Request::Arrivals(stream) => Some(serde_json::to_string(&session.streams.get(stream))),
            Request::Open | Request::Flow(_) => return Err("this connection has a session".into()),
        };
        json.and_then(Result::ok).ok_or_else(|| "no report is there".to_owned())
    }

    fn open(&self, id: u64, address: IpAddr) -> Result<(), String> {
        let mut sessions = self.sessions();
        let of_address = sessions.values().filter(|session| session.address == address).count();
        if sessions.len() >= self.limits.sessions || of_address >= self.limits.sessions_of_address {
            return Err("busy with another session".into());
        }
        let session = Session {
            address,
            key: self.token.for_session(id),
            end: Instant::now() + self.limits.time,
            bytes_left: self.limits.bytes,
            flows: 0,
            reports: BTreeMap::new(),
            streams: BTreeMap::new(),
            datagrams: 0,
        };
        sessions.insert(id, session);
        Ok(())
    }

    fn flow(&self, mut stream: TcpStream, request: &FlowRequest) -> io::Result<()> {
        let prepared = self.admit(request).and_then(|bounds| {
            let chosen = set_congestion(&stream, request);
            if chosen.is_err() {
                self.end_flow(request, bounds, None, bounds.bytes);
            }
            chosen.map(|()| bounds)
        });
        answer(&mut stream, &prepared.as_ref().map(|_| String::new()).map_err(Clone::clone))?;
        let Ok(bounds) = prepared else { return Ok(()) };
        let report = match request.direction {
            Direction::Down => flow::send(stream, bounds).map(FlowReport::Sender),
            Direction::Up => flow::receive(stream, bounds, self.start).map(FlowReport::Receiver),
        };
        let unused = match &report {
            Ok(FlowReport::Receiver(report)) => bounds.bytes.saturating_sub(report.bytes),
            Ok(FlowReport::Sender(report)) => {
                let sent = report.sent_segments.zip(report.mss_bytes).map_or(bounds.bytes, |(sent, mss)| sent * mss);
                bounds.bytes.saturating_sub(sent)
            }
            Err(_) => 0,
        };
        self.end_flow(request, bounds, report.ok(), unused);
        Ok(())
    }

    /// Takes the bytes of a flow from those that its session has left.
    fn admit(&self, request: &FlowRequest) -> Result<Bounds, String> {
        let mut sessions = self.sessions();
        let session = sessions.get_mut(&request.session).ok_or("no such session")?;
        let time = Duration::from_millis(request.millis);
        if time.is_zero() || time > MAX_TIME || Instant::now() > session.end {
            return Err(format!("a flow lasts at most {} s, and the session is bounded", MAX_TIME.as_secs()));
        }
        if session.flows >= MAX_FLOWS || session.reports.len() >= MAX_KEPT {
            return Err("too many flows".into());
        }
        if session.bytes_left < request.bytes {
            return Err("the session has used its bytes".into());
        }
        session.flows += 1;
        session.bytes_left -= request.bytes;
        Ok(Bounds { time, bytes: request.bytes })
    }

    fn end_flow(&self, request: &FlowRequest, bounds: Bounds, report: Option<FlowReport>, unused: u64) {
        let mut sessions = self.sessions();
        let Some(session) = sessions.get_mut(&request.session) else { return };
        session.flows -= 1;
        session.bytes_left += unused.min(bounds.bytes);
        if let Some(report) = report {
            session.reports.insert(request.flow, report);
        }
    }

    /// Returns datagrams.
    fn echo(&self, socket: &UdpSocket) {
        let mut bytes = [0; datagram::MAX_LEN];
        loop {
            let Ok((length, client)) = returning::receive(socket, &mut bytes) else { continue };
            let returned_ns = self.start.elapsed().as_nanos() as u64 + 1;
            let Some((key, datagram)) = self.take(&bytes[..length], returned_ns) else { continue };
            datagram.write(&key, &mut bytes[..length]);
            // The client counts what does not return as lost.
            let _ = client.send(socket, &bytes[..length]);
        }
    }

    /// Notes a datagram, and gives the answer with its key. A datagram that came before has none.
    fn take(&self, bytes: &[u8], returned_ns: u64) -> Option<(Token, Datagram)> {
        let mut sessions = self.sessions();
        let session = sessions.get_mut(&Datagram::session(bytes)?)?;
        let datagram = Datagram::read(&session.key, bytes)?;
        let is_answer = datagram.returned_ns > 0;
        if is_answer || datagram.number >= datagram::MAX_COUNT || session.datagrams >= MAX_DATAGRAMS {
            return None;
        }
        if session.streams.len() >= MAX_KEPT && !session.streams.contains_key(&datagram.stream) {
            return None;
        }
        let stream = session.streams.entry(datagram.stream).or_default();
        let place = stream.add(datagram.number, returned_ns)?;
        session.datagrams += 1;
        Some((session.key.clone(), Datagram { place, returned_ns, ..datagram }))
    }

    fn time_left(&self, id: u64) -> Duration {
        let end = self.sessions().get(&id).map(|session| session.end);
        end.map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now()))
    }

    /// The sessions; poisoned only if this code panicked.
    fn sessions(&self) -> MutexGuard<'_, BTreeMap<u64, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Arrivals {
    /// Adds a datagram, and gives its place in the order of arrival; none if it came before.
    fn add(&mut self, number: u32, at_ns: u64) -> Option<u32> {
        if !self.seen.insert(number) {
            self.duplicates += 1;
            return None;
        }
        self.datagrams.push((number, at_ns));
        Some(self.datagrams.len() as u32 - 1)
    }
}

fn set_congestion(stream: &TcpStream, request: &FlowRequest) -> Result<(), String> {
    match request.direction {
        Direction::Up => Ok(()),
        Direction::Down => crate::source::set_congestion(&socket2::SockRef::from(stream), &request.congestion),
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let bound = socket(address, socket2::Type::STREAM);
    let bound = match bound {
        // The host has no IPv6.
        Err(_) if address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) => {
            socket(SocketAddr::from(([0, 0, 0, 0], address.port())), socket2::Type::STREAM)?
        }
        bound => bound?,
    };
    bound.listen(64)?;
    Ok(bound.into())
}

fn socket(address: SocketAddr, kind: socket2::Type) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(socket2::Domain::for_address(address), kind, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(kind == socket2::Type::STREAM)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests;
