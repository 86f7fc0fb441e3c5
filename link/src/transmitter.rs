//! What puts packets on the wire one after the other: at a rate, at a trace's opportunities, or at once.

use super::trace::Cursor;
use scenario::model;
use units::{Instant, Rate, Span};

/// One direction's transmitter.
#[derive(Clone, Debug)]
pub(super) enum Transmitter {
    /// Never the bottleneck: any number of packets at once.
    Instant,
    /// A constant rate, until it is changed.
    Rate(Serial),
    /// Delivery opportunities.
    Trace(Cursor),
}

/// One packet's transmission.
pub(super) struct Transmission {
    /// The first bit leaves.
    pub(super) start: Instant,
    /// The last bit has left.
    pub(super) departure: Instant,
    /// What it uses of the transmitter's time.
    pub(super) busy: Span,
}

impl Transmitter {
    pub(super) fn new(config: &model::Pipe) -> Self {
        match (&config.trace, config.rate) {
            (Some(trace), _) => Self::Trace(Cursor::new(trace.clone())),
            (None, Some(rate)) => Self::Rate(Serial::new(rate, Instant::ZERO)),
            (None, None) => Self::Instant,
        }
    }

    /// The rate, or the trace's mean.
    pub(super) fn rate(&self) -> Option<Rate> {
        match self {
            Self::Instant => None,
            Self::Rate(serial) => Some(serial.rate),
            Self::Trace(cursor) => Some(cursor.mean_rate()),
        }
    }

    /// Bytes that it could transmit after `from`, until `to`; `None`: any number.
    pub(super) fn capacity(&self, from: Instant, to: Instant) -> Option<u64> {
        match self {
            Self::Instant => None,
            Self::Rate(serial) => Some(serial.rate.bytes_in(to.since(from))),
            Self::Trace(cursor) => Some(cursor.capacity(from, to)),
        }
    }

    /// When everything accepted so far has been transmitted.
    #[inline]
    pub(super) fn free_at(&self) -> Instant {
        match self {
            Self::Instant => Instant::ZERO,
            Self::Rate(serial) => serial.free_at,
            Self::Trace(cursor) => cursor.used_until(),
        }
    }

    /// When the transmission of a packet that is there since `ready` would start.
    #[inline]
    pub(super) fn start(&self, ready: Instant) -> Instant {
        match self {
            Self::Instant => ready,
            Self::Rate(serial) => serial.free_at.max(ready),
            Self::Trace(cursor) => cursor.start(ready),
        }
    }

    /// Transmits a packet that is there since `ready`, after all before it.
    #[inline]
    pub(super) fn send(&mut self, ready: Instant, bytes: u64) -> Transmission {
        match self {
            Self::Instant => Transmission { start: ready, departure: ready, busy: Span::ZERO },
            Self::Rate(serial) => serial.send(ready, bytes),
            Self::Trace(cursor) => {
                let (start, departure) = cursor.send(ready, bytes);
                Transmission { start, departure, busy: cursor.mean_rate().time_for(bytes) }
            }
        }
    }

    /// Has this rate from `begin` on, when the packet in transmission has left; also a trace or an unlimited link
    /// becomes one with a rate.
    pub(super) fn set_rate(&mut self, rate: Rate, begin: Instant) {
        let since = if let Self::Rate(serial) = self { serial.since } else { begin };
        *self = Self::Rate(Serial { since, ..Serial::new(rate, begin) });
    }

    /// Forgets what was to be transmitted after `now`.
    pub(super) fn stop(&mut self, now: Instant) {
        match self {
            Self::Instant => {}
            Self::Rate(serial) => {
                serial.free_at = serial.free_at.min(now);
                serial.since = serial.since.min(now);
            }
            Self::Trace(cursor) => cursor.rewind(),
        }
    }

    /// How much of the time of the transmissions decided so far is still to come? `waiting`: the sizes of
    /// those packets that have not begun.
    pub(super) fn outstanding(&self, now: Instant, waiting: impl Iterator<Item = u64>) -> Span {
        match self {
            Self::Instant => Span::ZERO,
            Self::Rate(serial) => serial.free_at.since(now.max(serial.since)),
            Self::Trace(cursor) => Span(waiting.map(|size| cursor.mean_rate().time_for(size).0).sum()),
        }
    }
}

/// Sends bit after bit.
#[derive(Clone, Debug)]
pub(super) struct Serial {
    rate: Rate,
    /// When it began to have a rate: later than now while a packet leaves at the opportunities of an abandoned trace.
    since: Instant,
    free_at: Instant,
    /// The last two packet sizes and what they take: spares the division for almost every packet.
    memo: [(u64, Span); 2],
}

impl Serial {
    fn new(rate: Rate, free_at: Instant) -> Self {
        assert!(rate.0 > 0, "a link of rate zero is a link that is down");
        Self { rate, since: Instant::ZERO, free_at, memo: [(0, Span::ZERO); 2] }
    }

    #[inline]
    fn send(&mut self, ready: Instant, bytes: u64) -> Transmission {
        let (start, busy) = (self.free_at.max(ready), self.time_for(bytes));
        self.free_at = start + busy;
        Transmission { start, departure: self.free_at, busy }
    }

    #[inline]
    fn time_for(&mut self, bytes: u64) -> Span {
        match self.memo {
            [(size, span), _] | [_, (size, span)] if size == bytes => span,
            [last, _] => {
                let span = self.rate.time_for(bytes);
                self.memo = [(bytes, span), last];
                span
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembered_times_are_the_computed_ones() {
        let rate = Rate::from_bits(33_333_333);
        let mut serial = Serial::new(rate, Instant::ZERO);
        for bytes in [1500, 52, 1500, 64, 52, 0, 1500, 72, 1500, 64] {
            assert_eq!(serial.time_for(bytes), rate.time_for(bytes));
        }
    }
}
