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
