//! Delivery-rate samples. draft-cheng-iccrg-delivery-rate-estimation; Linux 6.1 `tcp_rate.c`.

use control::{Delivery, Sent};
use units::{Instant, Span};

/// What a packet remembers of the moment it was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Packets delivered by then.
    pub delivered: u64,
    /// When the latest of them was delivered.
    pub delivered_at: Instant,
    /// When the packet was sent that had most recently been delivered.
    pub first_sent: Instant,
    /// What was in flight then, and what had been lost and marked by then.
    pub totals: Totals,
    /// The sender had too little to send.
    pub app_limited: bool,
}

/// Packets in flight now, and marked lost and CE-marked ever. The latter two may wrap: only differences count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// In flight.
    pub in_flight: u32,
    /// Marked lost so far.
    pub lost: u32,
    /// Reported as CE-marked so far.
    pub marked: u32,
}

impl Snapshot {
    /// What is known of the sending, and of what came `since`.
    #[must_use]
    pub fn sending(&self, since: Totals) -> Sent {
        Sent {
            in_flight: self.totals.in_flight,
            lost: since.lost.wrapping_sub(self.totals.lost),
            marked: since.marked.wrapping_sub(self.totals.marked),
            app_limited: self.app_limited,
        }
    }
}

/// What one acknowledgement gathers for its sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    newest: Option<(Instant, u64)>,
    prior: Snapshot,
    send_interval: Span,
}

impl Sample {
    /// `delivered` when the newest packet of this acknowledgement was sent; zero if nothing was delivered.
    #[must_use]
    pub fn prior_delivered(&self) -> u64 {
        self.prior.delivered
    }

    /// The newest packet's snapshot; `None` if nothing was delivered.
    #[must_use]
    pub fn newest(&self) -> Option<&Snapshot> {
        self.newest.map(|_| &self.prior)
    }
}

/// The connection's state.
#[derive(Clone, Debug, Default)]
pub struct RateSampler {
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    app_limited_until: u64,
}

impl RateSampler {
    /// Packets ever delivered.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Counts packets as delivered.
    pub fn count(&mut self, packets: u32) {
        self.delivered += u64::from(packets);
    }

    /// A packet leaves; `outstanding` is false if nothing was before it, `totals` counts it in.
    pub fn on_sent(&mut self, now: Instant, outstanding: bool, totals: Totals) -> Snapshot {
        if !outstanding {
            self.first_sent = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            totals,
            app_limited: self.app_limited_until != 0,
        }
    }

    /// A packet sent at `sent` was delivered: the newest one of an acknowledgement makes the sample.
    pub fn on_delivered(&mut self, sample: &mut Sample, seq: u64, sent: Instant, snapshot: &Snapshot) {
        if sample.newest.is_none_or(|newest| (sent, seq) > newest) {
            sample.newest = Some((sent, seq));
            sample.prior = *snapshot;
            sample.send_interval = sent.since(snapshot.first_sent);
            self.first_sent = sent;
        }
    }

    /// Ends an acknowledgement that newly delivered `acked` packets.
    pub fn finish(
        &mut self,
        now: Instant,
        sample: &Sample,
        acked: u32,
        min_rtt: Span,
        delayed: bool,
    ) -> Option<Delivery> {
        if self.app_limited_until != 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if acked > 0 {
            self.delivered_at = now;
        }
        sample.newest?;
        let interval = sample.send_interval.max(now.since(sample.prior.delivered_at));
        // Shorter than any round trip: an artefact (a retransmission acked for its original, for example).
        if min_rtt != Span::MAX && interval < min_rtt || interval == Span::ZERO {
            return None;
        }
        Some(Delivery {
            packets: (self.delivered - sample.prior.delivered) as u32,
            interval,
            prior_delivered: sample.prior.delivered,
            app_limited: sample.prior.app_limited,
            ack_delayed: delayed,
        })
    }

    /// The application has nothing to send and the window has room: samples are marked until what is in flight is delivered.
    pub fn mark_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = (self.delivered + u64::from(in_flight)).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One packet of 1448 bytes every 1.1584 ms (10 Mbit/s) through a path of 20 such intervals: every sample must read
    /// 863.3 packets a second, none more.
    #[test]
    fn a_steady_stream_reads_its_rate() {
        let mut sampler = RateSampler::default();
        let ms = |n: u64| Instant::ZERO + Span(n * 1_158_400);
        let mut sent = std::collections::VecDeque::new();
        for t in 0..200 {
            let mut sample = Sample::default();
            if t >= 20 {
                let (at, snapshot): (Instant, Snapshot) = sent.pop_front().expect("sent 20 ms ago");
                sampler.count(1);
                sampler.on_delivered(&mut sample, t, at, &snapshot);
                let delivery = sampler.finish(ms(t), &sample, 1, Span::from_millis(20), false).expect("valid");
                let rate = f64::from(delivery.packets) / delivery.interval.as_secs_f64();
                assert!(t < 40 || (rate - 863.26).abs() < 0.01, "{rate} at {t}");
                assert!(rate < 863.27);
            }
            sent.push_back((ms(t), sampler.on_sent(ms(t), !sent.is_empty(), Totals::default())));
        }
    }
}
