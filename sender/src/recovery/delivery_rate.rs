//! Delivery-rate samples. draft-cheng-iccrg-delivery-rate-estimation; Linux 6.1 `tcp_rate.c`.

use control::{RateSample, SendState};
use units::{Instant, Span};

/// Delivery-rate state at the sending of a packet, stored with the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendSnapshot {
    /// Packets delivered so far (P.delivered).
    pub delivered: u64,
    /// Delivery time of the latest of them (P.delivered_time).
    pub delivered_at: Instant,
    /// Send time of the most recently delivered packet (P.first_sent_time).
    pub first_sent: Instant,
    /// Packets in flight at that time, and the totals of lost and marked packets.
    pub totals: SendTotals,
    /// Whether the sender was application-limited.
    pub app_limited: bool,
}

/// Packets in flight, and the totals of packets marked lost and CE-marked. The totals may wrap, as only differences
/// matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendTotals {
    /// Packets in flight.
    pub in_flight: u32,
    /// Packets marked lost so far.
    pub lost: u32,
    /// Packets reported as CE-marked so far.
    pub marked: u32,
}

impl SendSnapshot {
    /// The state at the packet's sending, for controllers; `totals` are the current ones.
    #[must_use]
    pub fn sending(&self, totals: SendTotals) -> SendState {
        SendState {
            tx_in_flight: self.totals.in_flight,
            lost: totals.lost.wrapping_sub(self.totals.lost),
            marked: totals.marked.wrapping_sub(self.totals.marked),
            app_limited: self.app_limited,
        }
    }
}

/// The rate sample of one acknowledgement (Linux `rate_sample`).
#[derive(Clone, Copy, Debug, Default)]
pub struct PendingRateSample {
    newest: Option<(Instant, u64)>,
    prior: SendSnapshot,
    send_interval: Span,
}

impl PendingRateSample {
    /// Packets delivered when the newest packet of this acknowledgement was sent; zero if nothing was delivered.
    #[must_use]
    pub fn prior_delivered(&self) -> u64 {
        self.prior.delivered
    }

    /// The newest packet's snapshot; `None` if nothing was delivered.
    #[must_use]
    pub fn newest(&self) -> Option<&SendSnapshot> {
        self.newest.map(|_| &self.prior)
    }
}

/// Delivery-rate state of a path (C.delivered, C.delivered_time, C.first_sent_time, C.app_limited of the draft).
#[derive(Clone, Debug, Default)]
pub struct RateSampler {
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    /// Samples are application-limited until more packets than these are delivered.
    app_limited_until: Option<u64>,
}

impl RateSampler {
    /// Packets ever delivered.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Whether samples are application-limited.
    #[must_use]
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Counts packets as delivered.
    pub fn count(&mut self, packets: u32) {
        self.delivered += u64::from(packets);
    }

    /// Called when a packet is sent; `outstanding` is false if no other one is. `totals` includes the packet.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, outstanding: bool, totals: SendTotals) -> SendSnapshot {
        if !outstanding {
            self.first_sent = now;
            self.delivered_at = now;
        }
        SendSnapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            totals,
            app_limited: self.is_app_limited(),
        }
    }

    /// Called when a packet sent at `sent` was delivered. The newest packet of an acknowledgement defines the sample.
    #[inline]
    pub fn on_delivered(&mut self, sample: &mut PendingRateSample, seq: u64, sent: Instant, snapshot: &SendSnapshot) {
        if sample.newest.is_none_or(|newest| (sent, seq) > newest) {
            sample.newest = Some((sent, seq));
            sample.prior = *snapshot;
            sample.send_interval = sent.since(snapshot.first_sent);
            self.first_sent = sent;
        }
    }

    /// Ends an acknowledgement that newly delivered `acked` packets. Returns the sample if it is valid.
    #[inline]
    pub fn finish(
        &mut self,
        now: Instant,
        sample: &PendingRateSample,
        acked: u32,
        min_rtt: Span,
        ack_delayed: bool,
    ) -> Option<RateSample> {
        self.app_limited_until.take_if(|until| self.delivered > *until);
        if acked > 0 {
            self.delivered_at = now;
        }
        sample.newest?;
        let delivered = (self.delivered - sample.prior.delivered) as u32;
        let interval = sample.send_interval.max(now.since(sample.prior.delivered_at));
        // Shorter than the minimum RTT: an artefact, for example of a retransmission when the original was
        // acknowledged.
        if min_rtt != Span::MAX && interval < min_rtt || interval == Span::ZERO || delivered == 0 {
            return None;
        }
        Some(RateSample {
            delivered,
            interval,
            prior_delivered: sample.prior.delivered,
            app_limited: sample.prior.app_limited,
            ack_delayed,
        })
    }

    /// The application has nothing to send and the window has room: samples are application-limited until the packets
    /// in flight are delivered.
    pub fn mark_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = Some(self.delivered + u64::from(in_flight));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux counts the SYN as delivered: what is sent after the first acknowledgement is not application-limited.
    #[test]
    fn samples_are_application_limited_until_one_more_packet_is_delivered() {
        let mut sampler = RateSampler::default();
        sampler.mark_app_limited(0);
        let first = sampler.on_sent(Instant::ZERO, false, SendTotals::default());
        let mut sample = PendingRateSample::default();
        sampler.count(1);
        sampler.on_delivered(&mut sample, 0, Instant::ZERO, &first);
        let at = Instant::ZERO + Span::from_millis(20);
        assert!(sampler.finish(at, &sample, 1, Span::MAX, false).is_some_and(|rate| rate.app_limited));
        assert!(!sampler.on_sent(at, false, SendTotals::default()).app_limited);
    }

    /// One packet of 1448 bytes every 1.1584 ms (10 Mbit/s) through a path of 20 such intervals: every sample must be
    /// 863.3 packets per second, and none is above that.
    #[test]
    fn the_samples_of_a_steady_stream_are_its_rate() {
        let mut sampler = RateSampler::default();
        let time = |index: u64| Instant::ZERO + Span(index * 1_158_400);
        let mut sent_packets = std::collections::VecDeque::new();
        for index in 0..200 {
            let mut sample = PendingRateSample::default();
            if index >= 20 {
                let (sent, snapshot): (Instant, SendSnapshot) = sent_packets.pop_front().expect("sent 20 ms ago");
                sampler.count(1);
                sampler.on_delivered(&mut sample, index, sent, &snapshot);
                let delivery = sampler.finish(time(index), &sample, 1, Span::from_millis(20), false).expect("valid");
                let rate = f64::from(delivery.delivered) / delivery.interval.as_secs_f64();
                assert!(index < 40 || (rate - 863.26).abs() < 0.01, "{rate} at {index}");
                assert!(rate < 863.27);
            }
            sent_packets.push_back((
                time(index),
                sampler.on_sent(time(index), !sent_packets.is_empty(), SendTotals::default()),
            ));
        }
    }
}
