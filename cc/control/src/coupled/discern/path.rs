//! One path: its window, what it saw, and what follows from an acknowledgement.

use super::Config;
use super::delay::Delay;
use super::experiment::{MAX_RANDOM_LOSS, RandomLoss, Verdict};
use super::politeness::{Politeness, View};
use super::resume::{Resume, Saved};
use super::round::{Counts, Round};
use super::window::{BETA, MAX_IDLE, Window};
use crate::common::Usage;
use crate::{AckSample, CaState, Cause, Context, Decision, PathEvent, PathInfo};
use units::{Instant, Rate, RngStream, Span};

/// Random loss from which a loss with delay takes less than CUBIC's part: CUBIC cannot live there anyway.
const MUCH_RANDOM_LOSS: f64 = 0.003;
/// The greatest part of the window that congestion leaves there.
const MAX_BETA: f64 = 0.95;
/// What an ECN mark leaves (RFC 8511 section 3.1).
const BETA_ECN: f64 = 0.85;
/// Shortest round, seconds.
const MIN_ROUND: f64 = 0.01;
/// Pacing over window per RTT of a window that is resumed (RFC 9959).
const RESUMED_PACING_GAIN: f64 = 1.0;
/// Pacing over window per RTT: far below the threshold in slow start, and otherwise (as Linux).
const PACING_GAINS: [f64; 2] = [2.0, 1.2];

/// State of a path.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) is_up: bool,
    usage: Usage,
    mss: u32,
    /// Seconds; 0 before the first sample.
    srtt: f64,
    /// Seconds; 0 before the first sample.
    latest_rtt: f64,
    /// What of it the acknowledgement waited on its way back, seconds.
    return_queueing: f64,
    pub(super) window: Window,
    delay: Delay,
    round: Round,
    random_loss: RandomLoss,
    politeness: Politeness,
    resume: Resume,
    last_ack: Instant,
    /// Packets lost in the present episode of losses.
    episode_lost: f64,
    /// When a path with the same bottleneck was reduced for delay.
    mirrored: Option<Instant>,
}

impl Path {
    /// A path that comes up, which stands for `weight` flows and of which `saved` is known.
    pub(super) fn new(info: &PathInfo, weight: f64, saved: Option<Saved>, now: Instant) -> Self {
        Self {
            is_up: true,
            usage: Usage::NEVER,
            mss: info.mss,
            srtt: info.rtt.map_or(0.0, Span::as_secs_f64),
            latest_rtt: 0.0,
            return_queueing: 0.0,
            window: Window::new(info, weight),
            delay: Delay::new(now),
            round: Round::new(now),
            random_loss: RandomLoss::default(),
            politeness: Politeness::default(),
            resume: Resume::new(saved, now),
            last_ack: now,
            episode_lost: 0.0,
            mirrored: None,
        }
    }

    /// What is known of the path when it comes up again.
    pub(super) fn saved(&self) -> Option<Saved> {
        let cwnd = self.window.cwnd.min(self.round.used());
        let is_measured = cwnd > 0.0 && self.delay.base().is_finite();
        let used = is_measured.then(|| Saved { cwnd, base: self.delay.base(), at: self.last_ack });
        self.resume.unused().or(used)
    }

    pub(super) fn queueing(&self) -> f64 {
        self.delay.queueing()
    }

    pub(super) fn is_in_use(&self, now: Instant) -> bool {
        self.is_up && self.usage.is_in_use(now)
    }

    /// A path with the same bottleneck was reduced for delay.
    pub(super) fn mirror(&mut self, now: Instant) {
        self.mirrored = Some(now);
    }

    /// Congestion leaves a part of what is used of the window of each flow that a loss of this round has hit.
    fn reduce(&mut self, part: f64, now: Instant) {
        self.window.validate(self.round.used());
        self.window.reduce_hit(part, self.round.counts.lost, now);
    }

    /// A part of what is used of the window is left.
    fn reduce_all(&mut self, part: f64, now: Instant) {
        self.window.validate(self.round.used());
        self.window.reduce(part, now);
    }

    /// Whether the latest reduction is a round trip ago.
    fn may_reduce(&self, now: Instant) -> bool {
        self.window.since_reduction(now) > self.srtt.max(self.delay.latest())
    }

    /// Handles every event but the path's coming up and acknowledgements.
    pub(super) fn on_event(&mut self, event: &PathEvent, now: Instant) {
        match event {
            PathEvent::PathDown => self.is_up = false,
            PathEvent::Congestion { cause, reduce_cwnd, in_flight, .. } => {
                self.on_congestion(*cause, *reduce_cwnd, *in_flight, now);
            }
            PathEvent::SpuriousLoss => self.on_spurious_loss(),
            PathEvent::IdleRestart { idle, .. } => self.on_idle(*idle, now),
            PathEvent::Penalise => self.window.penalise(),
            PathEvent::MssChanged { mss } => self.mss = *mss,
            // A window that is not used stays, and congestion reduces the used part of it (RFC 7661). An acknowledgement is judged
            // as a whole. A reduction is over when it is made.
            PathEvent::ApplicationLimited { .. } | PathEvent::AckProgress(_) | PathEvent::Recovered { .. } => {}
            PathEvent::PathUp(_) | PathEvent::Ack(_) | PathEvent::WindowRestart { .. } => {}
        }
    }

    /// Notes the event for those who ask whether the path is in use.
    pub(super) fn note_use(&mut self, event: &PathEvent, now: Instant) {
        self.usage.on_event(event, now);
    }

    /// After five minutes nothing is known of the path any more: what is under way says nothing.
    fn on_idle(&mut self, idle: Span, now: Instant) {
        self.window.on_idle(idle, now);
        if idle > MAX_IDLE {
            self.politeness.abandon_test();
            self.random_loss.end_trial();
        }
    }

    fn on_congestion(&mut self, cause: Cause, reduce: bool, in_flight: u32, now: Instant) {
        match cause {
            Cause::Timeout => {
                self.window.on_timeout(in_flight, reduce, now);
                self.resume.end();
                self.random_loss.end_trial();
                self.politeness.abandon_test();
            }
            // What the losses of an episode mean is judged with each acknowledgement.
            Cause::Loss => {
                self.episode_lost = 0.0;
                self.window.begin_episode();
            }
            Cause::EcnMark | Cause::LocalDrop => {
                self.window.forbid_undo();
                if reduce && self.may_reduce(now) {
                    self.reduce(if cause == Cause::EcnMark { BETA_ECN } else { BETA }, now);
                    self.politeness.abandon_test();
                }
            }
            Cause::TlpRecovery | Cause::Requested => {}
        }
    }

    fn on_spurious_loss(&mut self) {
        self.window.undo();
        self.resume.end();
        self.random_loss.forgive(self.episode_lost);
        self.round.counts.forgive(self.episode_lost);
        self.politeness.abandon_test();
        self.episode_lost = 0.0;
    }

    /// Handles an acknowledgement on a path that shares its bottleneck with n - 1 others. Returns whether the window was reduced
    /// for delay.
    pub(super) fn on_ack(&mut self, config: &Config, n: f64, sample: &AckSample, cx: &mut Context<'_>) -> bool {
        let now = cx.now;
        self.measure(sample, now);
        self.follow_siblings(config, now);
        if self.window.in_first_slow_start() && self.round.is_queue(self.delay.slow_start_limit()) {
            self.window.end_slow_start();
        }
        self.on_marks_in_recovery(sample, now);
        let is_same_event = sample.lost > 0 && !self.may_reduce(now);
        let reduced = sample.lost > 0 && self.on_loss(config, now);
        if is_same_event {
            self.window.hit_more(f64::from(sample.lost));
        }
        self.resume.on_ack(sample, self.delay.base(), self.srtt, &mut self.window, now);
        if sample.may_raise_cwnd && sample.cwnd_limited && sample.acked > 0 && !self.resume.holds() {
            self.window.grow(f64::from(sample.acked), n, self.delay.base(), now);
        }
        self.end_round(config, now, cx.rng);
        reduced
    }

    fn measure(&mut self, sample: &AckSample, now: Instant) {
        if let Some(rtt) = sample.rtt {
            let is_in_order = sample.prior_ca_state == CaState::Open && sample.ca_state == CaState::Open;
            self.delay.set_in_flight(f64::from(sample.prior_in_flight));
            (self.latest_rtt, self.return_queueing) = (rtt.as_secs_f64(), sample.return_queueing.as_secs_f64());
            let queueing = self.delay.on_sample(self.latest_rtt - self.return_queueing, is_in_order, now);
            self.round.add_queueing(queueing);
        }
        if sample.srtt > Span::ZERO {
            self.srtt = sample.srtt.as_secs_f64();
        }
        let (acked, lost) = (f64::from(sample.acked), f64::from(sample.lost));
        self.episode_lost += lost;
        self.last_ack = now;
        self.round.add_in_flight(f64::from(sample.prior_in_flight), now);
        self.round.counts.add(acked, lost);
        self.random_loss.count(acked, lost, self.srtt, now);
    }

    /// Marks during a recovery have no event of their own. Where losses are random the path is always in recovery, so that
    /// they count all the same. An echo lasts for a round trip after the window was reduced.
    fn on_marks_in_recovery(&mut self, sample: &AckSample, now: Instant) {
        let in_recovery = sample.marked > 0 && sample.ca_state == CaState::Recovery;
        if in_recovery && self.window.since_reduction(now) > 2.0 * self.srtt.max(self.delay.latest()) {
            self.window.forbid_undo();
            self.reduce(BETA_ECN, now);
        }
    }

    /// What reduced a path with the same bottleneck, less than a round trip ago, reduces this one once it sees the queue, too.
    fn follow_siblings(&mut self, config: &Config, now: Instant) {
        let Some(at) = self.mirrored else { return };
        let is_recent = now.since(at).as_secs_f64() < self.srtt;
        if is_recent && self.delay.queueing() < self.delay.threshold(config) {
            return;
        }
        self.mirrored = None;
        if is_recent && self.may_reduce(now) {
            self.reduce(BETA, now);
        }
    }

    /// Packets were lost; returns whether that reduces for delay.
    fn on_loss(&mut self, config: &Config, now: Instant) -> bool {
        if self.delay.queueing() < self.delay.threshold(config) {
            self.on_loss_without_delay(config, now);
            return false;
        }
        self.random_loss.clear();
        let reduces = self.may_reduce(now);
        if reduces {
            self.reduce(self.beta(), now);
            self.politeness.abandon_test();
            self.random_loss.end_trial();
        }
        reduces
    }

    /// What is left after a loss with delay.
    fn beta(&self) -> f64 {
        if self.random_loss.rate() <= MUCH_RANDOM_LOSS || self.delay.latest() <= 0.0 {
            return BETA;
        }
        (0.97 * self.delay.base() / self.delay.latest()).clamp(BETA, MAX_BETA)
    }

    fn on_loss_without_delay(&mut self, config: &Config, now: Instant) {
        self.check_cap(now);
        let is_judged = config.experiment && !self.window.in_first_slow_start() && !self.random_loss.is_under_trial();
        if !is_judged || !self.may_reduce(now) {
            return;
        }
        match self.random_loss.judge(config, self.window.cwnd, now) {
            Verdict::Random => {}
            Verdict::Congestion => self.reduce(BETA, now),
            Verdict::BackOff => self.reduce_all(config.back_off, now),
        }
    }

    /// More of a round's packets lost than any random loss that is forgiven: congestion, whatever the delay.
    fn check_cap(&mut self, now: Instant) {
        let Counts { packets, lost } = self.round.counts;
        let bound = MAX_RANDOM_LOSS * packets;
        if lost > bound + 2.0 * bound.sqrt() + 2.0 && self.may_reduce(now) {
            self.reduce_all((1.0 - lost / packets).clamp(0.5, BETA), now);
            self.random_loss.end_trial();
            self.round.counts = Counts::default();
        }
    }

    fn end_round(&mut self, config: &Config, now: Instant, rng: &mut RngStream) {
        if !self.round.ends(self.srtt.max(MIN_ROUND), now) {
            return;
        }
        self.delay.end_round(self.round.most_queueing());
        if let Some(cwnd) = self.random_loss.check(config, self.srtt, now) {
            self.window.give_back(cwnd);
        }
        if config.polite && !self.window.in_slow_start() {
            let (delay, round, srtt, may_reduce) = (&self.delay, &self.round, self.srtt, self.may_reduce(now));
            let view = View { delay, round, srtt, return_queueing: self.return_queueing, may_reduce, now };
            if let Some(seconds) = self.politeness.end_round(&view, &mut self.window, rng) {
                self.delay.lengthen(seconds);
            }
        }
        self.round.begin(now);
    }

    pub(super) fn decision(&self) -> Decision {
        let Window { cwnd, ssthresh, .. } = self.window;
        let gain = match self.resume.is_unvalidated() {
            true => RESUMED_PACING_GAIN,
            false => PACING_GAINS[usize::from(cwnd >= ssthresh / 2.0)],
        };
        let bits = gain * cwnd.max(2.0) * f64::from(self.mss) * 8.0;
        // After a reduction the smoothed RTT is that of the queue of before.
        let rtt = if self.latest_rtt > 0.0 { self.srtt.min(self.latest_rtt) } else { self.srtt };
        let pacing_rate = (self.srtt > 0.0).then(|| Rate::from_bits(((bits / rtt).min(1e12) as u64).max(1)));
        Decision { cwnd: self.window.packets(), ssthresh: self.window.threshold(), pacing_rate }
    }
}
