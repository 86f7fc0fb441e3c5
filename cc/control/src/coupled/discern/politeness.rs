//! Politeness: a flow whose own backing off empties the queue as if nobody else were there is alone, and needs no queue.
//!
//! While a queue stands, the used window is backed off now and then, to what would just empty the queue. After three round trips
//! the mean packets in flight have gone from i0 to i1 and the mean queue from q0 to q1, where it would be
//! `q_alone = i1 / i0 (b + q0) - b` (b: base RTT) if the path were ours alone. Our share of the queue is
//! `s = (q0 - q1) / (q0 - q_alone)`. The queue was ours if nothing is left of it, or if `s > 3/4` and the rate fell by less than
//! half of the reduction: a link that we fill alone serves us at its rate, with a queue or without. It was ours, too, if the rate
//! fell by less than where nine tenths of the packets in flight were ours. Three such verdicts make us
//! *alone*: from then on the window is backed off as far as it takes, and to nine tenths of that while the base RTT is older than
//! 10 s, so that it is seen again. Any other verdict, and a queue that halves for good while our packets in flight do not, shows
//! others, and takes one of the three away. When none is left, CUBIC's window leads back to where it was before, and there is no
//! test for 1 s, then 3 s and 10 s. Where the rate fell with the window and the queue stayed, the window of before the test
//! returns with the next growth: the queue is others', such as that of the acknowledgements' way back. Where, on top of that, the delay has not
//! moved at all, it is not a queue: the path has become longer, and the base RTT is that of now. A test without a window in use
//! says nothing.

use super::delay::Delay;
use super::round::{Load, MEMORY, Round};
use super::window::Window;
use units::{Instant, RngStream, Span};

/// The share of the queue from which it is ours.
const OWN_SHARE: f64 = 0.75;
/// The share by the rate from which it is ours: bursts of the application blur a queue, and not the rate of a full link.
const OWN_SHARE_BY_RATE: f64 = 0.9;
/// Verdicts that make us alone.
const VERDICTS: u32 = 3;
/// The least part of the window that a test leaves, and a reduction when we are alone.
const FLOOR: [f64; 2] = [0.7, 0.1];
/// The part of their maximum that the packets in flight keep before a test whose rate tells.
const STEADY: f64 = 0.5;
/// What is left of an empty queue's window where the base RTT is old.
const BELOW: f64 = 0.9;
/// The part of the packets in flight that is left at most, for a test to tell.
const EFFECTIVE: f64 = 0.95;
/// Part of a standing queue below which nobody keeps one.
const EMPTY: f64 = 0.5;
/// Part of a standing queue by which a delay that is not a queue's changes at most.
const STILL: f64 = 0.5;
/// The chance of a test in a round, and of a reduction when we are alone.
const CHANCE: [f64; 2] = [0.25, 0.5];
/// The least window that a test leaves, packets.
const LEAST_WINDOW: f64 = 4.0;
/// Without a test, after others were seen the first time in a row, the second, and later.
const PAUSES: [Span; 3] = [Span::from_secs(1), Span::from_secs(3), Span::from_secs(10)];
/// Shortest time for a queue to settle, seconds.
const MIN_SETTLING: f64 = 0.06;

/// Whose queue it was.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Owner {
    Us,
    /// Somebody else, too.
    Others,
    /// Somebody else, as our rate has fallen with our window.
    OthersAlone,
}

/// The window was backed off, to see what the queue does.
#[derive(Clone, Copy, Debug)]
struct Test {
    at: Instant,
    /// Before.
    load: Load,
    /// The used window before, packets.
    cwnd: f64,
    /// The part of the window that was left.
    left: f64,
    /// The delivery rate before.
    rate: f64,
    /// Whether the window was in use then.
    is_steady: bool,
}

impl Test {
    /// The part of the rate before that is left.
    fn rate_left(&self, view: &View<'_>) -> f64 {
        let [latest, prior] = view.round.latest_rates;
        (latest + prior) / 2.0 / self.rate.max(1e-9)
    }

    /// Whether the rate fell by less than half of the reduction.
    fn has_kept_rate(&self, view: &View<'_>) -> bool {
        self.rate_left(view) > (1.0 - 0.5 * (1.0 - self.left)).min(0.9)
    }

    /// Whether the rate fell by less than where a part φ of the packets in flight was ours: `left / (1 - (1 - left) φ)` would be
    /// left of it.
    fn is_alone_by_rate(&self, view: &View<'_>) -> bool {
        self.rate_left(view) > self.left / (1.0 - (1.0 - self.left) * OWN_SHARE_BY_RATE)
    }

    /// By how much the path is longer than it was, in seconds, where the delay is not that of a queue: the rate fell with the
    /// window, and the RTT stayed as it was, to within half of what is a queue, in the rounds before the test and since.
    fn longer_by(&self, view: &View<'_>) -> Option<f64> {
        let ([least, most], standing) = (view.round.range_of_queueing(), view.delay.standing());
        (most - least < STILL * standing && least > standing && !self.has_kept_rate(view)).then_some(least)
    }

    /// The verdict: ours is a queue of which nothing is left, or from which three quarters of what would be gone if nobody else
    /// were there are gone, while the rate stayed; or where the rate says that nearly all packets in flight are ours.
    fn owner(&self, view: &View<'_>) -> Owner {
        let is_empty = view.round.queueing < EMPTY * view.delay.standing();
        if is_empty || self.is_alone_by_rate(view) {
            return Owner::Us;
        }
        if !self.has_kept_rate(view) {
            return Owner::OthersAlone;
        }
        let (before, after, base) = (self.load, view.round.load(), view.empty_rtt());
        let alone = (after.in_flight / before.in_flight * (base + before.queueing) - base).max(0.0);
        let own_share = (before.queueing - after.queueing) / (before.queueing - alone).max(1e-4);
        if own_share > OWN_SHARE { Owner::Us } else { Owner::Others }
    }
}

/// Whether the flow is alone on its path, and how that is found out.
#[derive(Debug, Default)]
pub(super) struct Politeness {
    alone: bool,
    test: Option<Test>,
    /// CUBIC's aim before we were alone, packets.
    prior_window: f64,
    /// Verdicts that the queue was ours, less those that there are others.
    own_verdicts: u32,
    /// Verdicts in a row that there are others.
    other_verdicts: usize,
    next_test: Instant,
}

/// What politeness looks at when a round ends.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) delay: &'a Delay,
    pub(super) round: &'a Round,
    pub(super) srtt: f64,
    /// What acknowledgements wait on their way back, seconds.
    pub(super) return_queueing: f64,
    /// Whether the window may be reduced now.
    pub(super) may_reduce: bool,
    pub(super) now: Instant,
}

impl View<'_> {
    /// The RTT if there were no queue on the path, seconds.
    fn empty_rtt(&self) -> f64 {
        self.delay.base() + self.return_queueing
    }

    /// Seconds in which a queue follows the window.
    fn settling(&self) -> f64 {
        (3.0 * (self.srtt + self.round.queueing)).max(MIN_SETTLING)
    }
}

impl Politeness {
    /// Something else reduced the window: a test under way says nothing.
    pub(super) fn abandon_test(&mut self) {
        self.test = None;
    }

    /// A round has ended: judges a test that has lasted long enough, looks for others, or begins a test. Returns by how many
    /// seconds the test has shown the path to be longer than it was.
    pub(super) fn end_round(&mut self, view: &View<'_>, window: &mut Window, rng: &mut RngStream) -> Option<f64> {
        if let Some(test) = self.test {
            if view.now.since(test.at).as_secs_f64() >= view.settling() {
                self.test = None;
                match test.longer_by(view) {
                    Some(seconds) => {
                        window.give_back(test.cwnd);
                        return Some(seconds);
                    }
                    None => self.judge(test, view, window),
                }
            }
        } else if self.sees_others(view, window) {
            self.on_others(window, view.now);
        } else if self.is_due(view, rng) {
            self.begin_test(view, window);
        }
        None
    }

    fn judge(&mut self, test: Test, view: &View<'_>, window: &mut Window) {
        let has_fallen = view.round.load().in_flight <= EFFECTIVE * test.load.in_flight;
        if !has_fallen || !view.round.is_filled(0.7, window.cwnd) {
            // The application's pauses say nothing, nor does a window that is not used: nothing is learnt, and nothing is lost.
            let has_kept_rate = test.has_kept_rate(view);
            if !has_fallen || !has_kept_rate {
                window.restore(test.cwnd);
            }
            if !has_kept_rate {
                self.next_test = view.now + PAUSES[0];
            }
            return;
        }
        match test.owner(view) {
            Owner::Us => {
                (self.own_verdicts, self.other_verdicts) = ((self.own_verdicts + 1).min(VERDICTS), 0);
                self.alone |= self.own_verdicts >= VERDICTS;
            }
            Owner::Others => self.on_others(window, view.now),
            Owner::OthersAlone => {
                window.restore(test.cwnd);
                if test.is_steady {
                    self.on_others(window, view.now);
                } else {
                    self.next_test = view.now + PAUSES[0];
                }
            }
        }
    }

    /// Whether the queue has halved although we did nothing.
    fn sees_others(&self, view: &View<'_>, window: &Window) -> bool {
        let is_own = window.since_reduction(view.now) < MEMORY as f64 * (view.srtt + view.round.queueing);
        !is_own && view.round.queue_has_halved(1.5 * view.delay.standing())
    }

    fn is_due(&self, view: &View<'_>, rng: &mut RngStream) -> bool {
        let stands = view.round.queueing > view.delay.standing();
        stands && view.now >= self.next_test && view.may_reduce && rng.chance(CHANCE[usize::from(self.alone)])
    }

    fn begin_test(&mut self, view: &View<'_>, window: &mut Window) {
        let (base, queueing) = (view.empty_rtt(), view.round.queueing);
        let is_steady = view.round.is_filled(STEADY, window.cwnd);
        window.use_at_most(view.round.most_in_flight());
        let least = FLOOR[usize::from(self.alone)].max((LEAST_WINDOW / window.cwnd).min(1.0));
        let part = if self.alone && view.delay.is_base_old() { BELOW } else { 1.0 };
        let left = (part * base / (base + queueing)).max(least);
        let cwnd = window.cwnd;
        let w_max = window.w_max().max(cwnd);
        window.reduce(left, view.now);
        if !self.alone {
            self.prior_window = w_max;
            window.aim_at(w_max);
        }
        self.test = Some(Test { at: view.now, load: view.round.load(), cwnd, left, rate: view.round.rate, is_steady });
    }

    /// The queue did not follow our window: there are others.
    fn on_others(&mut self, window: &mut Window, now: Instant) {
        self.own_verdicts = self.own_verdicts.saturating_sub(1);
        if self.own_verdicts > 0 {
            return;
        }
        if std::mem::take(&mut self.alone) {
            window.aim_at(self.prior_window);
        }
        self.next_test = now + PAUSES[self.other_verdicts];
        self.other_verdicts = (self.other_verdicts + 1).min(PAUSES.len() - 1);
    }
}

#[cfg(test)]
mod tests;
