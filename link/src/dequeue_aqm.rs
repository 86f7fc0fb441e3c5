//! A queue that decides at departure (drop-head, CoDel, PIE, DualPI2, FQ-CoDel, CAKE): packets wait until the
//! transmitter is idle.
//!
//! Departures from the queue are computed at each call of the pipe's methods, each with its own instant, because only
//! arrivals at the far end are visible outside. The pipe needs an event for a departure only while the wire is empty,
//! or if packets may overtake those on it. If a packet leaves the queue and another arrives at the same instant, the
//! departure comes first.
//!
//! The queueing discipline is a [`Qdisc`]: [`Fifo`], [`FairQueue`] or [`DualPi2`].

use super::cobalt::Cobalt;
use super::codel::CoDel;
use super::dualpi2::DualPi2;
use super::egress::Egress;
use super::fair_queue::{FairConfig, FairQueue};
use super::fifo::{Aqm, Fifo};
use super::limit::EffectiveLimit;
use super::packet::{Packet, Verdict};
use super::packet_queue::{Backlog, QueuedPacket};
use super::pie::Pie;
use super::qdisc::Qdisc;
use crate::config::{CakeConfig, FqCodelConfig, QueueConfig, QueueDiscipline, QueueLimit};
use units::{Instant, Rate};

/// The queue in front of a transmitter.
#[derive(Debug)]
pub(super) struct DequeueAqm<P> {
    configured_limit: QueueLimit,
    limit: EffectiveLimit,
    qdisc: Box<dyn Qdisc<P>>,
}

impl<P: Packet> DequeueAqm<P> {
    /// The queue of `config` at the transmitter of `egress`. Its hash seed is drawn from the random stream of `egress`.
    ///
    /// # Panics
    /// If the discipline belongs to [`EnqueueAqm`](super::enqueue_aqm::EnqueueAqm).
    pub(super) fn new(config: QueueConfig, egress: &mut Egress<P>) -> Self {
        let (rate, ecn) = (egress.transmitter.rate(), config.ecn);
        let qdisc: Box<dyn Qdisc<P>> = match config.discipline {
            QueueDiscipline::DropHead => Box::new(Fifo::new(Aqm::DropHead)),
            QueueDiscipline::CoDel(codel) => Box::new(Fifo::new(Aqm::CoDel(CoDel::new(codel, ecn)))),
            QueueDiscipline::Pie(pie) => Box::new(Fifo::new(Aqm::Pie(Pie::new(pie, ecn)))),
            QueueDiscipline::DualPi2(dual) => Box::new(DualPi2::new(dual)),
            QueueDiscipline::FqCodel(FqCodelConfig { flows, quantum, codel }) => {
                let fair = FairConfig::fq_codel(flows, quantum);
                Box::new(FairQueue::new(fair, &CoDel::new(codel, ecn), rate, egress.rng.bits()))
            }
            QueueDiscipline::Cake(CakeConfig { rtt }) => {
                Box::new(FairQueue::new(FairConfig::CAKE, &Cobalt::new(rtt, ecn), rate, egress.rng.bits()))
            }
            QueueDiscipline::DropTail | QueueDiscipline::Red(_) => unreachable!("these decide on arrival"),
        };
        Self { configured_limit: config.limit, limit: EffectiveLimit::new(config.limit, rate), qdisc }
    }

    pub(super) fn enqueue(&mut self, now: Instant, packet: P, size: u64, egress: &mut Egress<P>) -> Verdict {
        self.dequeue_until(now, egress);
        let idle_at = egress.transmitter.idle_at();
        let is_idle = self.qdisc.head_arrival().is_none() && idle_at <= now;
        if is_idle {
            self.qdisc.on_idle(idle_at);
        }
        let packet = QueuedPacket { arrived: now, size, packet };
        let verdict = self.qdisc.enqueue(packet, (!is_idle).then_some(&self.limit), egress);
        self.dequeue_until(now, egress);
        verdict
    }

    /// Time at which the next packet leaves the queue.
    pub(super) fn next_dequeue_at(&self, egress: &Egress<P>) -> Instant {
        self.qdisc.head_arrival().map_or(Instant::NEVER, |arrived| egress.transmitter.start(arrived))
    }

    /// Transmits the packets whose transmission begins by `now`.
    pub(super) fn dequeue_until(&mut self, now: Instant, egress: &mut Egress<P>) {
        while self.next_dequeue_at(egress) <= now {
            let Some(head) = self.qdisc.dequeue(self.next_dequeue_at(egress), egress) else { return };
            egress.send(head.arrived, head.packet, head.size);
        }
        if let Some(arrived) = self.qdisc.head_arrival() {
            egress.transmitter.request(arrived);
        }
    }

    /// The backlog at the last `dequeue_until`.
    pub(super) fn backlog(&self) -> Backlog {
        self.qdisc.backlog()
    }

    pub(super) fn set_rate(&mut self, now: Instant, rate: Rate, egress: &mut Egress<P>) {
        self.dequeue_until(now, egress);
        let effective_from = egress.wire.departure_before(0).map_or(now, |departure| departure.max(now));
        egress.transmitter.set_rate(rate, effective_from);
        self.limit = EffectiveLimit::new(self.configured_limit, Some(rate));
        self.qdisc.set_rate(rate);
    }

    /// Holds the waiting packets until `until`. The packet in transmission leaves.
    pub(super) fn pause(&mut self, now: Instant, until: Instant, egress: &mut Egress<P>) {
        self.dequeue_until(now, egress);
        let from = egress.wire.departure_before(0).map_or(now, |departure| departure.max(now));
        egress.transmitter.pause(from, until);
    }

    /// Takes the link down: the queueing delay of the waiting packets ends now.
    pub(super) fn take_down(&mut self, now: Instant, egress: &mut Egress<P>) {
        self.dequeue_until(now, egress);
        while let Some(waiting) = self.qdisc.remove_head() {
            egress.counters.queue_delay_total_ns += now.since(waiting.arrived).0;
            egress.discard_lost(waiting.packet);
        }
        egress.take_down(now, std::iter::empty());
    }
}
