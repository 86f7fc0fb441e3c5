//! The part of a pipe behind its queue: the transmitter, the wire, and what happens to packets there.

use super::counters::Counters;
use super::loss::Losses;
use super::transmitter::{Transmission, Transmitter};
use super::wire::Wire;
use super::{Packet, Verdict};
use scenario::model;
use units::{Instant, Stream};

/// Transmitter and wire, with the pipe's chance and its books.
#[derive(Debug)]
pub(super) struct Outlet<P> {
    pub(super) transmitter: Transmitter,
    pub(super) wire: Wire<P>,
    pub(super) losses: Losses,
    pub(super) random: Stream,
    pub(super) counters: Counters,
    /// Packets dropped or lost that the pipe's owner has not taken back yet.
    pub(super) discarded: Vec<P>,
}

impl<P: Packet> Outlet<P> {
    pub(super) fn new(config: &model::Pipe, random: Stream) -> Self {
        Self {
            transmitter: Transmitter::new(config),
            wire: Wire::new(config),
            losses: Losses::new(config.loss),
            random,
            counters: Counters::default(),
            discarded: Vec::new(),
        }
    }

    /// Sends a packet of `size` bytes (with overhead) that is there since `ready`, after all before it: when its
    /// transmission starts, and what becomes of it. One that gets lost takes its turn at the transmitter.
    #[inline]
    pub(super) fn send(&mut self, ready: Instant, packet: P, size: u64) -> (Instant, Verdict) {
        let Transmission { start, departure, busy } = self.transmitter.send(ready, size);
        self.counters.queue_delay_total_ns += start.since(ready).0;
        self.counters.busy_ns += busy.0;
        let (survivor, verdict) = self.fate(departure, packet);
        self.wire.launch(departure, survivor, &mut self.random);
        (start, verdict)
    }

    #[inline]
    fn fate(&mut self, departure: Instant, packet: P) -> (Option<P>, Verdict) {
        if self.losses.strikes(&mut self.random) {
            return (None, self.lose_packet(packet));
        }
        if self.wire.is_full(departure) {
            return (None, self.drop_packet(packet));
        }
        (Some(packet), Verdict::Accepted)
    }

    /// A queue marks a packet that it lets pass.
    pub(super) fn mark(&mut self, packet: &mut P) {
        packet.mark();
        self.counters.marked += 1;
    }

    /// A queue, or the delay stage, has no place for it.
    pub(super) fn drop_packet(&mut self, packet: P) -> Verdict {
        self.counters.dropped += 1;
        self.discarded.push(packet);
        Verdict::Dropped
    }

    /// The wire loses it, or the link is down.
    pub(super) fn lose_packet(&mut self, packet: P) -> Verdict {
        self.counters.lost += 1;
        self.discarded.push(packet);
        Verdict::Lost
    }

    /// The packet that arrives by `now`.
    #[inline]
    pub(super) fn take(&mut self, now: Instant) -> Option<P> {
        let packet = self.wire.take(now)?;
        self.counters.delivered += 1;
        self.counters.bytes_delivered += u64::from(packet.bytes());
        Some(packet)
    }

    /// The link goes down: what is on the wire is lost, and what was to be transmitted is not; `waiting`: the sizes of
    /// those packets that had not begun.
    pub(super) fn cut(&mut self, now: Instant, waiting: impl Iterator<Item = u64>) {
        self.counters.busy_ns -= self.transmitter.outstanding(now, waiting).0;
        for packet in self.wire.clear() {
            self.counters.lost += 1;
            self.discarded.push(packet);
        }
        self.transmitter.stop(now);
    }
}
