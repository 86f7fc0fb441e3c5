//! The transmitter of a link: at a rate, at a trace's opportunities, in grants, or unlimited.

use super::grants::GrantCursor;
use super::trace::TraceCursor;
use crate::config::PipeConfig;
use units::{Instant, Rate, Span};

/// One direction's transmitter.
#[derive(Clone, Debug)]
pub(super) enum Transmitter {
    /// Never the bottleneck: any number of packets at once.
    Unlimited,
    /// A constant rate, until it is changed.
    Rate(FixedRate),
    /// Delivery opportunities.
    Trace(TraceCursor),
    /// Grants of a cellular uplink.
    Grants(GrantCursor),
}

/// One packet's transmission.
pub(super) struct Transmission {
    /// Time at which the first bit leaves.
    pub(super) start: Instant,
    /// Time at which the last bit has left.
    pub(super) departure: Instant,
    /// Time that the transmitter is busy with the packet.
    pub(super) serialisation_time: Span,
}

impl Transmitter {
    pub(super) fn new(config: &PipeConfig) -> Self {
        match (&config.trace, config.rate, config.grants) {
            (Some(trace), ..) => Self::Trace(TraceCursor::new(trace.clone(), config.trace_offset)),
            (None, Some(rate), Some(grants)) => Self::Grants(GrantCursor::new(grants, rate)),
            (None, Some(rate), None) => Self::Rate(FixedRate::new(rate, Instant::ZERO)),
            (None, None, _) => Self::Unlimited,
        }
    }

    /// The rate, or the trace's mean.
    pub(super) fn rate(&self) -> Option<Rate> {
        match self {
            Self::Unlimited => None,
            Self::Rate(fixed) => Some(fixed.rate),
            Self::Trace(cursor) => Some(cursor.mean_rate()),
            Self::Grants(cursor) => Some(cursor.rate()),
        }
    }

    /// Bytes that could be transmitted after `from`, until `to`; `None` for no limit.
    pub(super) fn bytes_between(&self, from: Instant, to: Instant) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Rate(fixed) => Some(fixed.rate.bytes_in(to.since(from.max(fixed.resumes_at)))),
            Self::Trace(cursor) => Some(cursor.bytes_between(from, to)),
            Self::Grants(cursor) => Some(cursor.rate().bytes_in(to.since(from))),
        }
    }

    /// The busy time, in the units of [`Transmission::serialisation_time`], of a transmitter that was busy from the
    /// start until `end`. With a trace, it is the time that the bytes that could have left take at the mean rate.
    pub(super) fn full_busy_time(&self, end: Instant) -> Span {
        match self {
            Self::Trace(cursor) => cursor.mean_rate().time_for(cursor.bytes_between(Instant::ZERO, end)),
            Self::Unlimited | Self::Rate(_) | Self::Grants(_) => end.since(Instant::ZERO),
        }
    }

    /// Time at which all packets accepted so far have been transmitted.
    #[inline]
    pub(super) fn idle_at(&self) -> Instant {
        match self {
            Self::Unlimited => Instant::ZERO,
            Self::Rate(fixed) => fixed.idle_at,
            Self::Trace(cursor) => cursor.last_used_at(),
            Self::Grants(cursor) => cursor.last_used_at(),
        }
    }

    /// Time at which the transmission of a packet that has been available since `available_at` would start.
    #[inline]
    pub(super) fn start(&self, available_at: Instant) -> Instant {
        match self {
            Self::Unlimited => available_at,
            Self::Rate(fixed) => fixed.idle_at.max(available_at),
            Self::Trace(cursor) => cursor.start(available_at),
            Self::Grants(cursor) => cursor.start(available_at),
        }
    }

    /// Transmits a packet that has been available since `available_at`, after all earlier packets.
    #[inline]
    pub(super) fn send(&mut self, available_at: Instant, bytes: u64) -> Transmission {
        match self {
            Self::Unlimited => {
                Transmission { start: available_at, departure: available_at, serialisation_time: Span::ZERO }
            }
            Self::Rate(fixed) => fixed.send(available_at, bytes),
            Self::Trace(cursor) => {
                let (start, departure) = cursor.send(available_at, bytes);
                Transmission { start, departure, serialisation_time: cursor.mean_rate().time_for(bytes) }
            }
            Self::Grants(cursor) => {
                let (start, departure) = cursor.send(available_at, bytes);
                Transmission { start, departure, serialisation_time: cursor.rate().time_for(bytes) }
            }
        }
    }

    /// Called when a packet that another one may overtake has been waiting since `available_at`: the transmitter
    /// requests its grant.
    pub(super) fn request(&mut self, available_at: Instant) {
        if let Self::Grants(cursor) = self {
            cursor.request(available_at);
        }
    }

    /// Sets the rate from `from` on, when the packet in transmission has left. A trace, grants or an unlimited
    /// transmitter become a transmitter with a rate.
    pub(super) fn set_rate(&mut self, rate: Rate, from: Instant) {
        let effective_from = if let Self::Rate(fixed) = self { fixed.effective_from } else { from };
        *self = Self::Rate(FixedRate { effective_from, ..FixedRate::new(rate, from) });
    }

    /// Starts no transmission from `from`, when the packet in transmission has left, until `until`. The rate stays. A
    /// trace, grants or an unlimited transmitter get one, as by [`set_rate`](Self::set_rate).
    pub(super) fn pause(&mut self, from: Instant, until: Instant) {
        let rate = self.rate().unwrap_or(Rate(u64::MAX));
        self.set_rate(rate, from.max(until));
        if let Self::Rate(fixed) = self {
            fixed.resumes_at = until;
        }
    }

    /// Cancels the transmissions after `now`.
    pub(super) fn cancel_after(&mut self, now: Instant) {
        match self {
            Self::Unlimited => {}
            Self::Rate(fixed) => {
                fixed.idle_at = fixed.idle_at.min(now.max(fixed.resumes_at));
                fixed.effective_from = fixed.effective_from.min(now);
            }
            Self::Trace(cursor) => cursor.reset(),
            Self::Grants(cursor) => cursor.reset(),
        }
    }

    /// Busy time after `now` of the transmissions decided so far. `waiting` has the sizes of the packets whose
    /// transmission has not begun.
    pub(super) fn remaining_busy_time(&self, now: Instant, waiting: impl Iterator<Item = u64>) -> Span {
        match self {
            Self::Unlimited => Span::ZERO,
            Self::Rate(fixed) => fixed.idle_at.since(now.max(fixed.effective_from).max(fixed.resumes_at)),
            Self::Trace(cursor) => Span(waiting.map(|size| cursor.mean_rate().time_for(size).0).sum()),
            Self::Grants(cursor) => Span(waiting.map(|size| cursor.rate().time_for(size).0).sum()),
        }
    }
}

/// A transmitter with a rate, which sends continuously.
#[derive(Clone, Debug)]
pub(super) struct FixedRate {
    rate: Rate,
    /// Time at which the rate takes effect. It is in the future while a packet leaves at the opportunities of a
    /// previous trace.
    effective_from: Instant,
    /// End of a [pause](Transmitter::pause), or time zero.
    resumes_at: Instant,
    /// Time at which all packets accepted so far have been transmitted.
    pub(super) idle_at: Instant,
    /// The last two packet sizes and their transmission times, which saves the division for almost every packet.
    cached_times: [(u64, Span); 2],
}

impl FixedRate {
    fn new(rate: Rate, idle_at: Instant) -> Self {
        assert!(rate.0 > 0, "a link of rate zero pauses, or is down");
        let cached_times = [(0, Span::ZERO); 2];
        Self { rate, effective_from: Instant::ZERO, resumes_at: Instant::ZERO, idle_at, cached_times }
    }

    /// Transmits a packet that has been available since `available_at`, after all earlier packets.
    #[inline]
    fn send(&mut self, available_at: Instant, bytes: u64) -> Transmission {
        let transmission = self.next(available_at, bytes);
        self.idle_at = transmission.departure;
        transmission
    }

    /// The transmission of a packet that has been available since `available_at`.
    #[inline(always)]
    pub(super) fn next(&mut self, available_at: Instant, bytes: u64) -> Transmission {
        let (start, serialisation_time) = (self.idle_at.max(available_at), self.time_for(bytes));
        Transmission { start, departure: start + serialisation_time, serialisation_time }
    }

    #[inline]
    fn time_for(&mut self, bytes: u64) -> Span {
        match self.cached_times {
            [(size, span), _] | [_, (size, span)] if size == bytes => span,
            [last, _] => {
                let span = self.rate.time_for(bytes);
                self.cached_times = [(bytes, span), last];
                span
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_times_are_the_computed_ones() {
        let rate = Rate::from_bits(33_333_333);
        let mut fixed = FixedRate::new(rate, Instant::ZERO);
        for bytes in [1500, 52, 1500, 64, 52, 0, 1500, 72, 1500, 64] {
            assert_eq!(fixed.time_for(bytes), rate.time_for(bytes));
        }
    }
}
