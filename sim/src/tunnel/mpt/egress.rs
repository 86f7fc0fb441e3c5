//! The receiving end of an MPT tunnel: packets are delivered in sequence.

use crate::packet::PacketDescriptor;
use mpt::{ReorderConfig, Resequencer};
use record::{Distribution, Tunnel};
use scenario::model;
use units::Instant;

/// The receiving end of one direction, which delivers packets in sequence or as they arrive.
#[derive(Debug)]
pub(crate) struct Egress {
    /// Packets that have arrived while the daemon sleeps, with their sequence numbers.
    pub inbox: Vec<(u64, PacketDescriptor)>,
    pub resequencer: Option<Resequencer<PacketDescriptor>>,
    /// The times that packets spent in the reorder buffer.
    pub reorder_delay: Distribution,
    /// Packets delivered without resequencing.
    pub delivered: u64,
}

impl Egress {
    pub(crate) fn new(tunnel: &model::Tunnel) -> Self {
        let resequencer = tunnel.resequence.map(|config| {
            let (window, timeout, deliver_late) = (config.window, config.timeout, config.deliver_late);
            Resequencer::new(ReorderConfig { window, timeout, deliver_late })
        });
        Self { inbox: Vec::new(), resequencer, reorder_delay: Distribution::default(), delivered: 0 }
    }

    /// Receives a packet; packets that are delivered are added to `delivered`. False if this one is too late and
    /// dropped.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        seq: u64,
        descriptor: PacketDescriptor,
        delivered: &mut Vec<PacketDescriptor>,
    ) -> bool {
        let Some(resequencer) = &mut self.resequencer else {
            self.delivered += 1;
            delivered.push(descriptor);
            return true;
        };
        let (prior_late, prior_delivered) = (resequencer.counters().late, delivered.len());
        resequencer.handle(now, seq, descriptor, |release| {
            self.reorder_delay.add(release.wait);
            delivered.push(release.packet);
        });
        resequencer.counters().late == prior_late || delivered.len() > prior_delivered
    }

    pub(crate) fn on_timeout(&mut self, now: Instant, delivered: &mut Vec<PacketDescriptor>) {
        let Some(resequencer) = &mut self.resequencer else { return };
        resequencer.on_timeout(now, |release| {
            self.reorder_delay.add(release.wait);
            delivered.push(release.packet);
        });
    }

    /// Time at which [`on_timeout`](Self::on_timeout) is due.
    pub(crate) fn deadline(&self) -> Instant {
        self.resequencer.as_ref().map_or(Instant::NEVER, Resequencer::deadline)
    }

    /// The record of packets received.
    pub(crate) fn record(&self) -> Tunnel {
        let reorder_delay_ms = self.reorder_delay.summary();
        let Some(resequencer) = &self.resequencer else {
            return Tunnel { delivered_packets: self.delivered, reorder_delay_ms, ..Tunnel::default() };
        };
        let counters = resequencer.counters();
        Tunnel {
            delivered_packets: counters.delivered,
            reorder_buffered_packets: counters.buffered,
            late_packets: counters.late,
            timeouts: counters.timeouts,
            overflows: counters.overflows,
            max_reorder_buffered_packets: counters.max_buffered,
            reorder_delay_ms,
            ..Tunnel::default()
        }
    }

    /// Packets that wait.
    pub(crate) fn queued(&self) -> u64 {
        self.resequencer.as_ref().map_or(0, Resequencer::buffered_packets) + self.inbox.len() as u64
    }
}
