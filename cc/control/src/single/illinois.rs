//! TCP Illinois: loss decides when to shrink, delay decides how fast to grow and how much to shrink.
//!
//! Once a round trip, with the mean queueing delay of the round `da` and the greatest ever `dm`:
//! - Increase: `alpha` packets a window, 10 while `da` is within 1 % of `dm`, then falling as `k1 / (k2 + da)` to 0.3.
//!   Once it has fallen, five rounds without delay bring it back.
//! - Decrease: by `beta` of the window, 1/8 up to `da = 0.1 dm`, rising in a line to 1/2 at `0.8 dm`.
//! - Reno (1, 1/2) below 15 packets and after a timeout.
//!
//! Source: Liu, Basar, Srikant, "TCP-Illinois: a loss- and delay-based congestion control algorithm for high-speed
//! networks" (Performance Evaluation 2008); fixed point and order as in Linux 6.1 (`tcp_illinois.c`).
//! Departures from the paper, Linux's: `alpha` starts at its greatest; the greatest delay is never forgotten, so that one
//! freak RTT makes the flow bold for ever; what slow start leaves of an acknowledgement is dropped.

use crate::frame::{self, Growth, Round, Window, Windowed};
use crate::{Context, Default as Range, Entry, Feedback, Make, Parameter, Phase, Settings};

/// The registry's line.
pub const ENTRY: Entry = Entry {
    name: "illinois",
    aliases: &[],
    title: "loss-based, with steps sized by the queueing delay",
    source: "Liu, Basar, Srikant, Performance Evaluation 2008; Linux 6.1 tcp_illinois.c",
    parameters: &[
        Parameter {
            name: "alpha_min",
            meaning: "growth at the greatest delay, packets a round trip",
            default: Range::Number { value: 0.3, least: 0.01, most: 10.0 },
        },
        Parameter {
            name: "alpha_max",
            meaning: "growth without delay, packets a round trip",
            default: Range::Number { value: 10.0, least: 0.01, most: 1000.0 },
        },
        Parameter {
            name: "beta_min",
            meaning: "decrease at little delay, as a share of the window",
            default: Range::Number { value: 0.125, least: 0.0, most: 0.9 },
        },
        Parameter {
            name: "beta_max",
            meaning: "decrease at much delay, as a share of the window",
            default: Range::Number { value: 0.5, least: 0.0, most: 0.9 },
        },
        Parameter {
            name: "window_threshold",
            meaning: "Reno below so many packets",
            default: Range::Number { value: 15.0, least: 0.0, most: 1e6 },
        },
        Parameter {
            name: "theta",
            meaning: "rounds without delay that bring alpha back to its greatest",
            default: Range::Number { value: 5.0, least: 0.0, most: 255.0 },
        },
    ],
    make: Make::Single(|settings| Windowed::boxed(Illinois::new(settings))),
};

/// Alpha is kept in 1/128, beta in 1/64.
const ALPHA_ONE: u64 = 128;
const BETA_ONE: u64 = 64;
/// Reno's halving.
const BETA_RENO: u64 = BETA_ONE / 2;
/// RTTs are taken for at most this many microseconds, 3.3 s.
const LONGEST: u64 = u32::MAX as u64 / 1280;

/// Illinois' own part of a window.
#[derive(Debug)]
pub struct Illinois {
    bounds: Bounds,
    alpha: u64,
    beta: u64,
    /// Packets of the latest acknowledgement, to be counted once.
    acked: u32,
    base: u64,
    most: u64,
    round: Round,
    sum: u64,
    samples: u64,
    /// The delay has risen since alpha was last at its greatest, and for so many rounds there was none.
    risen: bool,
    low_rounds: u64,
    reset: bool,
}

/// The constants, in fixed point.
#[derive(Debug)]
struct Bounds {
    alpha: (u64, u64),
    beta: (u64, u64),
    window: u32,
    theta: u64,
}

impl Bounds {
    fn new(settings: &Settings) -> Self {
        let pair = |low, high, one: u64| {
            let at = |name| (settings.number(name) * one as f64) as u64;
            (at(low), at(high).max(at(low)))
        };
        Self {
            alpha: pair("alpha_min", "alpha_max", ALPHA_ONE),
            beta: pair("beta_min", "beta_max", BETA_ONE),
            window: settings.number("window_threshold") as u32,
            theta: settings.number("theta") as u64,
        }
    }

    /// The hyperbola through (0, greatest) and (dm, least).
    fn alpha_at(&self, da: u64, dm: u64) -> u64 {
        let (least, most) = self.alpha;
        dm * most / (dm + da * (most - least) / least)
    }

    fn beta_at(&self, da: u64, dm: u64) -> u64 {
        let ((least, most), (low, high)) = (self.beta, (dm / 10, 8 * dm / 10));
        if da <= low {
            least
        } else if da >= high {
            most
        } else {
            (least * high + (most - least) * da - most * low) / (high - low)
        }
    }
}

impl Illinois {
    fn new(settings: &Settings) -> Self {
        let bounds = Bounds::new(settings);
        Self {
            alpha: bounds.alpha.1,
            beta: BETA_RENO,
            bounds,
            acked: 0,
            base: u64::MAX,
            most: 0,
            round: Round::default(),
            sum: 0,
            samples: 0,
            risen: false,
            low_rounds: 0,
            reset: false,
        }
    }

    fn adapt(&mut self, window: u32) {
        if window < self.bounds.window {
            (self.alpha, self.beta) = (ALPHA_ONE, BETA_RENO);
        } else if let Some(mean) = self.sum.checked_div(self.samples) {
            let (da, dm) = (mean - self.base, self.most - self.base);
            self.alpha = self.next_alpha(da, dm);
            self.beta = self.bounds.beta_at(da, dm);
        }
        (self.sum, self.samples) = (0, 0);
    }

    fn next_alpha(&mut self, da: u64, dm: u64) -> u64 {
        let slack = dm / 100;
        if da > slack {
            self.risen = true;
            return self.bounds.alpha_at(da - slack, dm - slack);
        }
        if self.risen {
            self.low_rounds += 1;
            if self.low_rounds < self.bounds.theta {
                return self.alpha;
            }
            (self.risen, self.low_rounds) = (false, 0);
        }
        self.bounds.alpha.1
    }

    /// About alpha packets a window.
    fn increase(&mut self, window: &mut Window) {
        window.credit += std::mem::replace(&mut self.acked, 1);
        let delta = ((u64::from(window.credit) * self.alpha) >> ALPHA_ONE.ilog2()) as u32;
        if delta >= window.size {
            window.size = (window.size + delta / window.size).min(window.clamp);
            window.credit = 0;
        }
    }
}

impl Growth for Illinois {
    /// The rounds go on while the window is not filled; it does not grow.
    fn grows_unfilled(&self) -> bool {
        true
    }

    fn grow(&mut self, window: &mut Window, acked: u32, feedback: &Feedback, _cx: &mut Context<'_>) {
        if self.round.ends(feedback) {
            self.adapt(window.size);
        }
        if !feedback.window_limited {
            return;
        }
        if window.in_slow_start() {
            frame::slow_start(window, acked);
        } else {
            self.increase(window);
        }
    }

    fn threshold(&mut self, window: &Window, _cx: &mut Context<'_>) -> u32 {
        let cut = (u64::from(window.size) * self.beta) >> BETA_ONE.ilog2();
        (window.size - cut as u32).max(2)
    }

    fn measure(&mut self, _window: &mut Window, feedback: &Feedback, _cx: &mut Context<'_>) {
        if std::mem::take(&mut self.reset) {
            self.round.restart(feedback);
        }
        self.acked = feedback.released;
        if let Some(rtt) = feedback.rtt {
            let rtt = rtt.as_micros().min(LONGEST);
            (self.base, self.most) = (self.base.min(rtt), self.most.max(rtt));
            (self.sum, self.samples) = (self.sum + rtt, self.samples + 1);
        }
    }

    fn change_phase(&mut self, _window: &mut Window, next: Phase, _cx: &mut Context<'_>) {
        if next == Phase::Loss {
            (self.alpha, self.beta) = (ALPHA_ONE, BETA_RENO);
            (self.risen, self.low_rounds) = (false, 0);
            (self.sum, self.samples) = (0, 0);
            self.reset = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::{context, defaults};
    use units::{Span, Stream};

    /// Alpha in packets and beta in 1/64 after a round with this mean delay; 100 ms is the greatest.
    fn after_a_round(da: u64) -> (f64, u64) {
        let mut illinois = Illinois::new(&defaults(&ENTRY));
        (illinois.base, illinois.most) = (50_000, 150_000);
        (illinois.sum, illinois.samples) = (4 * (50_000 + da), 4);
        illinois.adapt(100);
        (illinois.alpha as f64 / 128.0, illinois.beta)
    }

    #[test]
    fn alpha_falls_and_beta_rises_with_the_delay() {
        let known = [(500, 10.0, 8), (1_000, 10.0, 8), (10_000, 2.516, 8), (50_000, 0.578, 21)];
        for (da, alpha, beta) in known.into_iter().chain([(80_000, 0.367, 32), (100_000, 0.297, 32)]) {
            let (ours, our_beta) = after_a_round(da);
            assert!((ours - alpha).abs() < 0.0005 && our_beta == beta, "{da} us: {ours}, {our_beta}");
        }
    }

    #[test]
    fn small_windows_are_renos() {
        let mut illinois = Illinois::new(&defaults(&ENTRY));
        illinois.adapt(14);
        assert_eq!((illinois.alpha, illinois.beta), (128, 32));
    }

    #[test]
    fn alpha_comes_back_after_five_rounds_without_delay() {
        let mut illinois = Illinois::new(&defaults(&ENTRY));
        (illinois.base, illinois.most) = (50_000, 150_000);
        let mut round = |delay: u64| {
            (illinois.sum, illinois.samples) = (50_000 + delay, 1);
            illinois.adapt(100);
            illinois.alpha
        };
        assert_eq!([100_000, 0, 0, 0, 0, 0].map(&mut round), [38, 38, 38, 38, 38, 1280]);
    }

    #[test]
    fn grows_ten_packets_a_window_without_delay() {
        let mut illinois = Illinois::new(&defaults(&ENTRY));
        let mut window = Window { size: 100, threshold: 2, ..Window::default() };
        let mut stream = Stream::named(1, "test");
        for una in 1..=5 {
            let feedback = Feedback { released: 2, window_limited: true, una, next: 1_000, ..Feedback::default() };
            illinois.measure(&mut window, &feedback, &mut context(0, &mut stream));
            illinois.grow(&mut window, 2, &feedback, &mut context(0, &mut stream));
        }
        assert_eq!((window.size, window.credit), (101, 0), "one packet for ten of a hundred");
    }

    #[test]
    fn a_timeout_falls_back_to_reno_and_begins_a_round() {
        let mut illinois = Illinois::new(&defaults(&ENTRY));
        let mut window = Window { size: 100, threshold: 2, ..Window::default() };
        let mut stream = Stream::named(1, "test");
        let feedback = Feedback { rtt: Some(Span::from_millis(50)), ..Feedback::default() };
        illinois.measure(&mut window, &feedback, &mut context(0, &mut stream));
        illinois.change_phase(&mut window, Phase::Loss, &mut context(0, &mut stream));
        assert_eq!((illinois.alpha, illinois.beta, illinois.samples), (128, 32, 0));
    }
}
