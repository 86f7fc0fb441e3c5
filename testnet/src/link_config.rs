//! One direction of a path.

use link::{PipeConfig, QueueConfig, QueueLimit};
use units::{Instant, Rate, RngStream, Span};

/// Configuration of one direction of a path.
#[derive(Clone, Copy, Debug)]
pub struct LinkConfig {
    /// Transmission rate; `None` for a link that is never the bottleneck.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Span,
    /// Uniform extra delay in `0..=reordering`, which reorders datagrams.
    pub reordering: Span,
    /// Fraction of datagrams that are lost.
    pub loss: f64,
    /// Fraction of datagrams that arrive twice.
    pub duplication: f64,
    /// Fraction of datagrams that arrive with a flipped bit.
    pub corruption: f64,
    /// The queue's limit, as time at the link's rate; `None` for no limit.
    pub queue: Option<Span>,
    /// Largest UDP payload that the link carries, bytes.
    pub mtu: u32,
    /// Overhead of the link per datagram, bytes.
    pub overhead: u32,
    /// Start and end of an outage, during which the link drops all datagrams.
    pub outage: Option<(Instant, Instant)>,
}

impl LinkConfig {
    /// A link without rate, delay or impairments.
    #[must_use]
    pub const fn ideal() -> Self {
        Self {
            rate: None,
            delay: Span::ZERO,
            reordering: Span::ZERO,
            loss: 0.0,
            duplication: 0.0,
            corruption: 0.0,
            queue: None,
            mtu: u32::MAX,
            overhead: 0,
            outage: None,
        }
    }

    /// An Internet path without impairments: 1500 bytes of UDP payload, a queue of 100 ms.
    #[must_use]
    pub fn clean(mbit: u64, delay_ms: u64) -> Self {
        Self {
            rate: Some(Rate::from_mbit(mbit)),
            delay: Span::from_millis(delay_ms),
            queue: Some(Span::from_millis(100)),
            mtu: 1500,
            overhead: 28,
            ..Self::ideal()
        }
    }

    /// This link with an outage from `start` to `end`.
    #[must_use]
    pub fn with_outage(self, start: Instant, end: Instant) -> Self {
        Self { outage: Some((start, end)), ..self }
    }

    /// A random Internet path.
    pub fn random(rng: &mut RngStream) -> Self {
        let outage = rng.chance(0.3).then(|| {
            let start = Instant::ZERO + Span::from_millis(rng.below(4000));
            (start, start + Span::from_millis(rng.below(3000)))
        });
        let mut share = |probability, max| if rng.chance(probability) { max * rng.unit() } else { 0.0 };
        let [loss, duplication, corruption] = [share(0.5, 0.1), share(0.4, 0.2), share(0.4, 0.02)];
        Self {
            rate: Some(Rate::from_mbit(1 + rng.below(200))),
            delay: Span::from_micros(50 + rng.below(150_000)),
            reordering: Span::from_micros(if rng.chance(0.5) { 0 } else { rng.below(30_000) }),
            loss,
            duplication,
            corruption,
            queue: Some(Span::from_millis(5 + rng.below(300))),
            mtu: if rng.chance(0.7) { 1500 } else { 1200 + rng.below(300) as u32 },
            overhead: 28,
            outage,
        }
    }

    /// The configuration of the pipe, which applies rate, queue and delay. [`Network`](crate::Network) applies the
    /// rest.
    pub(crate) fn pipe_config(&self) -> PipeConfig {
        let limit = self.queue.map_or(QueueLimit::Packets(u64::MAX), QueueLimit::Time);
        PipeConfig {
            rate: self.rate,
            delay: self.delay,
            overhead: self.overhead,
            queue: QueueConfig { limit, ..QueueConfig::default() },
            ..PipeConfig::default()
        }
    }

    pub(crate) fn is_down(&self, now: Instant) -> bool {
        self.outage.is_some_and(|(start, end)| (start..end).contains(&now))
    }
}

/// Up to `max` random paths, each with two directions.
pub fn random_paths(rng: &mut RngStream, max: u64) -> Vec<[LinkConfig; 2]> {
    (0..1 + rng.below(max)).map(|_| [LinkConfig::random(rng), LinkConfig::random(rng)]).collect()
}

/// Milliseconds after the start.
#[must_use]
pub fn ms(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}
