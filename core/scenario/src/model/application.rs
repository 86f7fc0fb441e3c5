//! What runs on top of a TCP or MPTCP connection.

use units::{Rate, Span};

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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Requests {
    /// Bytes of an answer.
    pub size: Draw,
    /// Time between an answer and the next request, nanoseconds.
    pub think: Draw,
    /// Each request opens a connection of its own.
    pub new_connections: bool,
}

/// A quantity that is drawn anew each time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// Always this.
    Fixed(f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Pareto: P(X > x) = (least / x)^shape from `least` on.
    Pareto {
        /// The least value.
        least: f64,
        /// The tail's exponent; more than 1, so that there is a mean.
        shape: f64,
    },
}
