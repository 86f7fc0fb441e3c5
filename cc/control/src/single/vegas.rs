//! Vegas: keep a few packets queued, judged by delay.
//!
//! Once a round trip, with the least RTT of the round and the least ever (`base`):
//! `diff = window (rtt - base) / base`, about the packets this flow has in the queue.
//! - Increase: one packet where `diff < alpha`. Decrease: one packet where `diff > beta`.
//! - Slow start ends where `diff > gamma`, at what the path carries without queue: `window base / rtt`.
//! - Loss: half, as Reno. Reno's growth in a round with too few samples and outside the open phase.
//!
//! Source: Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global internet" (JSAC 1995); integer
//! steps as in Linux 6.1 (`tcp_vegas.c`).
//! Departures from the paper, all Linux's: `diff` is scaled by rtt / base and so reacts a little earlier; slow start
//! doubles every round trip instead of every other; no retransmission rules of its own.

use crate::frame::{self, Growth, RoundDelay, Window, Windowed};
use crate::{Context, Default as Range, Entry, Feedback, Make, Parameter, Phase, Settings};
use units::Span;

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "vegas",
    aliases: &[],
    title: "delay-based: keeps two to four packets in the queue",
    source: "Brakmo and Peterson, JSAC 1995; Linux 6.1 tcp_vegas.c",
    parameters: &[
        Parameter {
            name: "alpha",
            meaning: "grow while fewer packets than this are queued",
            default: Range::Number { value: 2.0, least: 0.0, most: 1000.0 },
        },
        Parameter {
            name: "beta",
            meaning: "shrink while more packets than this are queued",
            default: Range::Number { value: 4.0, least: 0.0, most: 1000.0 },
        },
        Parameter {
            name: "gamma",
            meaning: "leave slow start when more packets than this are queued",
            default: Range::Number { value: 1.0, least: 0.0, most: 1000.0 },
        },
    ],
    make: Make::Single(|settings| Windowed::boxed(Vegas::new(settings))),
};

/// Vegas' own part of a window.
#[derive(Debug)]
pub struct Vegas {
    alpha: u64,
    beta: u64,
    gamma: u64,
    delay: RoundDelay,
}

impl Vegas {
    fn new(settings: &Settings) -> Self {
        let packets = |name| settings.number(name) as u64;
        Self { alpha: packets("alpha"), beta: packets("beta"), gamma: packets("gamma"), delay: RoundDelay::default() }
    }

    /// The step at the end of a round.
    fn judge(&self, window: &mut Window, acked: u32) {
        let size = u64::from(window.size);
        let RoundDelay { base, least, .. } = self.delay;
        let (target, queued) = (size * base / least, size * self.delay.queueing() / base);
        if window.in_slow_start() {
            if queued > self.gamma {
                window.size = window.size.min(target as u32 + 1);
                window.threshold = window.threshold.min(window.size);
            } else {
                frame::slow_start(window, acked);
            }
        } else if queued > self.beta {
            window.size -= 1;
            window.threshold = window.threshold.min(window.size);
        } else if queued < self.alpha {
            window.size += 1;
        }
        window.size = window.size.min(window.clamp).max(2);
        window.threshold = window.current_threshold().max(2);
    }
}

fn reno(window: &mut Window, acked: u32, feedback: &Feedback) {
    if feedback.window_limited {
        frame::reno_increase(window, acked);
    }
}

impl Growth for Vegas {
    /// The queue tells Vegas what the path carries, however much of the window is used.
    fn grows_unfilled(&self) -> bool {
        true
    }

    fn grow(&mut self, window: &mut Window, acked: u32, feedback: &Feedback, _cx: &mut Context<'_>) {
        if window.phase != Phase::Open {
            return reno(window, acked, feedback);
        }
        if self.delay.ends(feedback) {
            if self.delay.is_telling() {
                self.judge(window, acked);
            } else {
                reno(window, acked, feedback);
            }
            self.delay.forget_round();
        } else if window.in_slow_start() {
            frame::slow_start(window, acked);
        }
    }

    fn threshold(&mut self, window: &Window, _cx: &mut Context<'_>) -> u32 {
        frame::reno_threshold(window)
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

    /// A round of three samples ends; the base RTT is 100 ms.
    fn after_a_round(rtt_ms: u64, mut window: Window) -> Window {
        let mut vegas = Vegas::new(&defaults(&ENTRY));
        (vegas.delay.base, vegas.delay.least, vegas.delay.samples) = (100_000, rtt_ms * 1000, 3);
        let feedback = Feedback { una: 1, next: 51, window_limited: true, ..Feedback::default() };
        vegas.grow(&mut window, 1, &feedback, &mut context(0, &mut Stream::named(1, "test")));
        window
    }

    #[test]
    fn holds_two_to_four_packets_in_the_queue() {
        let at = |rtt| after_a_round(rtt, Window { size: 50, threshold: 2, ..Window::default() }).size;
        assert_eq!([at(104), at(106), at(110), at(101)], [50, 50, 49, 51]);
    }

    #[test]
    fn slow_start_ends_at_what_the_path_carries_without_queue() {
        let after = after_a_round(110, Window { size: 50, ..Window::default() });
        assert_eq!((after.size, after.threshold), (46, 46), "50 * 100 / 110 + 1");
        assert_eq!(after_a_round(101, Window { size: 50, ..Window::default() }).size, 51);
    }

    #[test]
    fn shrinking_takes_the_threshold_along() {
        let after = after_a_round(110, Window { size: 50, threshold: 50, ..Window::default() });
        assert_eq!((after.size, after.threshold), (49, 49));
    }

    #[test]
    fn a_round_with_two_samples_is_renos() {
        let mut vegas = Vegas::new(&defaults(&ENTRY));
        let mut window = Window { size: 50, threshold: 2, ..Window::default() };
        let mut stream = Stream::named(1, "test");
        (vegas.delay.base, vegas.delay.least, vegas.delay.samples) = (100_000, 110_000, 2);
        let feedback = Feedback { una: 1, next: 51, window_limited: true, ..Feedback::default() };
        vegas.grow(&mut window, 50, &feedback, &mut context(0, &mut stream));
        assert_eq!(window.size, 51);
    }

    #[test]
    fn an_rtt_below_the_clock_is_one_microsecond() {
        let mut vegas = Vegas::new(&defaults(&ENTRY));
        let feedback = Feedback { rtt: Some(Span::ZERO), ..Feedback::default() };
        vegas.measure(&mut Window::default(), &feedback, &mut context(0, &mut Stream::named(1, "test")));
        assert_eq!((vegas.delay.base, vegas.delay.least, vegas.delay.samples), (1, 1, 1));
    }

    #[test]
    fn the_base_is_forgotten_when_transmission_starts_again() {
        let mut vegas = Vegas::new(&defaults(&ENTRY));
        vegas.delay.base = 100_000;
        let mut stream = Stream::named(1, "test");
        vegas.transmission_starts(&mut Window::default(), Span::ZERO, &mut context(0, &mut stream));
        assert_eq!(vegas.delay.base, u64::MAX);
    }
}
