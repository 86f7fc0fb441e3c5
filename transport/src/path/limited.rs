//! How long each limit has limited a sender (Linux `tcp_chrono_start`, `tcp_chrono_stop`).

use super::SendLimit;
use units::{Instant, Span};

/// Times for which a sender was limited by something other than the congestion window and the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitedTimes {
    /// The receive window, or QUIC's flow control.
    pub receive_window: Span,
    /// The send buffer.
    pub send_buffer: Span,
}

impl std::ops::Add for LimitedTimes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            receive_window: self.receive_window + other.receive_window,
            send_buffer: self.send_buffer + other.send_buffer,
        }
    }
}

/// Measures [`LimitedTimes`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LimitTimer {
    current: Option<(SendLimit, Instant)>,
    past: LimitedTimes,
}

impl LimitTimer {
    /// Sets the limit from `now` on.
    pub(crate) fn set(&mut self, now: Instant, limit: Option<SendLimit>) {
        *self = Self { current: limit.map(|limit| (limit, now)), past: self.times(now) };
    }

    /// The times until `now`, including that of the current limit.
    pub(crate) fn times(&self, now: Instant) -> LimitedTimes {
        let mut times = self.past;
        match self.current {
            Some((SendLimit::ReceiveWindow, start)) => times.receive_window += now.since(start),
            Some((SendLimit::SendBuffer, start)) => times.send_buffer += now.since(start),
            Some((SendLimit::CongestionWindow | SendLimit::HostQueue, _)) | None => {}
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_while_it_lasts() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let times = |receive_window, send_buffer| LimitedTimes {
            receive_window: Span::from_millis(receive_window),
            send_buffer: Span::from_millis(send_buffer),
        };
        let mut timer = LimitTimer::default();
        timer.set(at(10), Some(SendLimit::ReceiveWindow));
        assert_eq!(timer.times(at(110)), times(100, 0));
        timer.set(at(120), Some(SendLimit::SendBuffer));
        assert_eq!(timer.times(at(150)), times(110, 30));
        timer.set(at(160), None);
        assert_eq!(timer.times(at(900)), times(110, 40));
    }
}
