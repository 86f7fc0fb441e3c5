//! Careful Resume of a path that comes up again: after a round trip it sends at half of the window that it had.
//!
//! - *Reconnaissance*: slow start, until the initial window is acknowledged while the window limits the sender, and without
//!   congestion. A base RTT outside (0.5, 10] times the earlier one is another path's, and nothing is resumed.
//! - *Unvalidated*: half of the earlier window, paced over a round trip. It ends when that window is in flight, or its first
//!   packet is acknowledged, or a round trip has passed. The window is then what is in flight. If that is no more than what the
//!   path has proved to carry, the application had no more to send, and all goes on from there.
//! - *Validating*: slow start, until these packets are acknowledged.
//! - *Safe Retreat*, when the window is reduced in these two phases: half of what the path has proved to carry, without growth
//!   until these packets are acknowledged or lost.
//!
//! Source: RFC 9959, as in [`careful_resume`](crate::common::careful_resume). Deviations: the window and the RTT are those of
//! the same path of this connection, which may have moved: such a path is distinguished from others by its RTT only. What
//! counts as congestion is what reduces the window, so that random loss does not end a resumption.

use super::window::{MAX_IDLE, Window};
use crate::AckSample;
use units::{Instant, Span};

/// A base RTT within these multiples of the earlier one is the same path's (RFC 9959).
const SAME_PATH: [f64; 2] = [0.5, 10.0];

/// What is known of the path from before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    /// Packets that were in flight.
    pub(super) cwnd: f64,
    /// The base RTT, seconds.
    pub(super) base: f64,
    /// When both were last measured.
    pub(super) at: Instant,
}

/// The phases. Numbers of packets are those of `snd_una` and `snd_nxt`.
#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    #[default]
    Normal,
    Reconnaissance {
        saved: Saved,
        acked: f64,
    },
    Unvalidated {
        pipe: Pipe,
        first: u64,
        until: Instant,
    },
    Validating {
        pipe: Pipe,
        end: u64,
    },
    SafeRetreat {
        end: u64,
    },
}

/// What the path has carried (RFC 9959: `PipeSize`), packets.
#[derive(Clone, Copy, Debug)]
struct Pipe {
    /// In flight when the window was raised.
    in_flight: f64,
    /// Acknowledged since.
    acked: f64,
}

impl Pipe {
    fn with(self, sample: &AckSample) -> Self {
        Self { acked: self.acked + f64::from(sample.acked), ..self }
    }

    fn size(self) -> f64 {
        self.in_flight.max(self.acked)
    }
}

/// Where a path is in resuming.
#[derive(Debug, Default)]
pub(super) struct Resume(Phase);

impl Resume {
    /// A path comes up of which this is known.
    pub(super) fn new(saved: Option<Saved>, now: Instant) -> Self {
        let saved = saved.filter(|saved| now.since(saved.at) < MAX_IDLE);
        Self(saved.map_or(Phase::Normal, |saved| Phase::Reconnaissance { saved, acked: 0.0 }))
    }

    /// What was known before and is not used yet.
    pub(super) fn unused(&self) -> Option<Saved> {
        if let Phase::Reconnaissance { saved, .. } = self.0 { Some(saved) } else { None }
    }

    /// All is the algorithm's own from now on.
    pub(super) fn end(&mut self) {
        self.0 = Phase::Normal;
    }

    /// Whether the window is paced over a round trip.
    pub(super) fn is_unvalidated(&self) -> bool {
        matches!(self.0, Phase::Unvalidated { .. })
    }

    /// Whether the window does not grow.
    pub(super) fn holds(&self) -> bool {
        matches!(self.0, Phase::Unvalidated { .. } | Phase::SafeRetreat { .. })
    }

    /// An acknowledgement, after what it reduces of the window. Times are in seconds.
    pub(super) fn on_ack(&mut self, sample: &AckSample, base: f64, srtt: f64, window: &mut Window, now: Instant) {
        let is_reduced = window.since_reduction(now) <= 0.0;
        self.0 = match self.0 {
            Phase::Normal => return,
            Phase::Reconnaissance { .. } if !window.in_first_slow_start() => Phase::Normal,
            Phase::Reconnaissance { saved, acked } => {
                let acked = acked + f64::from(sample.acked);
                if acked < window.initial() || !sample.cwnd_limited {
                    Phase::Reconnaissance { saved, acked }
                } else {
                    jump(saved, sample, base, srtt, window, now)
                }
            }
            Phase::Unvalidated { pipe, .. } if is_reduced => retreat(pipe.with(sample), sample.snd_nxt, window),
            Phase::Validating { pipe, end } if is_reduced => retreat(pipe.with(sample), end, window),
            Phase::Unvalidated { pipe, first, until } => {
                let pipe = pipe.with(sample);
                let is_sent = f64::from(sample.prior_in_flight) >= window.cwnd;
                if is_sent || sample.snd_una > first || now >= until {
                    validate(pipe, sample, window)
                } else {
                    Phase::Unvalidated { pipe, first, until }
                }
            }
            Phase::Validating { pipe, end } if sample.snd_una < end => {
                Phase::Validating { pipe: pipe.with(sample), end }
            }
            Phase::SafeRetreat { end } if sample.snd_una < end => self.0,
            Phase::Validating { .. } | Phase::SafeRetreat { .. } => Phase::Normal,
        };
    }
}

/// Half of the earlier window, if it is more than there is and the path is the same.
fn jump(saved: Saved, sample: &AckSample, base: f64, srtt: f64, window: &mut Window, now: Instant) -> Phase {
    let is_same = base > SAME_PATH[0] * saved.base && base <= SAME_PATH[1] * saved.base;
    if !is_same || window.cwnd >= saved.cwnd / 2.0 {
        return Phase::Normal;
    }
    window.resume_at(saved.cwnd / 2.0);
    Phase::Unvalidated {
        pipe: Pipe { in_flight: f64::from(sample.in_flight), acked: 0.0 },
        first: sample.snd_nxt,
        until: now + Span::from_secs_f64(srtt),
    }
}

/// The unvalidated packets are sent.
fn validate(pipe: Pipe, sample: &AckSample, window: &mut Window) -> Phase {
    let in_flight = f64::from(sample.in_flight);
    window.resume_at(in_flight.max(pipe.size()).max(window.initial()));
    if in_flight <= pipe.size() { Phase::Normal } else { Phase::Validating { pipe, end: sample.snd_nxt } }
}

fn retreat(pipe: Pipe, end: u64, window: &mut Window) -> Phase {
    window.retreat(pipe.size());
    Phase::SafeRetreat { end }
}

#[cfg(test)]
mod tests;
