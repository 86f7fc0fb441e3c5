//! The part of a pipe behind its queue: the transmitter and the wire, with loss, marks and counters.

use super::counters::LinkCounters;
use super::impairments::{Impairment, Impairments};
use super::loss::LossState;
use super::packet::{Forwarded, Packet, Verdict};
use super::transmitter::{Transmission, Transmitter};
use super::wire::Wire;
use crate::config::PipeConfig;
use units::{Instant, RngStream};

/// Transmitter and wire, with the pipe's random stream and counters.
#[derive(Debug)]
pub(super) struct Egress<P> {
    pub(super) transmitter: Transmitter,
    pub(super) wire: Wire<P>,
    pub(super) loss: LossState,
    impairments: Option<Impairments>,
    pub(super) rng: RngStream,
    pub(super) counters: LinkCounters,
    /// Packets dropped or lost that the driver has not yet taken.
    pub(super) discarded: Vec<(P, Verdict)>,
}

impl<P: Packet> Egress<P> {
    pub(super) fn new(config: &PipeConfig, mut rng: RngStream) -> Self {
        Self {
            transmitter: Transmitter::new(config),
            wire: Wire::new(config, &mut rng),
            loss: LossState::new(config.loss),
            impairments: Impairments::new(config),
            rng,
            counters: LinkCounters::default(),
            discarded: Vec::new(),
        }
    }

    /// Sends a packet of `size` bytes (with overhead) that has been available since `available_at`, after all earlier
    /// packets. Returns the start of its transmission and its verdict. A packet that is lost is transmitted, too.
    #[inline]
    pub(super) fn send(&mut self, available_at: Instant, packet: P, size: u64) -> (Instant, Verdict) {
        let Transmission { start, departure, .. } = self.transmit(available_at, size);
        let (packet_or_lost, verdict) = self.apply_loss(departure, packet);
        let impairment = match &mut self.impairments {
            Some(impairments) => impairments.draw(&mut self.rng),
            None => Impairment::default(),
        };
        self.wire.send(departure, packet_or_lost, impairment, &mut self.rng);
        (start, verdict)
    }

    /// As [`send`](Self::send), without impairments. A packet that arrives before `horizon` leaves the pipe at once.
    #[inline]
    pub(super) fn forward(
        &mut self,
        available_at: Instant,
        packet: P,
        size: u64,
        horizon: Instant,
    ) -> (Instant, Forwarded<P>) {
        let Transmission { start, departure, .. } = self.transmit(available_at, size);
        let (packet_or_lost, verdict) = self.apply_loss(departure, packet);
        let forwarded = self.wire.forward(departure, packet_or_lost, horizon, &mut self.rng);
        (start, forwarded.map_or(Forwarded::Enqueued(verdict), |(packet, arrival)| self.deliver(packet, arrival)))
    }

    /// Whether there are only a rate and a delay, without loss, jitter, limit or impairment.
    pub(super) fn is_plain(&self) -> bool {
        let has_rate = matches!(self.transmitter, Transmitter::Rate(_));
        has_rate && self.loss.is_none() && self.impairments.is_none() && self.wire.is_plain()
    }

    /// Counts the transmission of a packet that has been available since `available_at` through a [plain](Self::is_plain)
    /// egress.
    #[inline(always)]
    pub(super) fn count_plain(&mut self, available_at: Instant, transmission: &Transmission, arrival: Instant) {
        let Transmission { start, serialisation_time, .. } = *transmission;
        self.counters.offered += 1;
        self.counters.count_transmission(start.since(available_at), serialisation_time);
        self.wire.last_arrival = arrival;
    }

    /// Removes the first packet that arrives before `horizon`.
    pub(super) fn forward_first(&mut self, horizon: Instant) -> Option<(P, Instant)> {
        let (packet, arrival) = self.wire.take_before(horizon)?;
        self.count_delivered(packet.bytes());
        Some((packet, arrival))
    }

    #[inline]
    fn deliver(&mut self, packet: P, arrival: Instant) -> Forwarded<P> {
        self.count_delivered(packet.bytes());
        Forwarded::Arrives(packet, arrival)
    }

    #[inline]
    pub(super) fn count_delivered(&mut self, bytes: u32) {
        self.counters.delivered += 1;
        self.counters.bytes_delivered += u64::from(bytes);
    }

    #[inline]
    fn transmit(&mut self, available_at: Instant, size: u64) -> Transmission {
        let transmission = self.transmitter.send(available_at, size);
        self.counters.count_transmission(transmission.start.since(available_at), transmission.serialisation_time);
        transmission
    }

    /// Whether the wire duplicates, corrupts or reorders packets, or lets them leave in slots.
    pub(super) fn is_impaired(&self) -> bool {
        self.impairments.is_some() || self.wire.reorders() || self.wire.has_slots()
    }

    /// Whether packets may overtake others on the wire.
    #[inline]
    pub(super) fn reorders(&self) -> bool {
        self.impairments.as_ref().is_some_and(Impairments::reorders) || self.wire.reorders()
    }

    #[inline]
    fn apply_loss(&mut self, departure: Instant, packet: P) -> (Option<P>, Verdict) {
        if self.loss.loses_packet(&mut self.rng) {
            return (None, self.discard_lost(packet));
        }
        if self.wire.is_full(departure) {
            return (None, self.discard_dropped(packet));
        }
        (Some(packet), Verdict::Accepted)
    }

    /// Marks a packet CE.
    pub(super) fn mark(&mut self, packet: &mut P) {
        packet.mark();
        self.counters.marked += 1;
    }

    /// Discards a packet that the queue or the delay stage drops.
    #[cold]
    pub(super) fn discard_dropped(&mut self, packet: P) -> Verdict {
        self.counters.dropped += 1;
        self.discarded.push((packet, Verdict::Dropped));
        Verdict::Dropped
    }

    /// Discards a packet that is lost on the wire, or because the link is down.
    pub(super) fn discard_lost(&mut self, packet: P) -> Verdict {
        self.counters.lost += 1;
        self.discarded.push((packet, Verdict::Lost));
        Verdict::Lost
    }

    /// Removes the packet that has arrived by `now`.
    #[inline]
    pub(super) fn receive(&mut self, now: Instant) -> Option<P> {
        let packet = self.wire.receive(now, &mut self.counters)?;
        self.count_delivered(packet.bytes());
        Some(packet)
    }

    /// Takes the link down: packets on the wire are lost, and transmissions are cancelled. `waiting` has the sizes of
    /// the packets whose transmission has not begun.
    pub(super) fn take_down(&mut self, now: Instant, waiting: impl Iterator<Item = u64>) {
        self.counters.busy_ns -= self.transmitter.remaining_busy_time(now, waiting).0;
        for packet in self.wire.clear() {
            self.counters.lost += 1;
            self.discarded.push((packet, Verdict::Lost));
        }
        self.transmitter.cancel_after(now);
    }
}
