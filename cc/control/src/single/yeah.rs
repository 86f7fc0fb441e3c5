//! YeAH (Yet Another Highspeed TCP): Scalable while the path has room, Reno with precautionary decongestion while it
//! has not.
//!
//! Once a round trip, `queue = window (rtt - base) / rtt`, with the least RTT of the round and the least ever (`base`):
//! - Slow mode, where `queue > 80` or `rtt - base > base / 8`; else fast mode.
//! - Increase: fast mode Scalable's (1 packet per 100 acked), slow mode Reno's.
//! - Decongestion: where `queue > 80`, the queue is given back (at most half the window), but not below the window that
//!   a competing Reno flow is estimated to have (`reno_window`).
//! - Decrease: in fast mode and the first 16 rounds of slow mode by the queue, within 1/8 and 1/2 of the window;
//!   afterwards, with greedy flows about, by half.
//!
//! Source: Baiocchi, Castellani, Vacirca, "YeAH-TCP: yet another highspeed TCP" (PFLDnet 2007); integer steps as in
//! Linux 6.1 (`tcp_yeah.c`).
//! Departures from the paper, Linux's: one queue limit serves for both modes and for decongestion; the queue is not
//! smoothed.

use crate::frame::{self, Growth, RoundDelay, Window, Windowed};
use crate::{Context, Default as Range, Entry, Feedback, Make, Parameter, PathInfo, Phase, Settings};
use units::Span;

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "yeah",
    aliases: &["yeah-tcp"],
    title: "Scalable without queue, Reno with one, and gives a long queue back",
    source: "Baiocchi, Castellani, Vacirca, PFLDnet 2007; Linux 6.1 tcp_yeah.c",
    parameters: &[
        Parameter {
            name: "alpha",
            meaning: "most packets left in the queue",
            default: Range::Number { value: 80.0, least: 1.0, most: 1e6 },
        },
        Parameter {
            name: "phi",
            meaning: "slow mode where the queueing delay exceeds the base RTT over this",
            default: Range::Number { value: 8.0, least: 1.0, most: 1e6 },
        },
        Parameter {
            name: "rho",
            meaning: "rounds of slow mode after which a loss halves",
            default: Range::Number { value: 16.0, least: 0.0, most: 1e6 },
        },
        Parameter {
            name: "zeta",
            meaning: "rounds of fast mode that make the estimate of Reno's window start anew",
            default: Range::Number { value: 50.0, least: 0.0, most: 1e6 },
        },
    ],
    make: Make::Single(|settings| Windowed::boxed(Yeah::new(settings))),
};

/// Packets acked per packet of growth in fast mode.
const PERIOD: u32 = 100;
/// A loss costs at least 2^-3 of the window.
const LEAST_DECREASE_SHIFT: u32 = 3;
/// The estimate of Reno's window before there is one.
const NO_RENO: u32 = 2;

/// YeAH's own part of a window.
#[derive(Debug)]
pub struct Yeah {
    alpha: u64,
    phi: u64,
    rho: u32,
    zeta: u32,
    delay: RoundDelay,
    /// At the end of the last round that was judged, packets.
    queue: u64,
    /// Rounds of slow mode in a row; zero: fast mode.
    slow_rounds: u32,
    fast_rounds: u32,
    /// The window that a Reno flow beside this one would have.
    reno_window: u32,
}

impl Yeah {
    fn new(settings: &Settings) -> Self {
        Self {
            alpha: settings.number("alpha") as u64,
            phi: settings.number("phi") as u64,
            rho: settings.number("rho") as u32,
            zeta: settings.number("zeta") as u32,
            delay: RoundDelay::default(),
            queue: 0,
            slow_rounds: 0,
            fast_rounds: 0,
            reno_window: NO_RENO,
        }
    }

    fn increase(&self, window: &mut Window, acked: u32) {
        let left = if window.in_slow_start() { frame::slow_start(window, acked) } else { acked };
        if left > 0 {
            let period = if self.slow_rounds == 0 { window.size.min(PERIOD) } else { window.size };
            frame::additive_increase(window, period, left);
        }
    }

    fn judge(&mut self, window: &mut Window) {
        let waited = self.delay.queueing();
        self.queue = u64::from(window.size) * waited / self.delay.least;
        if self.queue > self.alpha || waited > self.delay.base / self.phi {
            self.decongest(window);
            let begins = self.reno_window <= NO_RENO;
            self.reno_window = if begins { (window.size / 2).max(2) } else { self.reno_window + 1 };
            self.slow_rounds += 1;
        } else {
            self.fast_rounds += 1;
            if self.fast_rounds > self.zeta {
                (self.reno_window, self.fast_rounds) = (NO_RENO, 0);
            }
            self.slow_rounds = 0;
        }
    }

    fn decongest(&self, window: &mut Window) {
        if self.queue > self.alpha && window.size > self.reno_window {
            let cut = self.queue.min(u64::from(window.size / 2)) as u32;
            window.size = (window.size - cut).max(self.reno_window);
            window.threshold = window.size;
        }
    }
}

impl Growth for Yeah {
    /// The greatest window of Linux: its arithmetic has 32 bits.
    fn start(&mut self, window: &mut Window, _path: &PathInfo, _cx: &mut Context<'_>) {
        window.clamp = window.clamp.min(u32::MAX / 128);
    }

    fn grow(&mut self, window: &mut Window, acked: u32, feedback: &Feedback, _cx: &mut Context<'_>) {
        self.increase(window, acked);
        if self.delay.ends(feedback) {
            if self.delay.is_telling() {
                self.judge(window);
            }
            self.delay.forget_round();
        }
    }

    fn threshold(&mut self, window: &Window, _cx: &mut Context<'_>) -> u32 {
        let half = (window.size / 2).max(2);
        let cut = if self.slow_rounds < self.rho {
            (self.queue.min(u64::from(half)) as u32).max(window.size >> LEAST_DECREASE_SHIFT)
        } else {
            half
        };
        self.fast_rounds = 0;
        self.reno_window = (self.reno_window / 2).max(NO_RENO);
        window.size.saturating_sub(cut).max(2)
    }

    fn measure(&mut self, _window: &mut Window, feedback: &Feedback, _cx: &mut Context<'_>) {
        self.delay.add(feedback);
    }

    fn change_phase(&mut self, _window: &mut Window, next: Phase, _cx: &mut Context<'_>) {
        self.delay.change_phase(next);
    }

    fn transmission_starts(&mut self, _window: &mut Window, _idle: Span, _cx: &mut Context<'_>) {
        self.delay.forget_base();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{context, defaults};
    use units::Stream;

    /// A flow and its window of 1000 packets after a round at this RTT; the base is 100 ms.
    fn after_a_round(rtt_ms: u64) -> (Yeah, Window) {
        let (mut yeah, mut window) =
            (Yeah::new(&defaults(&ENTRY)), Window { size: 1000, threshold: 2, ..Window::default() });
        (yeah.delay.base, yeah.delay.least, yeah.delay.samples) = (100_000, rtt_ms * 1000, 3);
        let feedback = Feedback { una: 1, next: 1001, ..Feedback::default() };
        yeah.grow(&mut window, 0, &feedback, &mut context(0, &mut Stream::named(1, "test")));
        (yeah, window)
    }

    #[test]
    fn a_long_queue_is_given_back() {
        let after = |rtt_ms| {
            let (yeah, window) = after_a_round(rtt_ms);
            (yeah.queue, yeah.slow_rounds, window.size)
        };
        assert_eq!(after(105), (47, 0, 1000));
        assert_eq!(after(110), (90, 1, 910));
        assert_eq!(after(113), (115, 1, 885));
    }

    #[test]
    fn decongestion_stops_at_the_window_of_a_reno_flow() {
        let (mut yeah, mut window) = after_a_round(110);
        assert_eq!((yeah.reno_window, window.threshold), (455, 910));
        (yeah.reno_window, window.size) = (900, 1000);
        yeah.decongest(&mut window);
        assert_eq!(window.size, 910, "the queue of 90 is less");
        yeah.reno_window = 950;
        window.size = 1000;
        yeah.decongest(&mut window);
        assert_eq!(window.size, 950);
    }

    #[test]
    fn a_loss_costs_the_queue_within_an_eighth_and_a_half() {
        let window = Window { size: 1000, ..Window::default() };
        let after = |queue, slow_rounds| {
            let mut yeah = Yeah { queue, slow_rounds, ..Yeah::new(&defaults(&ENTRY)) };
            yeah.threshold(&window, &mut context(0, &mut Stream::named(1, "test")))
        };
        assert_eq!([after(47, 0), after(300, 15), after(900, 0), after(47, 16)], [875, 700, 500, 500]);
    }

    #[test]
    fn fast_mode_is_scalable_and_slow_mode_reno() {
        let grown = |slow_rounds| {
            let yeah = Yeah { slow_rounds, ..Yeah::new(&defaults(&ENTRY)) };
            let mut window = Window { size: 1000, threshold: 2, ..Window::default() };
            yeah.increase(&mut window, 1000);
            window.size
        };
        assert_eq!([grown(0), grown(1)], [1010, 1001]);
    }
}
