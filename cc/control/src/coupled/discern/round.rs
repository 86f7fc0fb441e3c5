//! What a path saw in a round trip: packets, losses, queueing delays, packets in flight.

use units::Instant;

/// Packets acknowledged or lost, and those lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) packets: f64,
    pub(super) lost: f64,
}

impl Counts {
    pub(super) fn add(&mut self, acked: f64, lost: f64) {
        self.packets += acked + lost;
        self.lost += lost;
    }

    /// So many of the lost packets were not lost.
    pub(super) fn forgive(&mut self, lost: f64) {
        self.lost = (self.lost - lost).max(0.0);
    }

    /// Part of the packets that was lost.
    pub(super) fn rate(&self) -> f64 {
        self.lost / self.packets.max(1.0)
    }
}

/// The least and the greatest of a round.
#[derive(Clone, Copy, Debug)]
struct Range {
    least: f64,
    most: f64,
}

impl Range {
    const EMPTY: Self = Self { least: f64::INFINITY, most: 0.0 };

    fn add(&mut self, value: f64) {
        *self = Self { least: self.least.min(value), most: self.most.max(value) };
    }
}

/// The present round, and what the next ones need of the earlier ones.
#[derive(Debug)]
pub(super) struct Round {
    start: Instant,
    pub(super) counts: Counts,
    queueing: Range,
    samples: u32,
    /// Packets in flight, in this round and the two before.
    in_flight: [Range; 3],
    /// The least queueing delay of the round before, seconds.
    pub(super) prior_queueing: f64,
    /// Mean delivery rate of rounds, packets a second.
    pub(super) rate: f64,
}

/// A round that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// Its least queueing delay, or that of the round before if it had no sample; seconds.
    pub(super) least_queueing: f64,
    /// Its greatest queueing delay, seconds.
    pub(super) most_queueing: f64,
}

impl Round {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            start: now,
            counts: Counts::default(),
            queueing: Range::EMPTY,
            samples: 0,
            in_flight: [Range::EMPTY; 3],
            prior_queueing: 0.0,
            rate: 0.0,
        }
    }

    pub(super) fn add_queueing(&mut self, queueing: f64) {
        self.queueing.add(queueing);
        self.samples += 1;
    }

    pub(super) fn add_in_flight(&mut self, packets: f64) {
        self.in_flight[0].add(packets);
    }

    /// Whether every one of at least eight samples of this round had so much queueing delay.
    pub(super) fn is_queue(&self, queueing: f64) -> bool {
        self.samples >= 8 && self.queueing.least >= queueing
    }

    /// Ends the round if it has lasted so many seconds.
    pub(super) fn end(&mut self, seconds: f64, now: Instant) -> Option<Ended> {
        let elapsed = now.since(self.start).as_secs_f64();
        if elapsed < seconds || elapsed <= 0.0 {
            return None;
        }
        let rate = (self.counts.packets - self.counts.lost) / elapsed;
        self.rate = if self.rate == 0.0 { rate } else { self.rate + (rate - self.rate) / 4.0 };
        let least_queueing = if self.samples > 0 { self.queueing.least } else { self.prior_queueing };
        Some(Ended { least_queueing, most_queueing: self.queueing.most })
    }

    /// Begins the next round.
    pub(super) fn begin(&mut self, ended: Ended, now: Instant) {
        let [first, second, _] = self.in_flight;
        *self = Self {
            in_flight: [Range::EMPTY, first, second],
            prior_queueing: ended.least_queueing,
            rate: self.rate,
            ..Self::new(now)
        };
    }

    /// Whether the packets in flight have not fallen below a part of their maximum, or of the window, in the last rounds.
    pub(super) fn is_filled(&self, part: f64, cwnd: f64) -> bool {
        let most = self.in_flight.iter().map(|range| range.most).fold(0.0, f64::max);
        self.in_flight[..2].iter().all(|range| range.least >= part * most.min(cwnd))
    }
}
