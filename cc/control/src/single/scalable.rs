//! Scalable TCP: grow and shrink in proportion, so that recovery takes the same number of round trips at any rate.
//!
//! - Increase: 1 packet per 100 acked (1 % a round trip); below a window of 100 packets, Reno's one a window. (Older
//!   kernels: 50, because acknowledgements are delayed.)
//! - Decrease: threshold = 7/8 of the window, at least 2 packets.
//!
//! Source: Kelly, "Scalable TCP: improving performance in highspeed wide area networks" (CCR 2003); integer steps as in
//! Linux 6.1 (`tcp_scalable.c`).

use crate::frame::{self, Growth, Window, Windowed};
use crate::{Context, Default as Range, Entry, Feedback, Make, Parameter, Settings};

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "scalable",
    aliases: &["stcp"],
    title: "multiplicative increase: 1 % a round trip up, 1/8 down",
    source: "Kelly, CCR 2003; Linux 6.1 tcp_scalable.c",
    parameters: &[Parameter {
        name: "period",
        meaning: "packets acked per packet of growth (the paper's 1 / a)",
        default: Range::Number { value: 100.0, least: 1.0, most: 1e6 },
    }],
    make: Make::Single(|settings| Windowed::boxed(Scalable::new(settings))),
};

/// The window shrinks by 2^-3 (the paper's b = 0.125).
const DECREASE_SHIFT: u32 = 3;

/// Scalable TCP keeps no state.
#[derive(Debug)]
pub struct Scalable {
    period: u32,
}

impl Scalable {
    fn new(settings: &Settings) -> Self {
        Self { period: settings.number("period") as u32 }
    }
}

impl Growth for Scalable {
    fn grow(&mut self, window: &mut Window, acked: u32, _feedback: &Feedback, _cx: &mut Context<'_>) {
        let left = if window.in_slow_start() { frame::slow_start(window, acked) } else { acked };
        if left > 0 {
            frame::additive_increase(window, window.size.min(self.period), left);
        }
    }

    fn threshold(&mut self, window: &Window, _cx: &mut Context<'_>) -> u32 {
        (window.size - (window.size >> DECREASE_SHIFT)).max(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{context, defaults};
    use units::Stream;

    /// The window after `acked` packets in congestion avoidance.
    fn grown(size: u32, acked: u32) -> u32 {
        let mut window = Window { size, threshold: 2, ..Window::default() };
        let mut stream = Stream::named(1, "test");
        Scalable::new(&defaults(&ENTRY)).grow(&mut window, acked, &Feedback::default(), &mut context(0, &mut stream));
        window.size
    }

    #[test]
    fn one_packet_per_window_below_a_hundred_and_per_hundred_above() {
        assert_eq!([grown(20, 19), grown(20, 20)], [20, 21]);
        assert_eq!([grown(1000, 99), grown(1000, 100)], [1000, 1001]);
    }

    #[test]
    fn loses_an_eighth() {
        let mut stream = Stream::named(1, "test");
        let mut at = |size| {
            Scalable::new(&defaults(&ENTRY))
                .threshold(&Window { size, ..Window::default() }, &mut context(0, &mut stream))
        };
        assert_eq!([20, 100, 1000, 2].map(&mut at), [18, 88, 875, 2]);
    }
}
