//! Veno: Reno that tells random loss from congestion by Vegas' measure of the queue.
//!
//! `diff = window - window base / rtt` estimates the packets this flow has queued.
//! - Increase: Reno; where `diff >= 3`, one packet every second window only.
//! - Decrease: by 1/5 where `diff < 3` (the loss was random), else by half.
//!
//! Source: Fu and Liew, "TCP Veno: TCP enhancement for transmission over wireless access networks" (JSAC 2003); integer
//! steps as in Linux 6.1 (`tcp_veno.c`).
//! Departures from the paper, Linux's: the RTT is the least since the last acknowledgement that could raise the window,
//! not that of a round trip; `diff` at a loss is the one of the last growth, and of the last full window.

use crate::frame::{self, Growth, Window, Windowed};
use crate::{Context, Default as Range, Entry, Feedback, Make, Parameter, Phase, Settings};
use units::Span;

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "veno",
    aliases: &[],
    title: "Reno that spares the window when a loss looks random",
    source: "Fu and Liew, JSAC 2003; Linux 6.1 tcp_veno.c",
    parameters: &[
        Parameter {
            name: "beta",
            meaning: "packets in the queue from which a loss counts as congestion (halves)",
            default: Range::Number { value: 3.0, least: 0.0, most: 1000.0 },
        },
        Parameter {
            name: "random_decrease",
            meaning: "window after a loss that looks random, as a share of the window before it",
            default: Range::Number { value: 0.8, least: 0.5, most: 1.0 },
        },
    ],
    make: Make::Single(|settings| Windowed::boxed(Veno::new(settings))),
};

/// At first there are too few samples to judge; the count is never begun anew.
const FEW_SAMPLES: u32 = 2;
/// No RTT yet, microseconds.
const UNKNOWN: u64 = 0x7fff_ffff;
/// `random_decrease` in 1/1000.
const MILLE: u64 = 1000;

/// Veno's own part of a window.
#[derive(Debug)]
pub struct Veno {
    /// In half packets, as `diff`.
    beta: u64,
    random_decrease: u64,
    base: u64,
    least: u64,
    samples: u32,
    diff: u64,
    /// The next full window grows.
    turn: bool,
}

impl Veno {
    fn new(settings: &Settings) -> Self {
        Self {
            beta: (settings.number("beta") * 2.0) as u64,
            random_decrease: libm::round(settings.number("random_decrease") * MILLE as f64) as u64,
            base: UNKNOWN,
            least: UNKNOWN,
            samples: 0,
            diff: 0,
            turn: true,
        }
    }

    fn judge(&mut self, window: u32) {
        let size = 2 * u64::from(window);
        self.diff = size - size * self.base / self.least;
    }

    /// One packet every second window.
    fn increase_slowly(&mut self, window: &mut Window, acked: u32) {
        if window.credit < window.size {
            window.credit += acked;
            return;
        }
        window.credit = 0;
        let grows = self.turn && window.size < window.clamp;
        window.size += u32::from(grows);
        self.turn = !grows;
    }
}

impl Growth for Veno {
    fn grow(&mut self, window: &mut Window, acked: u32, _feedback: &Feedback, _cx: &mut Context<'_>) {
        if window.phase != Phase::Open {
            return frame::reno_increase(window, acked);
        }
        if self.samples <= FEW_SAMPLES {
            frame::reno_increase(window, acked);
        } else {
            self.judge(window.size);
            let left = if window.in_slow_start() { frame::slow_start(window, acked) } else { acked };
            if left > 0 && self.diff < self.beta {
                frame::additive_increase(window, window.size, left);
            } else if left > 0 {
                self.increase_slowly(window, left);
            }
            window.size = window.size.max(2);
        }
        self.least = UNKNOWN;
    }

    fn threshold(&mut self, window: &Window, _cx: &mut Context<'_>) -> u32 {
        if self.diff < self.beta {
            ((u64::from(window.size) * self.random_decrease / MILLE) as u32).max(2)
        } else {
            frame::reno_threshold(window)
        }
    }

    /// Its cut is smaller than a half on purpose.
    fn floor(&self, window: &Window) -> u32 {
        window.threshold
    }

    fn measure(&mut self, _window: &mut Window, feedback: &Feedback, _cx: &mut Context<'_>) {
        if let Some(rtt) = feedback.rtt {
            // One microsecond more, so that no RTT is ever zero.
            let rtt = (rtt.as_micros() + 1).min(UNKNOWN);
            (self.base, self.least) = (self.base.min(rtt), self.least.min(rtt));
            self.samples = self.samples.saturating_add(1);
        }
    }

    fn change_phase(&mut self, _window: &mut Window, next: Phase, _cx: &mut Context<'_>) {
        if next == Phase::Open {
            self.least = UNKNOWN;
        }
    }

    /// After a pause the route may have changed.
    fn transmission_starts(&mut self, _window: &mut Window, _idle: Span, _cx: &mut Context<'_>) {
        (self.base, self.least, self.turn) = (UNKNOWN, UNKNOWN, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{context, defaults};
    use units::Stream;

    /// A flow in congestion avoidance that has just seen these RTTs.
    fn veno(base_ms: u64, rtt_ms: u64) -> Veno {
        Veno { base: base_ms * 1000, least: rtt_ms * 1000, samples: 3, ..Veno::new(&defaults(&ENTRY)) }
    }

    #[test]
    fn a_loss_with_fewer_than_three_packets_queued_costs_a_fifth() {
        for (window, rtt, diff, threshold) in [(20, 110, 4, 16), (20, 118, 7, 10), (40, 110, 8, 20)] {
            let mut veno = veno(100, rtt);
            veno.judge(window);
            assert_eq!(veno.diff, diff, "in half packets");
            let window = Window { size: window, ..Window::default() };
            assert_eq!(veno.threshold(&window, &mut context(0, &mut Stream::named(1, "test"))), threshold);
        }
    }

    /// Acknowledgements of one packet, at this RTT, until the window has grown.
    fn acks_to_grow(rtt_ms: u64, size: u32) -> u32 {
        let mut veno = veno(100, rtt_ms);
        let mut window = Window { size, threshold: 2, ..Window::default() };
        // The first packet has been grown by: the flag has turned.
        veno.turn = false;
        let mut stream = Stream::named(1, "test");
        let mut acks = 0;
        while window.size == size {
            acks += 1;
            veno.least = rtt_ms * 1000;
            veno.grow(&mut window, 1, &Feedback::default(), &mut context(0, &mut stream));
        }
        acks
    }

    #[test]
    fn a_queue_halves_the_growth() {
        assert_eq!(acks_to_grow(101, 20), 20);
        assert_eq!(acks_to_grow(150, 20), 42, "two windows, each with the acknowledgement that finds it full");
    }

    #[test]
    fn outside_the_open_phase_veno_is_reno() {
        let mut veno = veno(100, 150);
        let mut window = Window { size: 20, threshold: 2, phase: Phase::Disorder, ..Window::default() };
        veno.grow(&mut window, 20, &Feedback::default(), &mut context(0, &mut Stream::named(1, "test")));
        assert_eq!((window.size, veno.diff), (21, 0));
    }
}
