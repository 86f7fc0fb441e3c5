//! One direction of a path.

use units::{Instant, Rate, Span, Stream};

/// What happens to datagrams that are sent one way on a path.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// At what rate they leave.
    pub rate: Rate,
    /// How long they are on their way.
    pub delay: Span,
    /// Up to so much more, in any order.
    pub jitter: Span,
    /// The share that is lost.
    pub loss: f64,
    /// The share that comes twice.
    pub duplication: f64,
    /// The share that comes with a flipped bit.
    pub corruption: f64,
    /// The queue holds so much time.
    pub queue: Span,
    /// UDP payload that passes, bytes.
    pub largest: u32,
    /// From when to when nothing passes.
    pub down: Option<(Instant, Instant)>,
}

impl Wire {
    /// A wire without faults.
    #[must_use]
    pub fn plain(mbit: u64, delay_ms: u64) -> Self {
        Self {
            rate: Rate::from_mbit(mbit),
            delay: Span::from_millis(delay_ms),
            jitter: Span::ZERO,
            loss: 0.0,
            duplication: 0.0,
            corruption: 0.0,
            queue: Span::from_millis(100),
            largest: 1500,
            down: None,
        }
    }

    pub(crate) fn draw(random: &mut Stream) -> Self {
        let down = random.chance(0.3).then(|| {
            let from = Instant::ZERO + Span::from_millis(random.below(4000));
            (from, from + Span::from_millis(random.below(3000)))
        });
        let mut sometimes = |chance, most| if random.chance(chance) { most * random.unit() } else { 0.0 };
        let [loss, duplication, corruption] = [sometimes(0.5, 0.1), sometimes(0.4, 0.2), sometimes(0.4, 0.02)];
        Self {
            rate: Rate::from_mbit(1 + random.below(200)),
            delay: Span::from_micros(50 + random.below(150_000)),
            jitter: Span::from_micros(if random.chance(0.5) { 0 } else { random.below(30_000) }),
            loss,
            duplication,
            corruption,
            queue: Span::from_millis(5 + random.below(300)),
            largest: if random.chance(0.7) { 1500 } else { 1200 + random.below(300) as u32 },
            down,
        }
    }

    pub(crate) fn is_down(&self, now: Instant) -> bool {
        self.down.is_some_and(|(from, to)| (from..to).contains(&now))
    }
}
