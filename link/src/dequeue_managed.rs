//! A queue that decides at departure, or has a queue for each flow: packets wait until the transmitter is free.
//!
//! Departures from the queue are computed whenever something happens in the pipe, each with its own instant, because only
//! arrivals at the far end are visible outside. The pipe needs an event for a departure only while the wire is empty. At
//! an instant at which a packet leaves the queue and another arrives, the departure comes first.
//!
//! The queueing discipline is a [`Qdisc`]: [`Fifo`] or [`FairQueue`].

use super::cobalt::Cobalt;
use super::codel::CoDel;
use super::egress::Egress;
use super::fair_queue::{FairConfig, FairQueue};
use super::fifo::{Aqm, Fifo};
use super::limit::EffectiveLimit;
use super::packet::{Packet, Verdict};
use super::packet_queue::QueuedPacket;
use super::pie::Pie;
use super::qdisc::Qdisc;
use crate::config::{CakeConfig, FqCodelConfig, QueueConfig, QueueDiscipline, QueueLimit};
use units::{Instant, Rate};

/// The queue in front of a transmitter.
#[derive(Debug)]
pub(super) struct DequeueManaged<P> {
    config: QueueLimit,
    limit: EffectiveLimit,
    qdisc: Box<dyn Qdisc<P>>,
}

impl<P: Packet> DequeueManaged<P> {
    /// The queue of `config` at the transmitter of `egress`, from which it draws its hash seed.
    ///
    /// # Panics
    /// If the discipline decides all on arrival; [`EnqueueManaged`](super::enqueue_managed::EnqueueManaged) has those.
    pub(super) fn new(config: QueueConfig, egress: &mut Egress<P>) -> Self {
        let (rate, ecn) = (egress.transmitter.rate(), config.ecn);
        let qdisc: Box<dyn Qdisc<P>> = match config.discipline {
            QueueDiscipline::CoDel(codel) => Box::new(Fifo::new(Aqm::CoDel(CoDel::new(codel, ecn)))),
            QueueDiscipline::Pie(pie) => Box::new(Fifo::new(Aqm::Pie(Pie::new(pie, ecn)))),
            QueueDiscipline::FqCodel(FqCodelConfig { flows, quantum, codel }) => {
                let fair = FairConfig::fq_codel(flows, quantum);
                Box::new(FairQueue::new(fair, &CoDel::new(codel, ecn), rate, egress.rng.bits()))
            }
            QueueDiscipline::Cake(CakeConfig { rtt }) => {
                Box::new(FairQueue::new(FairConfig::CAKE, &Cobalt::new(rtt, ecn), rate, egress.rng.bits()))
            }
            QueueDiscipline::DropTail | QueueDiscipline::Red(_) => unreachable!("these decide on arrival"),
        };
        Self { config: config.limit, limit: EffectiveLimit::new(config.limit, rate), qdisc }
    }

    pub(super) fn offer(&mut self, now: Instant, packet: P, size: u64, egress: &mut Egress<P>) -> Verdict {
        self.advance(now, egress);
        let free_at = egress.transmitter.free_at();
        let is_idle = self.qdisc.waiting_since().is_none() && free_at <= now;
        if is_idle {
            self.qdisc.on_idle(free_at);
        }
        let packet = QueuedPacket { arrived: now, size, packet };
        let verdict = self.qdisc.enqueue(packet, (!is_idle).then_some(&self.limit), egress);
        self.advance(now, egress);
        verdict
    }

    /// When the next packet leaves the queue.
    pub(super) fn next(&self, egress: &Egress<P>) -> Instant {
        self.qdisc.waiting_since().map_or(Instant::NEVER, |arrived| egress.transmitter.start(arrived))
    }

    /// Transmits the packets whose transmission begins by `now`.
    pub(super) fn advance(&mut self, now: Instant, egress: &mut Egress<P>) {
        while self.next(egress) <= now {
            let Some(head) = self.qdisc.dequeue(self.next(egress), egress) else { return };
            egress.send(head.arrived, head.packet, head.size);
        }
    }

    /// Packets and bytes that wait, as of the last `advance`.
    pub(super) fn backlog(&self) -> (u64, u64) {
        self.qdisc.backlog()
    }

    pub(super) fn set_rate(&mut self, now: Instant, rate: Rate, egress: &mut Egress<P>) {
        self.advance(now, egress);
        let begin = egress.wire.departure_before(0).map_or(now, |departure| departure.max(now));
        egress.transmitter.set_rate(rate, begin);
        self.limit = EffectiveLimit::new(self.config, Some(rate));
        self.qdisc.set_rate(rate);
    }

    /// The link goes down: the queueing delay of the waiting packets ends now.
    pub(super) fn take_down(&mut self, now: Instant, egress: &mut Egress<P>) {
        self.advance(now, egress);
        while let Some(waiting) = self.qdisc.purge() {
            egress.counters.queue_delay_total_ns += now.since(waiting.arrived).0;
            egress.lose_packet(waiting.packet);
        }
        egress.take_down(now, std::iter::empty());
    }
}
