//! Links that vary by themselves: handovers of a low-orbit satellite, rates that follow a random walk, and traces that
//! begin anywhere.
//!
//! Their changes during a run are drawn from its seed and become events, so that every driver carries out the same changes.

use super::{Change, Directions, Experiment, Link};
use std::borrow::Cow;
use std::f64::consts::TAU;
use units::{Instant, Rate, RngStream, Span};

/// Handovers to another satellite: the link is down for a short time, and then has another delay.
///
/// Starlink assigns satellites again every 15 s, and its latency and loss change at these times (Mohan et al., "A
/// Multifaceted Look at Starlink Performance", WWW 2024; Tanveer et al., "Making Sense of Constellations", CoNEXT companion
/// 2023).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// Time between two handovers, and until the first. Above zero.
    pub period: Span,
    /// Time for which the link is down; less than `period`.
    pub outage: Span,
    /// The propagation delay after a handover is uniform between these, and the same in both directions.
    pub delay: Option<(Span, Span)>,
}

/// A rate that follows Brownian motion between two bounds that reflect it, as Sprout models a cellular link (Winstein,
/// Sivaraman, Balakrishnan, NSDI 2013, section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateWalk {
    /// Minimum rate.
    pub min: Rate,
    /// Maximum rate; more than `min`.
    pub max: Rate,
    /// Standard deviation of the rate's change in one second; in another time it is this times the time's square root.
    pub deviation: Rate,
    /// Time between two changes. Above zero.
    pub interval: Span,
}

impl Experiment {
    /// The experiment with `seed`: the random changes of its links are among its events.
    #[must_use]
    pub fn with_seed(&self, seed: u64) -> Cow<'_, Self> {
        let varies = |link: &Link| {
            let has_walk = link.rate_walks.iter().any(Option::is_some);
            link.handover.is_some() || has_walk || link.random_trace_offset.contains(&true)
        };
        if !self.links.iter().any(varies) {
            return Cow::Borrowed(self);
        }
        let mut experiment = self.clone();
        let end = Instant::ZERO + self.duration;
        for (index, link) in self.links.iter().enumerate() {
            experiment.events.extend(link.variations(seed, end).map(|change| Change { link: index, ..change }));
        }
        experiment.links.iter_mut().for_each(|link| link.draw_trace_offset(seed));
        experiment.events.sort_by_key(|change| change.at);
        Cow::Owned(experiment)
    }
}

impl Link {
    /// Draws where in its traces the link begins: uniform over the period of the first that begins anywhere.
    fn draw_trace_offset(&mut self, seed: u64) {
        let random = self.random_trace_offset;
        let pipes = [&mut self.forward, &mut self.reverse].into_iter().zip(random).filter(|(_, random)| *random);
        let mut rng = RngStream::named(seed, &format!("link {} trace offset", self.name));
        let mut offset = None;
        for (pipe, _) in pipes {
            let period_ms = pipe.trace.as_ref().map_or(1, |trace| trace.period_ms);
            pipe.trace_offset = *offset.get_or_insert_with(|| Span::from_millis(rng.below(period_ms)));
        }
    }

    /// The changes before `end` that the link makes with `seed`, by kind.
    fn variations(&self, seed: u64, end: Instant) -> impl Iterator<Item = Change> {
        let stream = |what: &str| RngStream::named(seed, &format!("link {} {what}", self.name));
        let handovers = self.handover.map(|handover| handover.changes(stream("handover"), end));
        let [forward, reverse] = self.rate_walks;
        let walk = |walk: Option<RateWalk>, directions, rate: Option<Rate>, name: &str| {
            let (walk, rate) = (walk?, rate?);
            Some(walk.rates(rate, stream(name), end).map(move |(at, rate)| Change {
                at,
                directions,
                rate: Some(rate),
                ..Change::default()
            }))
        };
        let forward = walk(forward, Directions::Forward, self.forward.rate, "forward rate");
        let reverse = walk(reverse, Directions::Reverse, self.reverse.rate, "reverse rate");
        handovers.into_iter().flatten().chain(forward.into_iter().flatten()).chain(reverse.into_iter().flatten())
    }
}

impl Handover {
    /// The changes before `end`.
    fn changes(self, mut rng: RngStream, end: Instant) -> impl Iterator<Item = Change> {
        let starts = (1..).map(move |count| Instant::ZERO + self.period * count).take_while(move |at| *at < end);
        starts.flat_map(move |at| {
            let delay = self.delay.map(|(min, max)| min + Span(rng.below(max.0 - min.0 + 1)));
            let up = (self.outage > Span::ZERO).then_some(true);
            let down = up.map(|_| Change { at, up: Some(false), ..Change::default() });
            down.into_iter().chain([Change { at: at + self.outage, up, delay, ..Change::default() }])
        })
    }
}

impl RateWalk {
    /// The rates after `first`, each with its instant, until `end`.
    fn rates(self, first: Rate, mut rng: RngStream, end: Instant) -> impl Iterator<Item = (Instant, Rate)> {
        let (min, range) = (self.min.0 as f64, (self.max.0 - self.min.0) as f64);
        let step_deviation = self.deviation.0 as f64 * libm::sqrt(self.interval.as_secs_f64());
        let mut above_min = first.0 as f64 - min;
        let instants = (1..).map(move |count| Instant::ZERO + self.interval * count).take_while(move |at| *at < end);
        instants.map(move |at| {
            // Reflection at both bounds is the fold of a period of twice the range.
            let unfolded = libm::fabs(above_min + step_deviation * standard_normal(&mut rng)) % (2.0 * range);
            above_min = if unfolded > range { 2.0 * range - unfolded } else { unfolded };
            (at, Rate((min + above_min) as u64))
        })
    }
}

/// A draw of the standard normal distribution (Box and Muller 1958).
#[must_use]
pub fn standard_normal(rng: &mut RngStream) -> f64 {
    libm::sqrt(-2.0 * libm::log(1.0 - rng.unit())) * libm::cos(TAU * rng.unit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(deviation_mbit: u64, interval: Span) -> RateWalk {
        let deviation = Rate::from_mbit(deviation_mbit);
        RateWalk { min: Rate::from_mbit(10), max: Rate::from_mbit(50), deviation, interval }
    }

    fn mean_and_variance(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (mean, values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / values.len() as f64)
    }

    /// Far from the bounds a step is normal with variance deviation^2 x interval; that of the sample variance is 2 / n
    /// of its square.
    #[test]
    fn steps_have_the_variance_of_brownian_motion() {
        let wide = RateWalk { min: Rate(1), max: Rate::from_mbit(2_000_000), ..walk(2, Span::from_millis(250)) };
        let first = Rate::from_mbit(1_000_000);
        let end = Instant::ZERO + Span::from_secs(25_000);
        let rates = wide.rates(first, RngStream::named(1, "walk"), end).map(|(_, rate)| rate.as_mbps());
        let rates: Vec<f64> = std::iter::once(first.as_mbps()).chain(rates).collect();
        let steps: Vec<f64> = rates.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (n, (mean, variance)) = (steps.len() as f64, mean_and_variance(&steps));
        assert_eq!(steps.len(), 99_999);
        assert!(mean.abs() < 5.0 / n.sqrt(), "mean {mean}");
        assert!((variance - 1.0).abs() < 5.0 * (2.0 / n).sqrt(), "variance {variance}, not 2^2 x 0.25");
    }

    /// Between reflecting bounds the rate is uniform in the long run. With steps of five times the range, each draw is,
    /// to within exp(-2 (pi 5 / 2)^2), and independent of the one before.
    #[test]
    fn rates_are_uniform_between_the_bounds() {
        let end = Instant::ZERO + Span::from_secs(100_000);
        let rates = walk(200, Span::from_secs(1)).rates(Rate::from_mbit(30), RngStream::named(2, "walk"), end);
        let rates: Vec<f64> = rates.map(|(_, rate)| rate.as_mbps()).collect();
        assert!(rates.iter().all(|rate| (10.0..=50.0).contains(rate)));
        let (n, (mean, variance)) = (rates.len() as f64, mean_and_variance(&rates));
        let range_squared: f64 = 40.0 * 40.0;
        let uniform = range_squared / 12.0;
        assert!((mean - 30.0).abs() < 5.0 * (uniform / n).sqrt(), "mean {mean}");
        // The variance of the square of a uniform deviation is range^4 / 180.
        assert!(
            (variance - uniform).abs() < 5.0 * (range_squared * range_squared / 180.0 / n).sqrt(),
            "variance {variance}"
        );
    }

    #[test]
    fn a_handover_takes_the_link_down_and_gives_it_a_delay_that_is_uniform() {
        let delay = (Span::from_millis(20), Span::from_millis(40));
        let handover = Handover { period: Span::from_secs(15), outage: Span::from_millis(80), delay: Some(delay) };
        let end = Instant::ZERO + Span::from_secs(15 * 10_000 + 1);
        let changes: Vec<Change> = handover.changes(RngStream::named(3, "handover"), end).collect();
        assert_eq!(changes.len(), 20_000);
        let mut delays = Vec::new();
        for (count, pair) in (1..).zip(changes.chunks(2)) {
            let at = Instant::ZERO + Span::from_secs(15 * count);
            assert_eq!(pair[0], Change { at, up: Some(false), ..Change::default() });
            assert_eq!((pair[1].at, pair[1].up), (at + Span::from_millis(80), Some(true)));
            delays.push(pair[1].delay.unwrap().as_secs_f64() * 1e3);
        }
        assert!(delays.iter().all(|delay| (20.0..=40.0).contains(delay)));
        let error = (20.0 * 20.0 / 12.0 / delays.len() as f64).sqrt();
        assert!((mean_and_variance(&delays).0 - 30.0).abs() < 5.0 * error);
        let smooth = Handover { outage: Span::ZERO, ..handover }.changes(RngStream::named(3, "handover"), end);
        assert!(smooth.eq(changes.iter().skip(1).step_by(2).map(|change| {
            let at = Instant(change.at.0 - 80_000_000);
            Change { at, up: None, ..change.clone() }
        })));
    }
}
