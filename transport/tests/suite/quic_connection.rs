//! A multipath QUIC connection over the test network, whose filters drop, delay or duplicate packets.

use conformance::scheduler::CheckedScheduler;
use ropewalk_transport::quic::{
    ConnectionConfig, Content, Input, Output, Packet, PathConfig, Receiver, ReceiverConfig, Reply, Sender,
};
use std::collections::BTreeMap;
use testnet::{LinkConfig, Network};
use units::{Instant, RngStream, Span};

/// Bytes of a chunk.
const CHUNK: u32 = 1432;

/// Options of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) chunks: u64,
    pub(crate) paths: Vec<PathConfig>,
    pub(crate) streams: u32,
    pub(crate) scheduler: &'static str,
    pub(crate) congestion: &'static str,
    /// Flow-control window, chunks.
    pub(crate) window: u64,
}

impl Options {
    pub(crate) fn with_paths(paths: usize) -> Self {
        Self {
            chunks: 1000,
            paths: vec![PathConfig::default(); paths],
            streams: 1,
            scheduler: "minrtt",
            congestion: "reno",
            window: 2000,
        }
    }
}

pub(crate) fn new_sender(options: &Options) -> Sender {
    let config = ConnectionConfig {
        paths: options.paths.clone(),
        chunk_bytes: CHUNK,
        packet_bytes: 1500,
        initial_window: 10,
        cwnd_clamp: u32::MAX,
        pacing: false,
        handshake: true,
        tick: Span::from_millis(4),
        adaptive_loss_thresholds: true,
        undo: true,
        initial_max_data: options.window,
    };
    let entry = control::registry::find(options.congestion).expect("registered");
    let controller = entry.controller(&BTreeMap::new()).expect("no parameters");
    let entry = schedule::find(options.scheduler).expect("registered");
    let scheduler = CheckedScheduler::new(entry, |violation| panic!("{violation}")).expect("no parameters");
    let mut sender = Sender::new(config, controller, RngStream::named(1, "paths"), Box::new(scheduler));
    sender.handle(Instant::ZERO, Input::Write(options.chunks));
    sender
}

pub(crate) fn new_receiver(options: &Options) -> Receiver {
    let (paths, streams, window) = (options.paths.len() as u16, options.streams, options.window);
    Receiver::new(ReceiverConfig { paths, streams, window, quick_ack: false })
}

/// The outcome of a filter for a packet: the extra delay of each copy that arrives.
pub(crate) type Copies = Vec<Span>;
/// A filter of packets, by the path and the direction: 0 from the sender, 1 to it.
pub(crate) type Filter = Box<dyn FnMut(Instant, usize, usize) -> Copies>;

#[derive(Clone, Copy, Debug)]
enum Datagram {
    Packet(Packet),
    Reply(Reply),
}

pub(crate) struct Connection {
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) now: Instant,
    pub(crate) sent: Vec<(Instant, Packet)>,
    pub(crate) delays: u64,
    pub(crate) reassembly_delays: Vec<Span>,
    filter: Filter,
    network: Network<Datagram>,
    /// What each packet number of a path carried: none is used twice.
    numbers: BTreeMap<(u16, u64), Content>,
}

impl Connection {
    pub(crate) fn new(options: &Options, paths: &[[LinkConfig; 2]], filter: Filter) -> Self {
        Self {
            sender: new_sender(options),
            receiver: new_receiver(options),
            now: Instant::ZERO + Span::from_secs(1),
            sent: Vec::new(),
            delays: 0,
            reassembly_delays: Vec::new(),
            filter,
            network: Network::new(1, paths.to_vec()),
            numbers: BTreeMap::new(),
        }
    }

    /// Runs until everything is delivered and acknowledged, or `limit` has passed. Returns whether everything was.
    pub(crate) fn run(&mut self, chunks: u64, limit: Span) -> bool {
        let end = self.now + limit;
        self.sender.handle(self.now, Input::Connect);
        while self.now < end {
            let deadline = self.poll_sender();
            if self.sender.acknowledged() >= chunks {
                return true;
            }
            let timer = deadline.min(self.receiver.deadline());
            let next = timer.min(self.network.next_event_time());
            assert!(next < Instant::NEVER, "it stalls at {} of {chunks}", self.sender.acknowledged());
            self.now = self.now.max(next);
            self.advance(timer);
        }
        false
    }

    fn poll_sender(&mut self) -> Instant {
        loop {
            match self.sender.poll(self.now) {
                Output::Transmit(packet) => self.send(packet),
                Output::WaitUntil(deadline) => return deadline,
            }
        }
    }

    fn send(&mut self, packet: Packet) {
        self.sent.push((self.now, packet));
        if !matches!(packet.content, Content::Initial | Content::PathChallenge) {
            let other = self.numbers.insert((packet.path, packet.number), packet.content);
            assert_eq!(other, None, "a packet number is used once");
        }
        let copies = (self.filter)(self.now, usize::from(packet.path), 0);
        let bytes = packet.bytes(20, CHUNK);
        self.network.send_copies(self.now, (0, usize::from(packet.path)), bytes, Datagram::Packet(packet), copies);
    }

    fn send_reply(&mut self, reply: Option<Reply>) {
        let Some(reply) = reply else { return };
        let copies = (self.filter)(self.now, usize::from(reply.path), 1);
        let bytes = reply.bytes(20, CHUNK);
        self.network.send_copies(self.now, (1, usize::from(reply.path)), bytes, Datagram::Reply(reply), copies);
    }

    fn advance(&mut self, timer: Instant) {
        match self.network.receive(self.now).map(|arrival| arrival.datagram) {
            Some(Datagram::Packet(packet)) => self.receive(&packet),
            Some(Datagram::Reply(reply)) => {
                self.sender.handle(self.now, Input::Reply(&reply));
                let delays = &mut self.delays;
                self.sender.drain_delays(|_, _| *delays += 1);
            }
            None if timer <= self.now => {
                self.sender.handle(self.now, Input::Timeout);
                while let Some(reply) = self.receiver.on_timeout(self.now) {
                    self.send_reply(Some(reply));
                }
            }
            None => {}
        }
    }

    fn receive(&mut self, packet: &Packet) {
        let reply = self.receiver.handle(self.now, packet, false);
        let reassembly_delays = &mut self.reassembly_delays;
        self.receiver.drain_reassembly_delays(|delay| reassembly_delays.push(delay));
        assert_eq!(self.reassembly_delays.len() as u64, self.receiver.delivered(), "each chunk is delivered once");
        self.send_reply(reply);
    }
}
