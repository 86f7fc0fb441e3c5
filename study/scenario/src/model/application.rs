//! The applications on top of a TCP or MPTCP connection.

use serde::{Deserialize, Serialize};
use units::{Rate, RngStream, Span};

/// The application of a TCP flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Application {
    /// Always has data to send.
    Greedy,
    /// Writes at a constant rate; data that cannot be sent yet waits.
    Steady {
        /// Rate of the payload.
        rate: Rate,
        /// Bytes of one write; `None`: a segment.
        write: Option<u64>,
    },
    /// Responds to requests, one at a time.
    Requests(Requests),
    /// Sends a video.
    Video(Box<Video>),
}

/// A video and its player.
#[derive(Clone, Debug, PartialEq)]
pub struct Video {
    /// The mean rate, or the ascending rates of a bitrate ladder.
    pub ladder: Vec<Rate>,
    /// Frames per second.
    pub fps: u32,
    /// Frames of a group of pictures, which has one rate.
    pub gop: u32,
    /// The size of a group's first frame, as a multiple of the others'.
    pub intra: f64,
    /// Coefficient of variation of the frames' sizes around their mean, lognormal.
    pub variation: f64,
    /// Coefficient of variation of the groups' sizes around their mean, lognormal.
    pub group_variation: f64,
    /// The way in which it is sent and played.
    pub playback: Playback,
}

/// The way in which a video is sent and played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Playback {
    /// Written when captured; a frame that has not arrived at its playback time is skipped.
    Live {
        /// From the capture of a frame to its playback.
        latency: Span,
    },
    /// Written ahead; a frame that has not arrived at its playback time stalls the player.
    Stored {
        /// Playback time that the player buffers before it starts.
        startup: Span,
        /// Playback time that it buffers before it continues after a stall.
        resume: Span,
        /// The maximum playback time that is written ahead of the player; at least the greater of the two and a group.
        ahead: Span,
    },
}

/// A client that sends a request, receives the response, pauses, and sends the next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// Bytes of a response.
    pub size: Distribution,
    /// Time between a response and the next request, nanoseconds.
    pub think: Distribution,
    /// Each request opens a connection of its own.
    pub new_connections: bool,
}

/// The distribution of a random quantity, drawn each time it is used.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Distribution {
    /// A constant.
    Fixed(f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Pareto: P(X > x) = (min / x)^shape from `min` on.
    Pareto {
        /// The minimum value.
        min: f64,
        /// The tail's exponent; more than 1, so that there is a mean.
        shape: f64,
    },
}

impl Requests {
    /// Payload of a request, bytes: one packet, as most requests are.
    pub const REQUEST_BYTES: u32 = 400;

    /// The random stream of the requests of flow `name`, from which each takes the size of its response, then its
    /// pause.
    #[must_use]
    pub fn random_stream(seed: u64, name: &str) -> RngStream {
        RngStream::named(seed, &format!("flow {name} requests"))
    }

    /// Bytes of the next response, at least one.
    pub fn next_size(&self, rng: &mut RngStream) -> u64 {
        (self.size.next(rng) as u64).max(1)
    }

    /// The pause after the response.
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
        let mut values: Vec<f64> = (0..count).map(|_| quantity.next(&mut rng)).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    #[test]
    fn draws_have_the_quantiles_of_their_distributions() {
        let exponential = draws(Distribution::Exponential(100.0), 100_001);
        let pareto = draws(Distribution::Pareto { min: 10.0, shape: 1.5 }, 100_001);
        for p in [0.1_f64, 0.5, 0.9, 0.99] {
            let index = (p * 100_000.0) as usize;
            let (e, x) = (-libm::log(1.0 - p) * 100.0, 10.0 / libm::pow(1.0 - p, 1.0 / 1.5));
            // The standard error of a quantile is sqrt(p (1 - p) / n) over the density there: below 1.3 % of each of
            // these.
            assert!((exponential[index] / e - 1.0).abs() < 0.04, "{p}: {} for {e}", exponential[index]);
            assert!((pareto[index] / x - 1.0).abs() < 0.04, "{p}: {} for {x}", pareto[index]);
        }
        assert_eq!(draws(Distribution::Fixed(5.0), 3), [5.0; 3]);
    }
}
