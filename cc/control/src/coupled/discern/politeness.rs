//! Politeness: a flow whose own backing off empties the queue as if nobody else were there is alone, and needs no queue.
//!
//! While a queue stands, the window is backed off now and then to the part `left`. After three round trips the queue is
//! compared: from q0 to q1, where it would be `q_alone = left (b + q0) - b` (b: base RTT) if the path were ours alone. The own
//! share of the queue is `s = (q0 - q1) / (q0 - q_alone)`. Where `s > 3/4`, and the rate fell by less than half of the
//! reduction, the queue was ours. Three such verdicts make us *alone*: from then on the window is backed off as far as it
//! takes. Any other verdict, and a queue that halves while our packets in flight do not, shows others: no test for a while,
//! and CUBIC's window meanwhile. A test in which the application left the window unused says nothing.

use super::delay::Delay;
use super::round::{Ended, Round};
use super::window::Window;
use units::{Instant, RngStream, Span};

/// The share of the queue from which it is ours.
const OWN_SHARE: f64 = 0.75;
/// Verdicts that make us alone.
const VERDICTS: u32 = 3;
/// Base RTT of the RTT that a reduction aims at.
const AIM: f64 = 0.95;
/// The least part of the window that a test leaves, and a reduction when we are alone.
const FLOOR: [f64; 2] = [0.7, 0.1];
/// The chance of a test in a round, and of a reduction when we are alone.
const CHANCE: [f64; 2] = [0.25, 0.5];
/// The least window that a test leaves, packets.
const LEAST_WINDOW: f64 = 4.0;
/// After others were seen the first time, and later.
const PAUSES: [Span; 2] = [Span::from_secs(3), Span::from_secs(10)];
/// Others who are seen once in so long a time are no evidence for who was alone.
const DOUBT: Span = Span::from_secs(2);
/// Shortest time for a queue to settle, seconds.
const MIN_SETTLING: f64 = 0.06;

/// The window was backed off, to see what the queue does.
#[derive(Clone, Copy, Debug)]
struct Test {
    at: Instant,
    /// The queueing delay before, seconds.
    queueing: f64,
    /// The part of the window that was left.
    left: f64,
    /// The delivery rate before.
    rate: f64,
}

/// Whether the flow is alone on its path, and how that is found out.
#[derive(Debug, Default)]
pub(super) struct Politeness {
    alone: bool,
    test: Option<Test>,
    /// Verdicts in a row that the queue was ours.
    own_verdicts: u32,
    has_seen_others: bool,
    suspected: Instant,
    next_test: Instant,
}

/// What politeness looks at when a round ends.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) delay: &'a Delay,
    pub(super) round: &'a Round,
    pub(super) ended: Ended,
    pub(super) srtt: f64,
    /// Whether the window may be reduced now.
    pub(super) may_reduce: bool,
    pub(super) now: Instant,
}

impl View<'_> {
    /// Seconds in which a queue follows the window.
    fn settling(&self) -> f64 {
        (3.0 * (self.srtt + self.round.prior_queueing)).max(MIN_SETTLING)
    }
}

impl Politeness {
    /// Something else reduced the window: a test under way says nothing.
    pub(super) fn abandon_test(&mut self) {
        self.test = None;
    }

    /// A round has ended: judges a test that has lasted long enough, looks for others, or begins a test.
    pub(super) fn end_round(&mut self, view: &View<'_>, window: &mut Window, rng: &mut RngStream) {
        if let Some(test) = self.test {
            if view.now.since(test.at).as_secs_f64() >= view.settling() {
                self.test = None;
                self.judge(test, view, window.cwnd);
            }
        } else if self.sees_others(view, window) {
            self.on_others(view.now);
        } else if self.is_due(view, rng) {
            self.begin_test(view, window);
        }
    }

    fn judge(&mut self, test: Test, view: &View<'_>, cwnd: f64) {
        if !view.round.is_filled(0.7, cwnd) {
            return; // The application's pause says nothing.
        }
        let base = view.delay.base();
        let alone = (test.left * (base + test.queueing) - base).max(0.0);
        let own_share = (test.queueing - view.ended.least_queueing) / (test.queueing - alone).max(1e-4);
        let kept = (1.0 - 0.5 * (1.0 - test.left)).min(0.9);
        if own_share > OWN_SHARE && view.round.rate > kept * test.rate {
            self.own_verdicts = (self.own_verdicts + 1).min(VERDICTS);
            self.alone |= self.own_verdicts >= VERDICTS;
        } else {
            self.on_others(view.now);
        }
    }

    /// Whether the queue has halved although we did nothing.
    fn sees_others(&self, view: &View<'_>, window: &Window) -> bool {
        let prior = view.round.prior_queueing;
        let has_halved = prior > 1.5 * view.delay.standing() && view.ended.least_queueing < 0.5 * prior;
        let is_own = window.since_reduction(view.now) < 2.0 * view.settling();
        has_halved && !is_own && view.round.is_filled(0.8, window.cwnd)
    }

    fn is_due(&self, view: &View<'_>, rng: &mut RngStream) -> bool {
        let stands = view.ended.least_queueing > view.delay.standing();
        stands && view.now >= self.next_test && view.may_reduce && rng.chance(CHANCE[usize::from(self.alone)])
    }

    fn begin_test(&mut self, view: &View<'_>, window: &mut Window) {
        let (base, queueing) = (view.delay.base(), view.ended.least_queueing);
        let least = FLOOR[usize::from(self.alone)].max((LEAST_WINDOW / window.cwnd).min(1.0));
        let left = (AIM * base / (base + queueing)).max(least);
        let w_max = window.w_max().max(window.cwnd);
        window.reduce(left, view.now);
        if !self.alone {
            window.raise_w_max(w_max);
        }
        self.test = Some(Test { at: view.now, queueing, left, rate: view.round.rate });
    }

    /// The queue did not follow the own window: there are others.
    fn on_others(&mut self, now: Instant) {
        let pause = PAUSES[usize::from(self.has_seen_others)];
        self.has_seen_others = true;
        let suspected = std::mem::replace(&mut self.suspected, now);
        if self.alone && now.since(suspected) > DOUBT {
            return;
        }
        (self.alone, self.own_verdicts) = (false, 0);
        self.next_test = now + pause;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::single::testing::path;

    const BASE: f64 = 0.02;

    /// What a round shows whose queueing delay is this, in seconds, with a full window of 100 packets and this rate.
    struct Shown {
        delay: Delay,
        round: Round,
        ended: Ended,
    }

    impl Shown {
        fn new(queueing: f64, in_flight: f64, rate: f64) -> Self {
            let (mut delay, mut round) = (Delay::new(Instant::ZERO), Round::new(Instant::ZERO));
            (0..4).for_each(|_| {
                delay.on_sample(BASE, Instant::ZERO);
            });
            let ended = Ended { least_queueing: queueing, most_queueing: queueing };
            for _ in 0..3 {
                round.add_in_flight(in_flight);
                round.begin(ended, Instant::ZERO);
            }
            round.add_in_flight(in_flight);
            round.rate = rate;
            Self { delay, round, ended }
        }

        fn view(&self, seconds: f64) -> View<'_> {
            let now = Instant::ZERO + Span::from_secs_f64(seconds);
            View { delay: &self.delay, round: &self.round, ended: self.ended, srtt: 0.04, may_reduce: true, now }
        }
    }

    fn window(cwnd: f64) -> Window {
        let mut window = Window::new(&path(10, None));
        (window.cwnd, window.ssthresh) = (cwnd, 2.0);
        window
    }

    const TEST: Test = Test { at: Instant::ZERO, queueing: 0.02, left: 0.7, rate: 1_000.0 };

    /// The verdict on a test that left 0.7 of the window at a queueing delay of 20 ms and a base RTT of 20 ms: verdicts that
    /// the queue is ours, and whether others were seen.
    fn verdict(queueing: f64, in_flight: f64, rate: f64) -> (u32, bool) {
        let mut politeness = Politeness::default();
        politeness.judge(TEST, &Shown::new(queueing, in_flight, rate).view(1.0), 70.0);
        (politeness.own_verdicts, politeness.has_seen_others)
    }

    /// `q_alone = 0.7 (20 + 20) - 20 = 8 ms`; a share of 3/4 of the queue is 11 ms.
    #[test]
    fn a_queue_that_falls_by_three_quarters_of_what_it_would_if_we_were_alone_is_ours() {
        assert_eq!(verdict(0.008, 70.0, 1_000.0), (1, false));
        assert_eq!(verdict(0.0109, 70.0, 1_000.0), (1, false));
        assert_eq!(verdict(0.0111, 70.0, 1_000.0), (0, true));
        assert_eq!(verdict(0.020, 70.0, 1_000.0), (0, true), "others keep it");
    }

    #[test]
    fn a_rate_that_falls_by_half_of_the_reduction_shows_others() {
        assert_eq!([860.0, 840.0].map(|rate| verdict(0.008, 70.0, rate)), [(1, false), (0, true)]);
    }

    #[test]
    fn a_test_in_which_the_window_was_not_filled_says_nothing() {
        assert_eq!(verdict(0.020, 20.0, 1_000.0).1, true, "few packets in flight, but evenly");
        let mut shown = Shown::new(0.020, 70.0, 1_000.0);
        shown.round.add_in_flight(40.0);
        let mut politeness = Politeness::default();
        politeness.judge(TEST, &shown.view(1.0), 70.0);
        assert_eq!((politeness.own_verdicts, politeness.has_seen_others), (0, false));
    }

    #[test]
    fn three_verdicts_make_alone_and_two_sights_of_others_in_two_seconds_end_it() {
        let mut politeness = Politeness::default();
        for _ in 0..3 {
            assert!(!politeness.alone);
            politeness.judge(TEST, &Shown::new(0.008, 70.0, 1_000.0).view(1.0), 70.0);
        }
        assert!(politeness.alone);
        let others = Shown::new(0.020, 70.0, 1_000.0);
        for (seconds, alone) in [(10.0, true), (13.0, true), (14.0, false)] {
            politeness.judge(TEST, &others.view(seconds), 70.0);
            assert_eq!(politeness.alone, alone, "after {seconds} s");
        }
    }

    #[test]
    fn who_is_alone_backs_off_to_0_95_of_an_empty_queue_and_others_to_0_7() {
        for (alone, left) in [(false, 0.7), (true, 0.95 / 3.0)] {
            let mut politeness = Politeness { alone, ..Politeness::default() };
            let mut window = window(90.0);
            politeness.begin_test(&Shown::new(2.0 * BASE, 90.0, 1_000.0).view(1.0), &mut window);
            assert!((window.cwnd - 90.0 * left).abs() < 1e-9, "{}", window.cwnd);
        }
    }

    #[test]
    fn after_others_were_seen_there_is_no_test_for_3_and_later_for_10_seconds() {
        let mut politeness = Politeness::default();
        let after =
            |politeness: &Politeness, seconds| politeness.next_test.since(Instant::ZERO) > Span::from_secs(seconds);
        politeness.on_others(Instant::ZERO + Span::from_secs(1));
        assert!(after(&politeness, 3) && !after(&politeness, 4));
        politeness.on_others(Instant::ZERO + Span::from_secs(5));
        assert!(after(&politeness, 14) && !after(&politeness, 15));
    }
}
