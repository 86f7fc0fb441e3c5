//! What a path saw in its latest round trips: packets, losses, queueing delays, packets in flight.

use units::{Instant, Span};

/// Rounds that are remembered, the present one included.
pub(super) const MEMORY: usize = 9;
/// Rounds that show whether the window is in use, and what queue it makes.
const RECENT: usize = 3;
/// For how long packets in flight show what part of the window is used.
const USE: Span = Span::from_secs(1);
/// Samples of a round that tell of a queue.
const MIN_SAMPLES: f64 = 8.0;

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

    /// These and others.
    pub(super) fn plus(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, lost: self.lost + other.lost }
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

/// The samples of a quantity in a round.
#[derive(Clone, Copy, Debug)]
struct Samples {
    least: f64,
    most: f64,
    sum: f64,
    count: f64,
}

impl Samples {
    const NONE: Self = Self { least: f64::INFINITY, most: 0.0, sum: 0.0, count: 0.0 };

    fn add(&mut self, value: f64) {
        *self = Self {
            least: self.least.min(value),
            most: self.most.max(value),
            sum: self.sum + value,
            count: self.count + 1.0,
        };
    }
}

/// A round.
#[derive(Clone, Copy, Debug)]
struct Seen {
    in_flight: Samples,
    queueing: Samples,
}

impl Seen {
    const NOTHING: Self = Self { in_flight: Samples::NONE, queueing: Samples::NONE };
}

/// The mean of some rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Packets in flight.
    pub(super) in_flight: f64,
    /// Queueing delay, seconds.
    pub(super) queueing: f64,
}

/// The present round, and what is remembered of earlier ones.
#[derive(Debug)]
pub(super) struct Round {
    start: Instant,
    pub(super) counts: Counts,
    /// The present round first.
    seen: [Seen; MEMORY],
    /// Least queueing delay of the latest round with samples that has ended, seconds.
    pub(super) queueing: f64,
    /// Most packets in flight, in the present second and the one before.
    used: [f64; 2],
    used_since: Instant,
    /// Mean delivery rate of rounds, packets a second.
    pub(super) rate: f64,
    /// The delivery rates of the latest two.
    pub(super) latest_rates: [f64; 2],
}

impl Round {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            start: now,
            counts: Counts::default(),
            seen: [Seen::NOTHING; MEMORY],
            queueing: 0.0,
            used: [0.0; 2],
            used_since: now,
            rate: 0.0,
            latest_rates: [0.0; 2],
        }
    }

    pub(super) fn add_queueing(&mut self, queueing: f64) {
        self.seen[0].queueing.add(queueing);
    }

    pub(super) fn add_in_flight(&mut self, packets: f64, now: Instant) {
        self.seen[0].in_flight.add(packets);
        if now.since(self.used_since) > USE {
            (self.used, self.used_since) = ([packets, self.used[0]], now);
        }
        self.used[0] = self.used[0].max(packets);
    }

    /// Most packets in flight of the last one or two seconds.
    pub(super) fn used(&self) -> f64 {
        self.used[0].max(self.used[1])
    }

    /// Whether every sample of this round so far had so much queueing delay.
    pub(super) fn is_queue(&self, queueing: f64) -> bool {
        let samples = self.seen[0].queueing;
        samples.count >= MIN_SAMPLES && samples.least >= queueing
    }

    /// Whether the round has lasted so many seconds; then its rate is known.
    pub(super) fn ends(&mut self, seconds: f64, now: Instant) -> bool {
        let elapsed = now.since(self.start).as_secs_f64();
        if elapsed < seconds || elapsed <= 0.0 {
            return false;
        }
        let rate = (self.counts.packets - self.counts.lost) / elapsed;
        self.latest_rates = [rate, self.latest_rates[0]];
        self.rate = if self.rate == 0.0 { rate } else { self.rate + (rate - self.rate) / 4.0 };
        if self.seen[0].queueing.count > 0.0 {
            self.queueing = self.seen[0].queueing.least;
        }
        true
    }

    /// Begins the next round.
    pub(super) fn begin(&mut self, now: Instant) {
        self.seen.rotate_right(1);
        self.seen[0] = Seen::NOTHING;
        (self.start, self.counts) = (now, Counts::default());
    }

    /// The greatest queueing delay of the present round, seconds.
    pub(super) fn most_queueing(&self) -> f64 {
        self.seen[0].queueing.most
    }

    /// Most packets in flight in the latest rounds.
    pub(super) fn most_in_flight(&self) -> f64 {
        self.most_in_flight_of(RECENT)
    }

    fn most_in_flight_of(&self, rounds: usize) -> f64 {
        self.seen[..rounds].iter().map(|seen| seen.in_flight.most).fold(0.0, f64::max)
    }

    /// The mean of the latest rounds.
    pub(super) fn load(&self) -> Load {
        let mean = |samples: fn(&Seen) -> Samples| {
            let [sum, count] = self.seen[..RECENT - 1]
                .iter()
                .map(samples)
                .fold([0.0; 2], |[sum, count], samples| [sum + samples.sum, count + samples.count]);
            sum / f64::max(count, 1.0)
        };
        Load { in_flight: mean(|seen| seen.in_flight), queueing: mean(|seen| seen.queueing) }
    }

    /// Whether the packets in flight have not fallen below a part of their maximum, or of the window, in the latest rounds.
    pub(super) fn is_filled(&self, part: f64, cwnd: f64) -> bool {
        let most = self.most_in_flight().min(cwnd);
        self.seen[..RECENT - 1].iter().all(|seen| seen.in_flight.least >= part * most)
    }

    /// The least and the most of the least queueing delays of the eight latest rounds, seconds; infinite where one had no sample.
    pub(super) fn range_of_queueing(&self) -> [f64; 2] {
        let least = self.seen[..MEMORY - 1].iter().map(|seen| seen.queueing.least);
        [least.clone().fold(f64::INFINITY, f64::min), least.fold(0.0, f64::max)]
    }

    /// Whether a queue of more than this delay has fallen by half and stayed so, although the packets in flight did not fall: the
    /// later half of the rounds remembered is below half of every earlier one.
    pub(super) fn queue_has_halved(&self, queueing: f64) -> bool {
        let (later, earlier) = self.seen[..MEMORY - 1].split_at(MEMORY / 2);
        let later_most = later.iter().map(|seen| seen.queueing.least).fold(0.0, f64::max);
        let earlier_least = earlier.iter().map(|seen| seen.queueing.least).fold(f64::INFINITY, f64::min);
        let has_samples = self.seen[..MEMORY - 1].iter().all(|seen| seen.queueing.count > 0.0);
        let most = self.most_in_flight_of(MEMORY);
        let is_filled = later.iter().all(|seen| seen.in_flight.least >= 0.8 * most);
        has_samples && is_filled && earlier_least > queueing && later_most < 0.5 * earlier_least
    }
}
