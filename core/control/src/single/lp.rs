//! TCP-LP: take only what others leave.
//!
//! A low-priority flow gives way to a queue before anyone loses a packet:
//! - **Early congestion**: the smoothed one-way delay is not below `min + 0.15 (max - min)` of the delays seen.
//! - The first time half the window goes; again within three round trips (the *inference* time), all but one packet.
//!   During the inference time the window does not grow.
//! - Everything else is Reno's.
//!
//! What it needs from the machine: `Feedback::one_way_delay`. Where that is unknown (without timestamps) it is Reno, as
//! in Linux; or the RTT may stand in for it, but then a queue on the way back makes the flow yield too.
//!
//! Source: Kuzmanovic and Knightly, "TCP-LP: a distributed algorithm for low priority data transfer" (INFOCOM 2003);
//! order and integers as in Linux 6.1 (`tcp_lp.c`), in microseconds.
//! Departures from the paper, all Linux's: the greatest delay is the second greatest seen; early congestion forgets
//! both extremes; growth after it may be slow start; the comparison is strict, so that the very first sample (the least
//! and the greatest at once) halves the window. Departure from Linux: the delay is the path's (Linux estimates it from
//! timestamps of unsynchronised clocks, which rarely works).

use crate::frame::{self, Growth, Window, Windowed};
use crate::{Context, Default as Range, Entry, Feedback, Make, Parameter, Settings};
use units::{Instant, Span};

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "lp",
    aliases: &["tcp-lp"],
    title: "low priority: gives way as soon as the one-way delay rises",
    source: "Kuzmanovic and Knightly, INFOCOM 2003; Linux 6.1 tcp_lp.c",
    parameters: &[
        Parameter {
            name: "threshold",
            meaning: "early congestion begins at this share of the range of delays",
            default: Range::Number { value: 0.15, least: 0.0, most: 1.0 },
        },
        Parameter {
            name: "inference",
            meaning: "how long early congestion is watched and growth suspended, round trips",
            default: Range::Number { value: 3.0, least: 0.0, most: 100.0 },
        },
        Parameter {
            name: "rtt",
            meaning: "whether the round-trip time stands in for a one-way delay that is not known",
            default: Range::Word(&["off", "on"]),
        },
    ],
    make: Make::Single(|settings| Windowed::boxed(Lp::new(settings))),
};

/// TCP-LP's own part of a window.
#[derive(Debug)]
pub struct Lp {
    threshold: f64,
    inference_rounds: f64,
    rtt_stands_in: bool,
    delays: Delays,
    inference: Span,
    /// The latest early congestion.
    yielded: Option<Instant>,
    inferring: bool,
}

/// One-way delays, microseconds.
#[derive(Debug, Default)]
struct Delays {
    /// Eight times the smoothed delay; zero before the first sample.
    smoothed8: u64,
    least: u64,
    most: u64,
    /// The greatest ever, kept back: it may be an outlier.
    record: u64,
}

impl Delays {
    fn smoothed(&self) -> u64 {
        self.smoothed8 / 8
    }

    fn add(&mut self, delay: u64) {
        if self.smoothed8 == 0 {
            *self = Self { smoothed8: delay * 8, least: delay, most: delay, record: delay };
            return;
        }
        self.least = self.least.min(delay);
        if delay > self.record {
            self.most = std::mem::replace(&mut self.record, delay);
        } else {
            self.most = self.most.max(delay);
        }
        self.smoothed8 = self.smoothed8 - self.smoothed() + delay;
    }

    fn are_short(&self, threshold: f64) -> bool {
        let range = self.most.saturating_sub(self.least);
        self.smoothed() < self.least + (range as f64 * threshold) as u64
    }

    fn forget_extremes(&mut self) {
        let smoothed = self.smoothed();
        (self.least, self.most, self.record) = (smoothed, 2 * smoothed, 2 * smoothed);
    }
}

impl Lp {
    fn new(settings: &Settings) -> Self {
        Self {
            threshold: settings.number("threshold"),
            inference_rounds: settings.number("inference"),
            rtt_stands_in: settings.word("rtt") == "on",
            delays: Delays::default(),
            inference: Span::ZERO,
            yielded: None,
            inferring: false,
        }
    }

    fn give_way(&mut self, window: &mut Window, now: Instant) {
        self.delays.forget_extremes();
        window.size = if self.inferring { 1 } else { (window.size / 2).max(1) };
        self.yielded = Some(now);
    }
}

impl Growth for Lp {
    fn grow(&mut self, window: &mut Window, acked: u32, _feedback: &Feedback, _cx: &mut Context<'_>) {
        if !self.inferring {
            frame::reno_increase(window, acked);
        }
    }

    fn threshold(&mut self, window: &Window, _cx: &mut Context<'_>) -> u32 {
        frame::reno_threshold(window)
    }

    fn measure(&mut self, window: &mut Window, feedback: &Feedback, cx: &mut Context<'_>) {
        let stand_in = feedback.rtt.filter(|_| self.rtt_stands_in);
        let Some(delay) = feedback.one_way_delay.or(stand_in) else { return };
        self.delays.add(delay.as_micros().max(1));
        if let Some(rtt) = feedback.rtt {
            self.inference = Span::from_secs_f64(rtt.as_secs_f64() * self.inference_rounds);
        }
        self.inferring = self.yielded.is_some_and(|yielded| cx.now.since(yielded) < self.inference);
        if !self.delays.are_short(self.threshold) {
            self.give_way(window, cx.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{context, defaults};
    use units::Stream;

    /// A flow that has seen delays of 20 to 60 ms and now smooths to this many.
    fn lp(smoothed_ms: u64) -> Lp {
        let delays = Delays { smoothed8: smoothed_ms * 8000, least: 20_000, most: 60_000, record: 60_000 };
        Lp { delays, ..Lp::new(&defaults(&ENTRY)) }
    }

    /// One more sample of this delay, 40 ms round trip.
    fn sample(lp: &mut Lp, window: &mut Window, delay_ms: u64, now_ms: u64) {
        let feedback = Feedback {
            rtt: Some(Span::from_millis(40)),
            one_way_delay: Some(Span::from_millis(delay_ms)),
            ..Feedback::default()
        };
        lp.measure(window, &feedback, &mut context(now_ms, &mut Stream::named(1, "test")));
    }

    fn window(size: u32) -> Window {
        Window { size, threshold: 2, ..Window::default() }
    }

    #[test]
    fn early_congestion_begins_at_15_percent_of_the_range() {
        let mut window = window(40);
        sample(&mut lp(25), &mut window, 25, 1000);
        assert_eq!(window.size, 40, "25 ms of 20 to 60: below 26");
        sample(&mut lp(26), &mut window, 26, 1000);
        assert_eq!(window.size, 20);
    }

    #[test]
    fn early_congestion_again_within_three_round_trips_leaves_one_packet() {
        let (mut lp, mut window) = (lp(26), window(40));
        sample(&mut lp, &mut window, 26, 1000);
        lp.delays = Delays { smoothed8: 26 * 8000, least: 20_000, most: 60_000, record: 60_000 };
        sample(&mut lp, &mut window, 26, 1119);
        assert_eq!(window.size, 1);
    }

    #[test]
    fn three_round_trips_later_it_is_half_again() {
        let (mut lp, mut window) = (lp(26), window(40));
        sample(&mut lp, &mut window, 26, 1000);
        lp.delays = Delays { smoothed8: 26 * 8000, least: 20_000, most: 60_000, record: 60_000 };
        sample(&mut lp, &mut window, 26, 1120);
        assert_eq!(window.size, 10);
    }

    #[test]
    fn the_window_does_not_grow_while_it_infers() {
        let (mut lp, mut window) = (lp(26), window(40));
        sample(&mut lp, &mut window, 26, 1000);
        let grown = |lp: &mut Lp, window: &mut Window, now| {
            sample(lp, window, 26, now);
            lp.grow(window, 20, &Feedback::default(), &mut context(now, &mut Stream::named(1, "test")));
            window.size
        };
        assert_eq!(grown(&mut lp, &mut window, 1119), 20, "26 is below 26 + 0.15 * 26, but within 120 ms");
        assert_eq!(grown(&mut lp, &mut window, 1120), 21);
    }

    #[test]
    fn the_very_first_sample_halves_the_window() {
        let (mut lp, mut window) = (Lp::new(&defaults(&ENTRY)), window(10));
        sample(&mut lp, &mut window, 20, 1000);
        assert_eq!(window.size, 5);
        sample(&mut lp, &mut window, 20, 1040);
        assert_eq!(window.size, 5, "from then on the range is 20 to 40 ms");
    }

    #[test]
    fn one_outlier_does_not_widen_the_range() {
        let mut delays = Delays::default();
        [20, 30, 500, 40].into_iter().for_each(|ms| delays.add(ms));
        assert_eq!((delays.least, delays.most, delays.record), (20, 40, 500));
        delays.add(600);
        assert_eq!((delays.most, delays.record), (500, 600));
    }

    #[test]
    fn without_a_shared_clock_it_is_reno_or_the_rtt_stands_in() {
        let size = |rtt_stands_in| {
            let (mut lp, mut window) = (Lp { rtt_stands_in, ..lp(26) }, window(40));
            let feedback = Feedback { rtt: Some(Span::from_millis(26)), ..Feedback::default() };
            lp.measure(&mut window, &feedback, &mut context(1000, &mut Stream::named(1, "test")));
            window.size
        };
        assert_eq!([false, true].map(size), [40, 20]);
    }
}
