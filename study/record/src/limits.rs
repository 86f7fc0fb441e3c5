//! For how long each limit held back a sender.

use crate::columns::visit_part;
use crate::{Column, ColumnVisitor};
use serde::{Deserialize, Serialize};

/// The time for which each limit held back a sender, seconds. At every instant exactly one did. Together they last from the
/// flow's start until it was complete or stopped, or until the run's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LimitTimes {
    /// The handshake was under way. Of a subflow: it was not established.
    pub handshake: f64,
    /// The application had written nothing more.
    pub application: f64,
    /// The receive window, or QUIC's flow control, had no room.
    pub receive_window: f64,
    /// The send buffer was full, and everything in it was sent.
    pub send_buffer: f64,
    /// The congestion window was full while lost data was sent again.
    pub recovery: f64,
    /// The pacer or the host's own queue held data back.
    pub pacing: f64,
    /// The congestion window was full.
    pub window: f64,
    /// Of a subflow: it had room, and the scheduler gave it nothing.
    pub scheduler: f64,
}

impl LimitTimes {
    /// The names, in the order of [`as_array`](Self::as_array).
    pub const NAMES: [&str; 8] =
        ["handshake", "application", "receive_window", "send_buffer", "recovery", "pacing", "window", "scheduler"];

    /// The times, in the order of [`NAMES`](Self::NAMES).
    #[must_use]
    pub fn as_array(&self) -> [f64; 8] {
        let Self { handshake, application, receive_window, send_buffer, recovery, pacing, window, scheduler } = *self;
        [handshake, application, receive_window, send_buffer, recovery, pacing, window, scheduler]
    }

    /// The inverse of [`as_array`](Self::as_array).
    #[must_use]
    pub fn from_array(times: [f64; 8]) -> Self {
        let [handshake, application, receive_window, send_buffer, recovery, pacing, window, scheduler] = times;
        Self { handshake, application, receive_window, send_buffer, recovery, pacing, window, scheduler }
    }

    /// The sum of all times, seconds.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.as_array().iter().sum()
    }
}

impl Column for Option<LimitTimes> {
    fn visit(&mut self, name: &str, visitor: &mut dyn ColumnVisitor) {
        visit_part(self, visitor, |limits, visitor| {
            let mut times = limits.as_array();
            for (limit, time) in LimitTimes::NAMES.iter().zip(&mut times) {
                time.visit(&format!("{name}.{limit}"), visitor);
            }
            *limits = LimitTimes::from_array(times);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_fields_in_their_order() {
        let times = LimitTimes::from_array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let json = serde_json::to_value(times).expect("numbers");
        assert_eq!(LimitTimes::NAMES.map(|name| json[name].as_f64()).map(Option::unwrap_or_default), times.as_array());
        assert_eq!(times.total(), 36.0);
    }
}
