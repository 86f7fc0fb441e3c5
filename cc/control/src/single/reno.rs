//! Reno (NewReno): add one packet a round trip, halve on loss.
//!
//! - Increase: slow start by what was acked up to the threshold, then +1 packet per window acked.
//! - Decrease: threshold = window / 2, at least 2 packets.
//!
//! Source: RFC 5681, RFC 6582; constants and integer steps as in Linux 6.1 (`tcp_cong.c`).
//! Departures from the RFC, all Linux's: the window, not the flight size, is halved; no inflation during recovery
//! (proportional rate reduction instead); no byte-counting limit in slow start.

use crate::frame::{self, Growth, Window, Windowed};
use crate::{Context, Entry, Feedback, Make};

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "reno",
    aliases: &["newreno"],
    title: "additive increase, multiplicative decrease (NewReno)",
    source: "RFC 5681, RFC 6582; Linux 6.1 tcp_cong.c",
    parameters: &[],
    make: Make::Single(|_| Windowed::boxed(Reno)),
};

/// Reno's own part is empty: it is the frame's default.
#[derive(Debug)]
pub struct Reno;

impl Growth for Reno {
    fn grow(&mut self, window: &mut Window, acked: u32, _feedback: &Feedback, _cx: &mut Context<'_>) {
        frame::reno_increase(window, acked);
    }

    fn threshold(&mut self, window: &Window, _cx: &mut Context<'_>) -> u32 {
        frame::reno_threshold(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_one_packet_per_window_acked() {
        let mut window = Window { size: 10, threshold: 5, ..Window::default() };
        frame::reno_increase(&mut window, 10);
        assert_eq!((window.size, window.credit), (11, 0));
    }

    #[test]
    fn slow_start_hands_what_is_left_to_congestion_avoidance() {
        let mut window = Window { size: 10, threshold: 14, ..Window::default() };
        frame::reno_increase(&mut window, 8);
        assert_eq!((window.size, window.credit), (14, 4));
    }

    #[test]
    fn halves_but_never_below_two() {
        let at = |size| frame::reno_threshold(&Window { size, ..Window::default() });
        assert_eq!((at(21), at(3)), (10, 2));
    }
}
