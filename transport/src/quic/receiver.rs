//! The receiver: the arrived packets of each path's packet-number space, the timing of acknowledgements, and the
//! reassembly of each stream.

use super::ack_ranges::ReceivedRanges;
use super::{Content, MAX_ACK_DELAY, Packet, PathAck, Reply, ReplyContent};
use crate::tcp::receiver::reassembly::Reassembly;
use std::collections::VecDeque;
use units::{Instant, Span};

/// Number of ack-eliciting packets after which an acknowledgement is sent (RFC 9000, section 13.2.2).
const ACK_EVERY: u32 = 2;

/// Configuration of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// Number of paths.
    pub paths: u16,
    /// Number of streams.
    pub streams: u32,
    /// Flow-control window, chunks: how far the sender may go beyond the data that the application has read.
    pub window: u64,
    /// Whether every packet is acknowledged at once.
    pub quick_ack: bool,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverCounters {
    /// Chunks that arrived again.
    pub duplicates: u64,
    /// Chunks whose copy arrived first.
    pub copies_arrived_first: u64,
    /// Chunks beyond the offered flow-control limit; they were dropped.
    pub beyond_window: u64,
    /// Maximum number of chunks that waited for earlier chunks of their streams.
    pub max_out_of_order: u64,
}

/// The receiver of a connection. Its application reads delivered data at once.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: ReceiverConfig,
    spaces: Vec<Space>,
    streams: Vec<Stream>,
    /// Chunks delivered to the application, of all streams.
    delivered: u64,
    /// Chunks that wait for earlier chunks of their streams.
    out_of_order: u64,
    /// The latest MAX_DATA, chunks.
    max_data: u64,
    reassembly_delays: Vec<Span>,
    counters: ReceiverCounters,
}

/// The packet-number space of a path.
#[derive(Clone, Debug)]
struct Space {
    received: ReceivedRanges,
    largest_arrival: Instant,
    largest_delay: Span,
    /// Ack-eliciting packets since the last acknowledgement.
    unacked: u32,
    deadline: Instant,
    ce_count: u32,
}

#[derive(Clone, Debug, Default)]
struct Stream {
    chunks: Reassembly,
    /// Arrival time of each chunk from `chunks.next()` on; [`Instant::NEVER`] if it has not arrived.
    arrivals: VecDeque<Instant>,
}

impl Stream {
    /// Adds an arrived chunk, by its number in the stream. False if it had already arrived.
    fn insert(&mut self, now: Instant, chunk: u64, mut on_delivery: impl FnMut(Span)) -> bool {
        let next = self.chunks.next();
        if !self.chunks.insert(chunk) {
            return false;
        }
        let index = (chunk - next) as usize;
        if index >= self.arrivals.len() {
            self.arrivals.resize(index + 1, Instant::NEVER);
        }
        self.arrivals[index] = now;
        for _ in next..self.chunks.next() {
            let arrival = self.arrivals.pop_front().expect("what is delivered has arrived");
            on_delivery(now.since(arrival));
        }
        true
    }
}

impl Receiver {
    /// A receiver that has received nothing.
    ///
    /// # Panics
    /// If there are no streams.
    #[must_use]
    pub fn new(config: ReceiverConfig) -> Self {
        assert!(config.streams > 0, "a connection has a stream");
        let space = Space {
            received: ReceivedRanges::default(),
            largest_arrival: Instant::ZERO,
            largest_delay: Span::ZERO,
            unacked: 0,
            deadline: Instant::NEVER,
            ce_count: 0,
        };
        Self {
            config,
            spaces: vec![space; usize::from(config.paths)],
            streams: vec![Stream::default(); config.streams as usize],
            delivered: 0,
            out_of_order: 0,
            max_data: config.window,
            reassembly_delays: Vec::new(),
            counters: ReceiverCounters::default(),
        }
    }

    /// Handles an arriving packet; `marked` if it has a CE mark. Returns the reply that must be sent at once. A packet
    /// of a path that does not exist is ignored.
    pub fn handle(&mut self, now: Instant, packet: &Packet, marked: bool) -> Option<Reply> {
        self.spaces.get(usize::from(packet.path))?;
        let (path, number) = (packet.path, packet.number);
        match packet.content {
            Content::Initial => return Some(Reply { path, content: ReplyContent::Handshake { number } }),
            Content::PathChallenge => return Some(Reply { path, content: ReplyContent::PathResponse { number } }),
            Content::Stream { chunk, copy, .. } => self.on_chunk(now, chunk, copy),
            Content::Ping => {}
        }
        self.on_packet(now, packet, marked).then(|| self.acknowledge(now, path))
    }

    /// Time at which [`Receiver::on_timeout`] is due.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.spaces.iter().map(|space| space.deadline).min().unwrap_or(Instant::NEVER)
    }

    /// Handles an expired deadline: a delayed acknowledgement is sent. Call it until it returns `None`.
    pub fn on_timeout(&mut self, now: Instant) -> Option<Reply> {
        let path = self.spaces.iter().position(|space| space.deadline <= now)?;
        Some(self.acknowledge(now, path as u16))
    }

    /// Chunks delivered to the application, of all streams.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Drains the reassembly delay of each chunk delivered since the last call: its wait for earlier chunks of its
    /// stream.
    pub fn drain_reassembly_delays(&mut self, record: impl FnMut(Span)) {
        self.reassembly_delays.drain(..).for_each(record);
    }

    /// The counters.
    #[must_use]
    pub fn counters(&self) -> &ReceiverCounters {
        &self.counters
    }

    fn on_chunk(&mut self, now: Instant, chunk: u64, copy: bool) {
        if chunk >= self.max_data {
            self.counters.beyond_window += 1;
            return;
        }
        let streams = self.streams.len() as u64;
        let (stream, chunk) = (&mut self.streams[(chunk % streams) as usize], chunk / streams);
        let delays = &mut self.reassembly_delays;
        let (prior_next, prior_out_of_order) = (stream.chunks.next(), stream.chunks.out_of_order());
        if stream.insert(now, chunk, |wait| delays.push(wait)) {
            self.delivered += stream.chunks.next() - prior_next;
            self.counters.copies_arrived_first += u64::from(copy);
        } else {
            self.counters.duplicates += 1;
        }
        self.out_of_order = self.out_of_order + stream.chunks.out_of_order() - prior_out_of_order;
        self.counters.max_out_of_order = self.counters.max_out_of_order.max(self.out_of_order);
    }

    /// Records a packet number. Returns whether it is acknowledged at once (RFC 9000, sections 13.2.1 and 13.2.2). That
    /// is the case for every second packet, a packet out of order or after a gap, and a packet with a CE mark.
    fn on_packet(&mut self, now: Instant, packet: &Packet, marked: bool) -> bool {
        let space = &mut self.spaces[usize::from(packet.path)];
        let prior_largest = space.received.largest();
        if !space.received.insert(packet.number) {
            return false;
        }
        if prior_largest < Some(packet.number) {
            (space.largest_arrival, space.largest_delay) = (now, now.since(packet.sent));
        }
        space.ce_count = space.ce_count.wrapping_add(u32::from(marked));
        space.unacked += 1;
        let is_next = packet.number == prior_largest.map_or(0, |largest| largest + 1);
        let at_once = self.config.quick_ack || marked || !is_next || space.unacked >= ACK_EVERY;
        if !at_once {
            space.deadline = now + MAX_ACK_DELAY;
        }
        at_once
    }

    /// The acknowledgement of a path's space, which returns on that path.
    fn acknowledge(&mut self, now: Instant, path: u16) -> Reply {
        self.max_data = self.max_data.max(self.delivered + self.config.window);
        let space = &mut self.spaces[usize::from(path)];
        (space.unacked, space.deadline) = (0, Instant::NEVER);
        let ack = PathAck {
            path,
            delay_us: now.since(space.largest_arrival).as_micros() as u32,
            ranges: space.received.ack_ranges(),
            ce_count: space.ce_count,
            max_data: self.max_data,
            one_way_delay_us: space.largest_delay.as_micros() as u32,
        };
        Reply { path, content: ReplyContent::Ack(ack) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(streams: u32) -> Receiver {
        Receiver::new(ReceiverConfig { paths: 2, streams, window: 100, quick_ack: false })
    }

    fn packet(path: u16, number: u64, chunk: u64) -> Packet {
        Packet { path, number, sent: Instant::ZERO, content: Content::Stream { chunk, copy: false, is_again: false } }
    }

    fn ack(reply: Option<Reply>) -> Option<PathAck> {
        reply.map(|reply| match reply.content {
            ReplyContent::Ack(ack) => ack,
            other => panic!("{other:?}"),
        })
    }

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn every_second_packet_is_acknowledged_or_a_lone_one_after_25_ms() {
        let mut receiver = receiver(1);
        assert_eq!(receiver.handle(ms(10), &packet(0, 0, 0), false), None);
        let second = ack(receiver.handle(ms(12), &packet(0, 1, 1), false)).expect("the second one");
        assert_eq!((second.ranges.largest(), second.delay_us, receiver.deadline()), (1, 0, Instant::NEVER));
        assert_eq!(receiver.handle(ms(20), &packet(0, 2, 2), false), None);
        assert_eq!(receiver.handle(ms(21), &packet(1, 0, 3), false), None, "each path has a space of its own");
        assert_eq!((receiver.deadline(), receiver.on_timeout(ms(44))), (ms(45), None));
        let lone = ack(receiver.on_timeout(ms(45))).expect("it is due");
        assert_eq!((lone.path, lone.ranges.largest(), lone.delay_us), (0, 2, 25_000));
        assert_eq!(receiver.on_timeout(ms(45)), None);
        assert_eq!(receiver.deadline(), ms(46));
    }

    #[test]
    fn a_gap_an_overtaken_packet_and_a_mark_are_acknowledged_at_once() {
        let mut receiver = receiver(1);
        assert!(receiver.handle(ms(0), &packet(0, 1, 1), false).is_some(), "packet 0 is missing");
        assert!(receiver.handle(ms(1), &packet(0, 0, 0), false).is_some(), "it came late");
        assert!(receiver.handle(ms(2), &packet(0, 2, 2), false).is_none());
        let marked = ack(receiver.handle(ms(3), &packet(0, 3, 3), true)).expect("a mark");
        assert_eq!(marked.ce_count, 1);
        assert!(receiver.handle(ms(4), &packet(0, 3, 3), false).is_none(), "a duplicate of the network");
    }

    #[test]
    fn a_loss_on_one_stream_does_not_delay_another() {
        // Chunks 0, 2, 4 ... are stream 0, of which the first is late; the others are stream 1.
        let mut receiver = receiver(2);
        let mut waits = Vec::new();
        for (number, chunk) in (1..6).enumerate() {
            receiver.handle(ms(chunk), &packet(0, number as u64, chunk), false);
        }
        receiver.drain_reassembly_delays(|wait| waits.push(wait.as_millis()));
        assert_eq!((waits.len(), receiver.delivered()), (3, 3), "all of stream 1");
        assert!(waits.iter().all(|wait| *wait == 0));
        receiver.handle(ms(20), &packet(1, 0, 0), false);
        let mut waits = Vec::new();
        receiver.drain_reassembly_delays(|wait| waits.push(wait.as_millis()));
        assert_eq!((waits, receiver.delivered()), (vec![0, 18, 16], 6), "stream 0 waited for it");
    }

    #[test]
    fn the_window_follows_what_the_application_has_read_and_holds() {
        let mut receiver = receiver(1);
        let first = ack(receiver.handle(ms(0), &packet(0, 1, 1), false)).expect("a gap");
        assert_eq!(first.max_data, 100, "nothing was read");
        let second = ack(receiver.handle(ms(1), &packet(0, 0, 0), false)).expect("it came late");
        assert_eq!(second.max_data, 102);
        receiver.handle(ms(2), &packet(0, 2, 102), false);
        assert_eq!((receiver.counters().beyond_window, receiver.delivered()), (1, 2));
    }
}
