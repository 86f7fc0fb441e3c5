//! What runs on top of a TCP or MPTCP connection.

use serde::{Deserialize, Serialize};
use units::{Rate, RngStream, Span};

/// What the application on top of a TCP flow does.
#[derive(Clone, Debug, PartialEq)]
pub enum Application {
    /// It always has data.
    Greedy,
    /// It writes at a constant rate, and what it cannot send yet waits.
    Steady {
        /// Rate of the payload.
        rate: Rate,
        /// Bytes of one write; `None`: a segment.
        write: Option<u64>,
    },
    /// It answers requests, one at a time.
    Requests(Requests),
    /// It sends a video.
    Video(Box<Video>),
}

/// A video and its player.
#[derive(Clone, Debug, PartialEq)]
pub struct Video {
    /// Its mean rate, or several, ascending, that it adapts between.
    pub ladder: Vec<Rate>,
    /// Frames a second.
    pub fps: u32,
    /// Frames of a group of pictures, which has one rate.
    pub gop: u32,
    /// How many times as large as the others a group's first frame is.
    pub intra: f64,
    /// Coefficient of variation of the frames' sizes around their mean, lognormal.
    pub variation: f64,
    /// Coefficient of variation of the groups' sizes around their mean, lognormal.
    pub group_variation: f64,
    /// How it is sent and played.
    pub playback: Playback,
}

/// How a video is sent and played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Playback {
    /// Written when captured; a frame that is not there at its turn is skipped.
    Live {
        /// From a frame's capture to its turn.
        latency: Span,
    },
    /// Written ahead; a frame that is not there at its turn stalls the player.
    Stored {
        /// Media that the player has before it begins.
        startup: Span,
        /// Media that it has before it goes on after a stall.
        resume: Span,
        /// Most media that are written ahead of what is played; at least the greater of the two and a group.
        ahead: Span,
    },
}

/// A client that asks, receives the answer, thinks, and asks again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// Bytes of an answer.
    pub size: Distribution,
    /// Time between an answer and the next request, nanoseconds.
    pub think: Distribution,
    /// Each request opens a connection of its own.
    pub new_connections: bool,
}

/// How a random quantity is distributed; it is drawn anew each time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Distribution {
    /// Always this.
    Fixed(f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Pareto: P(X > x) = (min / x)^shape from `min` on.
    Pareto {
        /// The least value.
        min: f64,
        /// The tail's exponent; more than 1, so that there is a mean.
        shape: f64,
    },
}

impl Requests {
    /// Payload of a request, bytes: one packet, as most requests are.
    pub const REQUEST_BYTES: u32 = 400;

    /// The random stream of the requests of flow `name`, from which each takes the size of its answer, then its pause.
    #[must_use]
    pub fn random_stream(seed: u64, name: &str) -> RngStream {
        RngStream::named(seed, &format!("flow {name} requests"))
    }

    /// Bytes of the next answer, at least one.
    pub fn next_size(&self, rng: &mut RngStream) -> u64 {
        (self.size.next(rng) as u64).max(1)
    }

    /// The pause after it.
    pub fn next_think(&self, rng: &mut RngStream) -> Span {
        Span::from_nanos(self.think.next(rng) as u64)
    }
}

impl Distribution {
    /// By inversion of the distribution function.
    fn next(&self, rng: &mut RngStream) -> f64 {
        match *self {
            Self::Fixed(value) => value,
            Self::Exponential(mean) => -libm::log(1.0 - rng.unit()) * mean,
            Self::Pareto { min, shape } => min / libm::pow(1.0 - rng.unit(), 1.0 / shape),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(quantity: Distribution, count: usize) -> Vec<f64> {
        let mut rng = RngStream::named(1, "draws");
        let mut all: Vec<f64> = (0..count).map(|_| quantity.next(&mut rng)).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn draws_have_the_quantiles_of_their_distributions() {
        let exponential = draws(Distribution::Exponential(100.0), 100_001);
        let pareto = draws(Distribution::Pareto { min: 10.0, shape: 1.5 }, 100_001);
        for p in [0.1_f64, 0.5, 0.9, 0.99] {
            let at = (p * 100_000.0) as usize;
            let (e, x) = (-libm::log(1.0 - p) * 100.0, 10.0 / libm::pow(1.0 - p, 1.0 / 1.5));
            // The standard error of a quantile is sqrt(p (1 - p) / n) over the density there: below 1.3 % of each of these.
            assert!((exponential[at] / e - 1.0).abs() < 0.04, "{p}: {} for {e}", exponential[at]);
            assert!((pareto[at] / x - 1.0).abs() < 0.04, "{p}: {} for {x}", pareto[at]);
        }
        assert_eq!(draws(Distribution::Fixed(5.0), 3), [5.0; 3]);
    }
}
