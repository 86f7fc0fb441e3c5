//! The client: a session's control connection, and flows and datagrams over one path.

use crate::datagram::{self, Datagram};
use crate::flow::{self, Bounds, FlowReport, GRACE, ReceiverReport, SenderReport};
use crate::line::{FlowRequest, MAX_REPORT, Request, Requests, read_answer};
use crate::server::Arrivals;
use crate::source::{Source, set_congestion};
use crate::stream::Arrival;
use crate::token::{Token, unhex};
use measured::Direction;
use socket2::{SockRef, Type};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A datagram that takes longer is lost.
const ECHO_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest name of a server's host.
const MAX_NAME: usize = 64;

/// The reason why something was not measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(pub(crate) String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self(match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "the other end does not answer in time".to_owned(),
            io::ErrorKind::UnexpectedEof => "the other end has closed the connection".to_owned(),
            _ => error.to_string(),
        })
    }
}

/// A session with a server.
#[derive(Debug)]
pub struct Session {
    server: SocketAddr,
    /// The server's name.
    name: String,
    id: u64,
    token: Token,
    key: Token,
    /// The control connection, by which the session ends.
    control: Mutex<(TcpStream, Requests)>,
    flows: AtomicU32,
    streams: AtomicU32,
    start: Instant,
}

/// A TCP flow as both ends saw it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    /// None if the sender's report did not come.
    pub(crate) sender: Option<SenderReport>,
    pub(crate) receiver: ReceiverReport,
}

impl Flow {
    /// Two flows at the same time as one: the sums of bytes and segments, and the RTTs of both.
    pub(crate) fn combined_with(self, other: Self) -> Self {
        let sender = match (self.sender, other.sender) {
            (Some(one), Some(other)) => Some(one.combined_with(other)),
            (one, other) => one.or(other),
        };
        Self { sender, receiver: self.receiver.combined_with(&other.receiver) }
    }
}

/// Datagrams that this end sends evenly, and the server returns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echo {
    pub(crate) payload_bytes: usize,
    pub(crate) interval: Duration,
    pub(crate) time: Duration,
}

/// What became of an [`Echo`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Echoed {
    pub(crate) sent: u32,
    /// Of the answers in their order of arrival: the time of sending since the start of the stream, and the round-trip time.
    pub(crate) rtts: Vec<(Duration, Duration)>,
    /// What came to the server.
    pub(crate) up: Vec<Arrival>,
    pub(crate) duplicates_up: u64,
    /// What came back, numbered as the server sent it.
    pub(crate) down: Vec<Arrival>,
}

/// The name of this host.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-._".contains(*c);
    name.trim().chars().filter(is_plain).take(MAX_NAME).collect()
}

impl Session {
    /// Opens a session with the server over a path.
    ///
    /// # Errors
    ///
    /// The server does not answer, has another token, or is busy.
    pub fn open(server: SocketAddr, token: Token, source: &Source) -> Result<Self, Error> {
        let (mut stream, mut requests) = connect(server, source, |_| Ok(()))?;
        requests.send(&mut stream, &token, &Request::Open)?;
        let line = read_answer(&mut stream, 256)?;
        let (id, name) = line.split_once(' ').unwrap_or((&line, ""));
        let id = unhex(id).map(u64::from_be_bytes);
        let id = id.ok_or_else(|| Error("the other end gives no answer that is known".to_owned()))?;
        let key = token.for_session(id);
        let control = Mutex::new((stream, requests));
        let (flows, streams, start) = (AtomicU32::new(0), AtomicU32::new(0), Instant::now());
        Ok(Self { server, name: name.to_owned(), id, token, key, control, flows, streams, start })
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs one TCP flow over a path.
    pub(crate) fn flow(
        &self,
        source: &Source,
        direction: Direction,
        congestion: &str,
        bounds: Bounds,
    ) -> Result<Flow, Error> {
        let flow = self.flows.fetch_add(1, Ordering::Relaxed);
        let chosen = |socket: &socket2::Socket| match direction {
            Direction::Up => set_congestion(&SockRef::from(socket), congestion).map_err(Error),
            Direction::Down => Ok(()),
        };
        let (mut stream, mut requests) = connect(self.server, source, chosen)?;
        let request = FlowRequest {
            session: self.id,
            flow,
            direction,
            millis: bounds.time.as_millis() as u64,
            bytes: bounds.bytes,
            congestion: congestion.to_owned(),
        };
        requests.send(&mut stream, &self.token, &Request::Flow(request))?;
        read_answer(&mut stream, 256)?;
        match direction {
            Direction::Down => {
                let receiver = flow::receive(stream, bounds, self.start)?;
                let sender = match self.report(flow)? {
                    FlowReport::Sender(sender) => Some(sender),
                    FlowReport::Receiver(_) => None,
                };
                Ok(Flow { sender, receiver })
            }
            Direction::Up => {
                let sender = flow::send(stream, bounds)?;
                match self.report(flow)? {
                    FlowReport::Receiver(receiver) => Ok(Flow { sender: Some(sender), receiver }),
                    FlowReport::Sender(_) => Err(Error("the other end gives no report of the flow".to_owned())),
                }
            }
        }
    }

    /// The server's report of a flow, which it has soon after the connection has ended.
    fn report(&self, flow: u32) -> Result<FlowReport, Error> {
        let end = Instant::now() + GRACE;
        loop {
            match self.ask(&Request::Report(flow)) {
                Ok(json) => return serde_json::from_str(&json).map_err(|error| Error(error.to_string())),
                Err(_) if Instant::now() < end => thread::sleep(Duration::from_millis(50)),
                Err(error) => return Err(error),
            }
        }
    }

    fn ask(&self, request: &Request) -> Result<String, Error> {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        let (stream, requests) = &mut *control;
        requests.send(stream, &self.token, request)?;
        Ok(read_answer(stream, MAX_REPORT)?)
    }

    /// Sends datagrams over a path until their time is over or `is_done`, and takes the answers.
    pub(crate) fn echo(&self, source: &Source, echo: Echo, is_done: &AtomicBool) -> Result<Echoed, Error> {
        let stream = self.streams.fetch_add(1, Ordering::Relaxed);
        let socket: UdpSocket = source.socket(self.server, Type::DGRAM)?.into();
        socket.connect(self.server)?;
        let start = Instant::now();
        let count = AtomicU32::new(u32::MAX);
        let (sent, answers) = thread::scope(|scope| {
            let receiver = scope.spawn(|| self.take_answers(&socket, stream, &count));
            let sent = self.send_datagrams(&socket, stream, echo, is_done);
            count.store(sent.len() as u32, Ordering::Relaxed);
            (sent, receiver.join().unwrap_or_default())
        });
        let json = self.ask(&Request::Arrivals(stream))?;
        let arrivals: Option<Arrivals> = serde_json::from_str(&json).map_err(|error| Error(error.to_string()))?;
        if arrivals.is_none() {
            return Err(Error("no datagram has reached the other end: a firewall may drop UDP".to_owned()));
        }
        if answers.is_empty() {
            return Err(Error("no datagram has come back: a firewall may drop UDP".to_owned()));
        }
        Ok(self.put_together(start, &sent, &answers, &arrivals.unwrap_or_default()))
    }

    /// Returns the time of each datagram, nanoseconds.
    fn send_datagrams(&self, socket: &UdpSocket, stream: u32, echo: Echo, is_done: &AtomicBool) -> Vec<u64> {
        let mut bytes = vec![0; echo.payload_bytes.clamp(datagram::MIN_LEN, datagram::MAX_LEN)];
        let start = Instant::now();
        let mut sent = Vec::new();
        let mut next = start;
        while start.elapsed() < echo.time
            && !is_done.load(Ordering::Relaxed)
            && sent.len() < datagram::MAX_COUNT as usize
        {
            let (number, sent_ns) = (sent.len() as u32, self.now_ns());
            let datagram = Datagram { session: self.id, stream, number, sent_ns, ..Datagram::default() };
            datagram.write(&self.key, &mut bytes);
            // A full queue is a loss.
            let _ = socket.send(&bytes);
            sent.push(sent_ns);
            next += echo.interval;
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        sent
    }

    /// The answers, each with the time of its arrival, nanoseconds. `count` is the number of datagrams once all are sent.
    fn take_answers(&self, socket: &UdpSocket, stream: u32, count: &AtomicU32) -> Vec<(Datagram, u64)> {
        let mut answers: Vec<(Datagram, u64)> = Vec::new();
        let mut bytes = [0; datagram::MAX_LEN];
        let mut end = None;
        while socket.set_read_timeout(Some(Duration::from_millis(100))).is_ok() {
            let count = count.load(Ordering::Relaxed);
            if count < u32::MAX {
                end = end.or_else(|| Some(Instant::now() + ECHO_TIMEOUT));
            }
            if answers.len() >= count as usize || end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            let Ok(length) = socket.recv(&mut bytes) else { continue };
            let now = self.now_ns();
            let answer = Datagram::read(&self.key, &bytes[..length]);
            let answer = answer.filter(|answer| answer.stream == stream && answer.returned_ns > 0);
            answers.extend(answer.map(|answer| (answer, now)));
        }
        answers
    }

    fn put_together(&self, start: Instant, sent: &[u64], answers: &[(Datagram, u64)], arrivals: &Arrivals) -> Echoed {
        let start_ns = start.duration_since(self.start).as_nanos() as u64;
        let up = arrivals.datagrams.iter().filter_map(|(number, at_ns)| {
            let sent_ns = sent.get(*number as usize)?;
            Some(Arrival { number: *number, transit_ns: *at_ns as i64 - *sent_ns as i64 })
        });
        // The network may deliver an answer twice.
        let mut seen = std::collections::BTreeSet::new();
        let answers: Vec<_> = answers.iter().filter(|(answer, _)| seen.insert(answer.place)).collect();
        let down = answers
            .iter()
            .map(|(answer, now)| Arrival { number: answer.place, transit_ns: *now as i64 - answer.returned_ns as i64 });
        let rtts = answers.iter().map(|(answer, now)| {
            let at = Duration::from_nanos(answer.sent_ns.saturating_sub(start_ns));
            (at, Duration::from_nanos(now.saturating_sub(answer.sent_ns)))
        });
        Echoed {
            sent: sent.len() as u32,
            rtts: rtts.collect(),
            up: up.collect(),
            duplicates_up: arrivals.duplicates,
            down: down.collect(),
        }
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

/// Connects over a path, and reads the greeting.
fn connect(
    server: SocketAddr,
    source: &Source,
    options: impl FnOnce(&socket2::Socket) -> Result<(), Error>,
) -> Result<(TcpStream, Requests), Error> {
    let socket = source.socket(server, Type::STREAM)?;
    options(&socket)?;
    socket.connect_timeout(&server.into(), CONNECT_TIMEOUT)?;
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(GRACE))?;
    stream.set_write_timeout(Some(GRACE))?;
    stream.set_nodelay(true)?;
    let requests = Requests::read_greeting(&mut stream)?;
    Ok((stream, requests))
}
