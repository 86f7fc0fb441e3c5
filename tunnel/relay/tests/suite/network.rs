//! Two relays, and a channel between them.

use ropewalk_relay::{Addresses, Chunk, ConnectionId, Event, Message, Relay, RelayConfig};
use std::collections::{BTreeMap, VecDeque};
use testnet::{Arrival, LinkConfig};
use units::{Instant, Span};

/// Bytes of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Chunk for Bytes {
    fn len(&self) -> u32 {
        self.0.len() as u32
    }

    fn slice(&self, start: u32, end: u32) -> Self {
        Self(self.0[start as usize..end as usize].to_vec())
    }
}

/// A channel that loses nothing.
pub(crate) const CLEAN: LinkConfig = LinkConfig { delay: Span::from_millis(10), ..LinkConfig::ideal() };

/// The application at one end of a connection.
#[derive(Debug, Default)]
pub(crate) struct Application {
    /// Bytes that it still has to send.
    pub(crate) to_send: VecDeque<u8>,
    /// Whether its sending direction ends when all is written.
    pub(crate) finishes: bool,
    pub(crate) has_finished: bool,
    pub(crate) received: Vec<u8>,
    /// Bytes that it reads in each millisecond.
    pub(crate) reads: u64,
    pub(crate) is_at_end: bool,
    pub(crate) closed: Option<Event>,
}

/// One end with its applications.
pub(crate) struct Host {
    pub(crate) relay: Relay<Bytes>,
    pub(crate) applications: BTreeMap<ConnectionId, Application>,
    pub(crate) opened: Vec<(ConnectionId, Addresses)>,
    /// Whether it accepts what is opened.
    pub(crate) accepts: bool,
    /// The largest sums of memory seen.
    pub(crate) max_memory: (u64, u64),
}

pub(crate) struct Network {
    pub(crate) hosts: [Host; 2],
    pub(crate) now: Instant,
    channel: testnet::Network<Message<Bytes>>,
    /// Every second message sent between these times is lost.
    pub(crate) halved: (Instant, Instant),
    /// Every message with data that host 0 sends between these times is lost.
    pub(crate) lost: (Instant, Instant),
    /// Messages that the hosts have sent.
    sent: u64,
    /// Data bytes carried, retransmissions included.
    pub(crate) carried: u64,
}

pub(crate) const ADDRESS: &str = "10.9.0.1:40000";

/// The addresses of the connection with this number.
pub(crate) fn addresses(number: u16) -> Addresses {
    let mut source: std::net::SocketAddr = ADDRESS.parse().expect("an address");
    source.set_port(number);
    Addresses { source, destination: "10.9.0.2:80".parse().expect("an address") }
}

/// Bytes whose order can be told.
pub(crate) fn text(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 % 251) as u8).collect()
}

impl Network {
    pub(crate) fn new(seed: u64, channel: LinkConfig, config: RelayConfig) -> Self {
        let host = || Host {
            relay: Relay::new(config),
            applications: BTreeMap::new(),
            opened: Vec::new(),
            accepts: true,
            max_memory: (0, 0),
        };
        Self {
            hosts: [host(), host()],
            now: Instant::ZERO,
            channel: testnet::Network::new(seed, vec![[channel; 2]]),
            halved: (Instant::ZERO, Instant::ZERO),
            lost: (Instant::ZERO, Instant::ZERO),
            sent: 0,
            carried: 0,
        }
    }

    /// Opens a connection from host 0, whose two applications send what is given.
    pub(crate) fn connect(&mut self, number: u16, client: Application, server: Application) -> ConnectionId {
        let id = self.hosts[0].relay.open(self.now, addresses(number)).expect("a free connection");
        self.hosts[0].applications.insert(id, client);
        self.hosts[1].applications.insert(ConnectionId { is_local: false, ..id }, server);
        id
    }

    /// The two applications of a connection that host 0 opened.
    pub(crate) fn applications(&self, id: ConnectionId) -> [&Application; 2] {
        let remote_id = ConnectionId { is_local: false, ..id };
        [&self.hosts[0].applications[&id], &self.hosts[1].applications[&remote_id]]
    }

    /// Advances by milliseconds until `is_done`; panics after an hour of virtual time.
    pub(crate) fn run_until(&mut self, is_done: impl Fn(&Self) -> bool) {
        while !is_done(self) {
            assert!(self.now < Instant::ZERO + Span::from_secs(3600), "stalled");
            self.step();
        }
    }

    pub(crate) fn run_for(&mut self, span: Span) {
        let end = self.now + span;
        while self.now < end {
            self.step();
        }
    }

    fn step(&mut self) {
        self.now += Span::from_millis(1);
        while let Some(Arrival { host, datagram, .. }) = self.channel.receive(self.now) {
            self.hosts[host].relay.receive(self.now, datagram);
        }
        for index in 0..2 {
            let host = &mut self.hosts[index];
            host.run_applications(self.now);
            if host.relay.deadline() <= self.now {
                host.relay.on_timeout(self.now);
            }
            assert!(host.relay.deadline() > self.now, "a timer was handled");
            let memory = host.relay.memory_used();
            host.max_memory = (host.max_memory.0.max(memory.0), host.max_memory.1.max(memory.1));
            while let Some(message) = self.hosts[index].relay.poll_message(self.now, 1400) {
                self.carried += message.chunk.as_ref().map_or(0, |chunk| u64::from(chunk.len()));
                self.sent += 1;
                let is_halved = (self.halved.0..self.halved.1).contains(&self.now) && self.sent.is_multiple_of(2);
                let has_data = index == 0 && message.chunk.is_some();
                let is_lost = has_data && (self.lost.0..self.lost.1).contains(&self.now);
                if !is_halved && !is_lost {
                    self.channel.send(self.now, (index, 0), 0, message, |message, _| Some(message));
                }
            }
        }
    }
}

impl Host {
    fn run_applications(&mut self, now: Instant) {
        while let Some(event) = self.relay.poll_event() {
            match event {
                Event::Opened { id, addresses } => {
                    self.opened.push((id, addresses));
                    if self.accepts {
                        self.relay.accept(now, id);
                    }
                }
                Event::Closed { id, .. } => {
                    let application = self.applications.get_mut(&id).expect("an application");
                    assert_eq!(application.closed.replace(event), None, "closed once");
                }
                Event::Accepted(_) | Event::Readable(_) | Event::Writable(_) => {}
            }
        }
        for (id, application) in &mut self.applications {
            let exists = id.is_local || self.opened.iter().any(|(opened, _)| opened == id);
            if exists && application.closed.is_none() {
                application.run(now, *id, &mut self.relay);
            }
        }
    }
}

impl Application {
    /// An application that sends `length` bytes and ends, and reads without a limit.
    pub(crate) fn sending(length: usize) -> Self {
        Self { to_send: text(length).into(), finishes: true, reads: u64::MAX, ..Self::default() }
    }

    fn run(&mut self, now: Instant, id: ConnectionId, relay: &mut Relay<Bytes>) {
        let capacity = relay.send_capacity(id).min(self.to_send.len() as u64) as usize;
        if capacity > 0 {
            relay.write(id, Bytes(self.to_send.drain(..capacity).collect()));
        }
        if self.finishes && self.to_send.is_empty() && !self.has_finished {
            self.has_finished = true;
            relay.finish(id);
        }
        let limit = usize::try_from(self.reads).expect("64 bits");
        let read: Vec<u8> = relay.chunks(id).flat_map(|chunk| chunk.0.iter().copied()).take(limit).collect();
        self.received.extend_from_slice(&read);
        // Asked before: a connection that is complete is closed at once.
        relay.consume(now, id, read.len() as u64);
        self.is_at_end |= relay.is_finished(id);
    }
}
