//! Why a sender sends nothing more now, and for how long it has been so: one rule for TCP, MPTCP and QUIC.
//!
//! At every instant exactly one [`Limit`] holds. The precedent are Linux's `tcp_chrono_start` and `tcp_chrono_stop` (busy,
//! limited by the receive window, limited by the send buffer), and the definition of an application-limited sender in RFC
//! 9002, section 7.8. As in Linux, a full congestion window takes precedence over receive window and send buffer.

use super::SendLimit;
use units::{Instant, Span};

/// The reason why a sender sends nothing more now. The order is that in which one of several paths' limits is the
/// connection's: the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// The receive window, or QUIC's flow control, has no room for data that waits.
    ReceiveWindow,
    /// The send buffer is full, everything in it is sent, and the application has more.
    SendBuffer,
    /// The pacer, or the queue of the sending host (TCP small queues), holds data back.
    Pacing,
    /// The congestion window is full.
    Window,
    /// The congestion window is full, or data is held back, while lost data is sent again: the states Recovery and Loss,
    /// and a path that gets no data after a timeout.
    Recovery,
    /// Of a path: it has room, and there is data, but the scheduler gives the path none.
    Scheduler,
    /// Nothing to send: the application has written no more.
    #[default]
    Application,
    /// Not established: during the handshake and, of a path, before it is opened and after it is removed.
    Handshake,
}

impl Limit {
    /// All limits, in their order.
    pub const ALL: [Self; 8] = [
        Self::ReceiveWindow,
        Self::SendBuffer,
        Self::Pacing,
        Self::Window,
        Self::Recovery,
        Self::Scheduler,
        Self::Application,
        Self::Handshake,
    ];

    /// The name in traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReceiveWindow => "receive-window",
            Self::SendBuffer => "send-buffer",
            Self::Pacing => "pacing",
            Self::Window => "window",
            Self::Recovery => "recovery",
            Self::Scheduler => "scheduler",
            Self::Application => "application",
            Self::Handshake => "handshake",
        }
    }
}

impl From<SendLimit> for Limit {
    fn from(limit: SendLimit) -> Self {
        match limit {
            SendLimit::CongestionWindow => Self::Window,
            SendLimit::HostQueue => Self::Pacing,
            SendLimit::ReceiveWindow => Self::ReceiveWindow,
            SendLimit::SendBuffer => Self::SendBuffer,
        }
    }
}

/// The state of a sender that sends nothing more now.
#[derive(Clone, Copy, Debug)]
pub struct SenderState {
    /// Why the sender has no data that it might send; none if it has some, new or lost.
    pub withheld: Option<Limit>,
    /// Whether the congestion window is full.
    pub is_cwnd_full: bool,
    /// Whether lost data is being sent again, by the congestion state.
    pub is_recovering: bool,
    /// Whether pacer or host queue make data wait.
    pub is_paced: bool,
}

impl Default for SenderState {
    fn default() -> Self {
        Self { withheld: Some(Limit::Application), is_cwnd_full: false, is_recovering: false, is_paced: false }
    }
}

impl SenderState {
    /// The state of a path, whose connection has more data or gives it none for the reason `withheld`. After a timeout it
    /// may be suspended.
    #[must_use]
    pub fn given(self, withheld: Limit, is_suspended: bool) -> Self {
        let is_idle = matches!(self.withheld, Some(Limit::Application | Limit::SendBuffer));
        Self {
            withheld: if is_idle { Some(withheld) } else { self.withheld },
            is_cwnd_full: self.is_cwnd_full || is_suspended,
            is_recovering: self.is_recovering || is_suspended,
            ..self
        }
    }

    /// The rule that decides the limit of an established sender.
    #[must_use]
    pub fn limit(&self) -> Limit {
        let window = if self.is_recovering { Limit::Recovery } else { Limit::Window };
        match self.withheld {
            Some(Limit::Application) => Limit::Application,
            _ if self.is_cwnd_full => window,
            Some(limit) => limit,
            None if self.is_paced => Limit::Pacing,
            None => window,
        }
    }
}

/// The time for which each limit has held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitTimes([Span; Limit::ALL.len()]);

impl LimitTimes {
    /// The time for which a limit has held.
    #[must_use]
    pub fn of(&self, limit: Limit) -> Span {
        self.0[limit as usize]
    }

    /// Adds time to a limit.
    pub fn add(&mut self, limit: Limit, time: Span) {
        self.0[limit as usize] += time;
    }

    /// The time of all limits.
    #[must_use]
    pub fn total(&self) -> Span {
        self.0.iter().fold(Span::ZERO, |total, time| total + *time)
    }
}

impl std::ops::Add for LimitTimes {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        Limit::ALL.iter().for_each(|limit| Self::add(&mut self, *limit, other.of(*limit)));
        self
    }
}

/// Times for which a sender was limited by something other than the congestion window and the application. A connection
/// over several paths counts them whatever the windows of its paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitedTimes {
    /// The receive window, or QUIC's flow control.
    pub receive_window: Span,
    /// The send buffer.
    pub send_buffer: Span,
}

impl From<LimitTimes> for LimitedTimes {
    fn from(times: LimitTimes) -> Self {
        Self { receive_window: times.of(Limit::ReceiveWindow), send_buffer: times.of(Limit::SendBuffer) }
    }
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

/// Measures [`LimitTimes`], from the first limit that is set on.
#[derive(Clone, Copy, Debug)]
pub struct LimitTimer {
    current: Limit,
    since: Instant,
    past: LimitTimes,
}

impl Default for LimitTimer {
    fn default() -> Self {
        Self { current: Limit::default(), since: Instant::NEVER, past: LimitTimes::default() }
    }
}

impl LimitTimer {
    /// Sets the limit from `now` on.
    #[inline]
    pub fn set(&mut self, now: Instant, limit: Limit) {
        if limit != self.current || self.since == Instant::NEVER {
            self.past.add(self.current, now.since(self.since));
            (self.current, self.since) = (limit, now);
        }
    }

    /// The current limit.
    #[must_use]
    pub fn limit(&self) -> Limit {
        self.current
    }

    /// The times until `now`, including that of the current limit.
    #[must_use]
    pub fn times(&self, now: Instant) -> LimitTimes {
        let mut times = self.past;
        times.add(self.current, now.since(self.since));
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_counts_while_it_lasts() {
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        let mut timer = LimitTimer::default();
        assert_eq!(timer.times(at(10)).total(), Span::ZERO, "not before the first limit");
        timer.set(at(10), Limit::ReceiveWindow);
        let times = |timer: &LimitTimer, ms| {
            let LimitedTimes { receive_window, send_buffer } = timer.times(at(ms)).into();
            (receive_window.as_millis_f64(), send_buffer.as_millis_f64())
        };
        assert_eq!(times(&timer, 110), (100.0, 0.0));
        timer.set(at(120), Limit::SendBuffer);
        timer.set(at(130), Limit::SendBuffer);
        assert_eq!(times(&timer, 150), (110.0, 30.0));
        timer.set(at(160), Limit::Window);
        assert_eq!(times(&timer, 900), (110.0, 40.0));
        assert_eq!(timer.times(at(900)).total(), Span::from_millis(890));
    }

    #[test]
    fn limits_are_listed_in_their_order() {
        assert!(Limit::ALL.is_sorted());
        Limit::ALL.iter().enumerate().for_each(|(index, limit)| assert_eq!(*limit as usize, index));
    }

    #[test]
    fn a_full_window_goes_before_buffers_and_a_lack_of_data_before_all() {
        let state = SenderState { withheld: None, is_cwnd_full: true, is_paced: true, is_recovering: false };
        let limit = |withheld, is_cwnd_full| SenderState { withheld, is_cwnd_full, ..state }.limit();
        assert_eq!(limit(Some(Limit::SendBuffer), true), Limit::Window);
        assert_eq!(limit(Some(Limit::SendBuffer), false), Limit::SendBuffer);
        assert_eq!(limit(Some(Limit::Application), true), Limit::Application);
        assert_eq!(limit(None, false), Limit::Pacing);
        assert_eq!(SenderState { is_recovering: true, ..state }.limit(), Limit::Recovery);
    }
}
