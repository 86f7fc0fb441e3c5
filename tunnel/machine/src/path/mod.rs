//! One path as its sender and receiver see it.

mod ledger;
mod life;
mod phantom;
mod receipt;
mod search;
mod status;

pub(super) use ledger::Fates;
pub(super) use life::Habits;
pub(super) use receipt::Receipt;
pub(super) use search::BASE;

use super::config::PathConfig;
use super::packet::{DATA_HEADER_BYTES, SEAL_OVERHEAD};
use control::{AckSample, CaState, Cause, Context, Controller, Decision, PathEvent, PathInfo, Reduction};
use ledger::{Ledger, News};
use life::Life;
use phantom::Phantom;
use transport::recovery::{CwndValidation, Pacer};
use units::{Instant, PathId, Rate, Span, Stream};
use wire::frame::{Ack, Frame};

/// Packets before the first feedback (RFC 6928).
const INITIAL_WINDOW: u32 = 10;
/// The daemon's clock is finer than any algorithm's.
const TICK: Span = Span::from_millis(1);
/// Doubts in a row that a path survives: few if there are others, more if it is the only one.
const MOST_DOUBTS: [u32; 2] = [2, 8];
/// A packet may leave so long before its time: a program's timers are late by about as much, and every wake-up costs. It
/// makes bursts of a millisecond of data, as Linux's own pacing does (`sk_pacing_shift`).
const SLACK: Span = Span::from_millis(1);
/// The least time without an answer that raises doubt: the peer's host may be slow.
const LEAST_DOUBT: Span = Span::from_millis(60);
/// Fewer packets in flight do not fill a path, whatever the delay.
const FILLED: u32 = 16;
/// A shorter delay may be anything but a queue.
const LEAST_QUEUE: Span = Span::from_millis(2);
/// A large rate, for paths that nothing paces.
const UNPACED: Rate = Rate(u64::MAX);

/// Who decides of the windows, for the time of a call.
pub(super) struct Pilot<'a> {
    pub(super) controller: Option<&'a mut (dyn Controller + 'static)>,
    pub(super) random: &'a mut Stream,
}

/// A path.
#[derive(Debug)]
pub(super) struct Path {
    id: PathId,
    config: PathConfig,
    ledger: Ledger,
    life: Life,
    pub(super) receipt: Receipt,
    /// When feedback last went by it.
    pub(super) fed: Instant,
    /// Frames that must leave on this path.
    pub(super) frames: Vec<Frame>,
    /// The peer wants it as a backup.
    pub(super) peer_backup: bool,
    decision: Decision,
    phase: CaState,
    episode_end: u64,
    pacer: Pacer,
    usage: CwndValidation,
    sent_since: u32,
    sent_in_round: bool,
    doubts: u32,
    doubt_since: Instant,
    delivery: Rate,
    phantom: Phantom,
    mss: u32,
    heard: Option<Instant>,
    /// When it last brought data.
    carried: Option<Instant>,
    received: u64,
    received_bytes: u64,
    /// Copies of pieces older than this were all considered.
    pub(super) copied_up_to: u64,
}

/// What a timer did to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timeout {
    Nothing,
    /// Data has gone unanswered for too long: it is worth sending elsewhere as well.
    Doubt,
    /// The path failed.
    Failed,
}

impl Path {
    /// A path whose first packet has this number.
    pub(super) fn new(id: PathId, config: PathConfig, first: u64) -> Self {
        Self {
            id,
            config,
            ledger: Ledger::new(first),
            life: Life::new(config.max_datagram_size),
            receipt: Receipt::default(),
            fed: Instant::ZERO,
            frames: Vec::new(),
            peer_backup: false,
            decision: Decision { cwnd: u32::MAX, ssthresh: units::INFINITE_SSTHRESH, pacing_rate: None },
            phase: CaState::Open,
            episode_end: 0,
            pacer: Pacer::default(),
            usage: CwndValidation::default(),
            sent_since: 0,
            sent_in_round: false,
            doubts: 0,
            doubt_since: Instant::ZERO,
            delivery: Rate(0),
            phantom: Phantom::default(),
            mss: 0,
            heard: None,
            carried: None,
            received: 0,
            received_bytes: 0,
            copied_up_to: 0,
        }
    }

    /// The number that its next packet would have.
    pub(super) fn next_number(&self) -> u64 {
        self.ledger.next()
    }

    pub(super) fn is_up(&self) -> bool {
        self.life.up
    }

    pub(super) fn is_backup(&self) -> bool {
        self.config.backup || self.config.metered || self.peer_backup
    }

    pub(super) fn change(&mut self, config: PathConfig) {
        self.config = config;
    }

    /// Payload of the largest piece that it carries.
    pub(super) fn piece(&self) -> u32 {
        self.life.search.confirmed() - SEAL_OVERHEAD - DATA_HEADER_BYTES
    }

    pub(super) fn srtt(&self) -> Span {
        let srtt = self.ledger.round_trip.smoothed;
        if srtt > Span::ZERO { srtt } else { self.life.rtt.unwrap_or(Span::ZERO) }
    }

    /// Smoothed one-way delay on the peer's clock, microseconds modulo 2^32; known once data has gone by it.
    pub(super) fn one_way(&self) -> Option<u32> {
        self.ledger.one_way.map(|(mean, _)| mean)
    }

    /// Mean deviation of the one-way delay.
    pub(super) fn jitter(&self) -> Span {
        Span::from_micros(self.ledger.one_way.map_or(0, |(_, deviation)| deviation.max(0) as u64))
    }

    /// How long data may reasonably go unanswered.
    pub(super) fn patience(&self) -> Span {
        self.ledger.patience()
    }

    /// When it last brought data.
    pub(super) fn carried(&self) -> Option<Instant> {
        self.carried
    }

    pub(super) fn heard(&self) -> Option<Instant> {
        self.heard
    }

    /// Its window has room.
    pub(super) fn has_room(&self) -> bool {
        self.life.up && self.ledger.in_flight < self.decision.cwnd
    }

    /// It may send now.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        self.has_room() && self.release() <= now
    }

    /// When the next packet may leave, as far as pacing goes: a little early, since timers are late.
    pub(super) fn release(&self) -> Instant {
        Instant(self.pacer.release().0.saturating_sub(SLACK.0))
    }

    /// What a scheduler sees of it.
    pub(super) fn view(&self, now: Instant) -> schedule::PathView {
        let rate = self.rate();
        schedule::PathView {
            open: self.is_open(now),
            active: self.life.up,
            backup: self.is_backup(),
            srtt: self.srtt(),
            rttvar: self.ledger.round_trip.deviation,
            cwnd: self.decision.cwnd,
            ssthresh: self.decision.ssthresh,
            in_flight: self.ledger.in_flight,
            queued: 0,
            pacing_rate: rate,
            delivery_rate: self.phantom.bandwidth(),
            phantom_queue: Some(self.phantom.length(now)),
        }
    }

    /// What it is paced at.
    fn rate(&self) -> Rate {
        let rate = self.allowed_rate();
        self.config.max_rate.map_or(rate, |max| rate.min(max))
    }

    /// The controller's pacing rate, or what Linux would pace at.
    fn allowed_rate(&self) -> Rate {
        let srtt = self.srtt();
        if let Some(rate) = self.decision.pacing_rate {
            return rate;
        }
        if self.decision.cwnd == u32::MAX || srtt == Span::ZERO {
            return UNPACED;
        }
        let window = u64::from(self.decision.cwnd.max(self.ledger.in_flight));
        let percent = if self.decision.cwnd < self.decision.ssthresh / 2 { 200 } else { 120 };
        Rate::of(window * u64::from(self.datagram()) * percent / 100, srtt)
    }

    fn datagram(&self) -> u32 {
        self.config.header_bytes + self.life.search.confirmed()
    }

    /// Bytes that rates of delivery count for a packet.
    fn full_body(&self) -> u32 {
        self.mss + SEAL_OVERHEAD + DATA_HEADER_BYTES
    }

    /// Packets of one burst, which stay together on the path.
    pub(super) fn burst(&self) -> u32 {
        Pacer::burst(self.rate(), self.ledger.min_rtt(), self.datagram())
    }

    fn notify(&mut self, now: Instant, pilot: &mut Pilot<'_>, event: &PathEvent) {
        let Some(controller) = pilot.controller.as_deref_mut() else { return };
        controller.on_event(self.id, event, &mut Context { now, rng: pilot.random });
        self.decision = controller.decision(self.id);
    }

    /// A piece of `bytes` leaves; the datagram's number.
    pub(super) fn send(&mut self, now: Instant, piece: u64, bytes: u32, pilot: &mut Pilot<'_>) -> u64 {
        if self.ledger.in_flight == 0 {
            let (idle, timeout) = (now.since(self.ledger.last_sent()), self.ledger.round_trip.timeout());
            if idle > timeout {
                self.usage.restart(now);
            }
            (self.doubt_since, self.doubts) = (now, 0);
            self.notify(now, pilot, &PathEvent::IdleRestart { idle, rto: timeout });
        }
        let body = bytes + DATA_HEADER_BYTES + SEAL_OVERHEAD;
        let number = self.ledger.on_data(now, piece, bytes, body > BASE);
        self.phantom.on_sent(now, self.full_body());
        self.sent_since += 1;
        self.sent_in_round = true;
        let rate = self.rate();
        if rate != UNPACED {
            let burst = Pacer::burst(rate, self.ledger.min_rtt(), self.datagram());
            // One that leaves early is paid for from its time on.
            let due = now.max(self.pacer.release());
            self.pacer.on_sent(due, body + self.config.header_bytes, rate, burst);
        }
        number
    }

    /// Frames leave; the datagram's number.
    pub(super) fn send_control(&mut self, now: Instant) -> u64 {
        self.ledger.on_control(now)
    }

    /// Nothing more leaves now; `starved`: for want of data.
    pub(super) fn end_round(&mut self, now: Instant, starved: bool, pilot: &mut Pilot<'_>) {
        let full = self.ledger.in_flight >= self.decision.cwnd;
        if self.sent_in_round || full {
            self.usage.on_sent(full, self.ledger.in_flight, self.ledger.una(), self.ledger.next());
            let slow_start = self.decision.cwnd < self.decision.ssthresh;
            let limited = self.usage.is_cwnd_limited(self.decision.cwnd, slow_start);
            let (in_flight, timeout) = (self.ledger.in_flight, self.ledger.round_trip.timeout());
            if let Some(used) = self.usage.unused_for(now, limited, in_flight, timeout)
                && self.phase == CaState::Open
            {
                self.notify(now, pilot, &PathEvent::ApplicationLimited { cwnd_used: used });
            }
        }
        self.sent_in_round = false;
        if starved && !full {
            if !self.is_filled() {
                self.ledger.rate.mark_app_limited(self.ledger.in_flight);
            }
            self.pacer.close_burst();
        }
    }

    /// Its own queue shows that it carries what it can, although nothing waits for it now: the flows inside are held back by
    /// the path and not by their applications.
    fn is_filled(&self) -> bool {
        let least = self.ledger.min_rtt();
        let queue = self.ledger.round_trip.smoothed.saturating_sub(least);
        self.ledger.in_flight >= FILLED && queue > (least / 4).max(LEAST_QUEUE)
    }

    /// Something authentic came by it.
    pub(super) fn on_heard(&mut self, now: Instant, data_bytes: Option<u32>) {
        self.heard = Some(now);
        if let Some(bytes) = data_bytes {
            self.carried = Some(now);
            (self.received, self.received_bytes) = (self.received + 1, self.received_bytes + u64::from(bytes));
        }
    }

    /// The peer tells what has arrived of it. False if that makes no sense.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &Ack, fates: &mut Fates, pilot: &mut Pilot<'_>) -> bool {
        let Some(news) = self.ledger.on_ack(now, ack, fates) else { return false };
        if news.acked > 0 {
            self.life.on_confirmed(now);
            (self.doubts, self.doubt_since) = (0, now);
        }
        self.tell(now, &news, pilot);
        true
    }

    /// Turns news into the controller's events, in Linux's order: congestion, end of an episode, feedback.
    fn tell(&mut self, now: Instant, news: &News, pilot: &mut Pilot<'_>) {
        let prior_phase = self.phase;
        if let Some(delivery) = &news.delivery {
            self.delivery = delivery.rate(self.full_body());
            self.phantom.on_delivery(now, self.delivery, self.is_filled(), self.srtt());
        }
        if self.phase != CaState::Open && self.ledger.una() >= self.episode_end {
            self.phase = CaState::Open;
            self.notify(now, pilot, &PathEvent::Recovered { to_ssthresh: true });
        }
        if news.lost > 0 && self.phase != CaState::Recovery {
            self.begin_episode(now, Cause::Loss, CaState::Recovery, pilot);
        } else if news.marked > 0 && self.phase == CaState::Open {
            self.begin_episode(now, Cause::EcnMark, CaState::Cwr, pilot);
        }
        let feedback = self.feedback(news, prior_phase);
        self.notify(now, pilot, &PathEvent::Ack(feedback));
    }

    fn begin_episode(&mut self, now: Instant, cause: Cause, phase: CaState, pilot: &mut Pilot<'_>) {
        self.episode_end = self.ledger.next();
        self.sent_since = 0;
        self.notify(now, pilot, &PathEvent::Congestion { cause, cut: true, in_flight: self.ledger.in_flight });
        self.phase = phase;
    }

    fn feedback(&mut self, news: &News, prior_phase: CaState) -> AckSample {
        let slow_start = self.decision.cwnd < self.decision.ssthresh;
        AckSample {
            acked: news.acked,
            pkts_acked: news.acked,
            lost: news.lost,
            marked: news.marked,
            sent: std::mem::take(&mut self.sent_since),
            prior_in_flight: news.in_flight_before,
            in_flight: self.ledger.in_flight,
            rtt: news.rtt,
            srtt: self.ledger.round_trip.smoothed,
            min_rtt: self.ledger.min_rtt(),
            one_way_delay: None,
            rate_sample: news.delivery,
            newest_delivered: news.newest,
            newest_lost: news.newest_lost,
            delivered: self.ledger.rate.delivered(),
            snd_una: self.ledger.una(),
            snd_nxt: self.ledger.next(),
            una_advanced: news.advanced,
            cwnd_limited: self.usage.is_cwnd_limited(self.decision.cwnd, slow_start),
            may_raise_cwnd: news.acked > 0,
            prior_ca_state: prior_phase,
            ca_state: self.phase,
        }
    }

    /// A ping was answered: the path's round trip. The largest datagram, if it grew; whether the path was down until now.
    pub(super) fn on_pong(&mut self, now: Instant, token: u64, pilot: &mut Pilot<'_>) -> (bool, Option<u32>) {
        let Some(answer) = self.life.on_pong(now, token) else { return (false, None) };
        self.ledger.on_probe(now, answer.rtt);
        if answer.revived {
            self.revive(now, answer.rtt, pilot);
        }
        if answer.grown.is_some() && self.mss != self.piece() {
            self.mss = self.piece();
            self.notify(now, pilot, &PathEvent::MssChanged { mss: self.mss });
        }
        (answer.revived, answer.grown)
    }

    fn revive(&mut self, now: Instant, rtt: Span, pilot: &mut Pilot<'_>) {
        self.mss = self.piece();
        (self.phase, self.doubts, self.pacer, self.phantom) = (CaState::Open, 0, Pacer::default(), Phantom::default());
        let info = PathInfo {
            mss: self.mss,
            initial_window: INITIAL_WINDOW,
            rtt: Some(rtt),
            tick: TICK,
            cwnd_clamp: u32::MAX / 2,
            reduction: Reduction::Proportional,
        };
        self.notify(now, pilot, &PathEvent::PathUp(info));
    }

    /// The path failed, or was taken away.
    pub(super) fn fail(&mut self, now: Instant, fates: &mut Fates, pilot: &mut Pilot<'_>) {
        if self.life.up {
            self.life.fail();
        }
        self.ledger.abandon(fates);
        self.notify(now, pilot, &PathEvent::PathDown);
    }

    /// The token of a ping that leaves now, and the datagram's size where that is the question.
    pub(super) fn poll_ping(
        &mut self,
        now: Instant,
        habits: Habits,
        random: &mut Stream,
    ) -> Option<(u64, Option<u32>)> {
        self.life.poll(now, self.habits(habits), random)
    }

    /// It is pinged now, whenever that was due.
    pub(super) fn hurry(&mut self) {
        self.life.hurry();
    }

    fn habits(&self, habits: Habits) -> Habits {
        Habits { busy: habits.busy && !self.config.metered, ..habits }
    }

    /// The host refused a datagram as too large.
    pub(super) fn on_too_large(&mut self, now: Instant) {
        self.life.search.on_refused(now);
    }

    /// What is to be done now that time has passed.
    pub(super) fn on_timeout(
        &mut self,
        now: Instant,
        alone: bool,
        fates: &mut Fates,
        pilot: &mut Pilot<'_>,
    ) -> Timeout {
        if self.ledger.loss_due() <= now {
            let news = self.ledger.on_loss_timer(now, fates);
            if news.lost > 0 {
                self.tell(now, &news, pilot);
            }
        }
        if self.ledger.black_hole() <= now {
            return Timeout::Failed;
        }
        if self.doubt_due() > now {
            return Timeout::Nothing;
        }
        self.doubts += 1;
        self.doubt_since = now;
        if self.doubts > MOST_DOUBTS[usize::from(alone)] { Timeout::Failed } else { Timeout::Doubt }
    }

    /// How long silence is not suspicious.
    pub(super) fn doubtful_after(&self) -> Span {
        self.ledger.patience().max(LEAST_DOUBT)
    }

    /// When silence becomes suspicious.
    fn doubt_due(&self) -> Instant {
        if self.ledger.in_flight == 0 || !self.life.up {
            return Instant::NEVER;
        }
        self.doubt_since + self.doubtful_after()
    }

    /// When [`on_timeout`](Self::on_timeout) or a ping is due.
    pub(super) fn deadline(&self, habits: Habits) -> Instant {
        let timers = self.ledger.loss_due().min(self.doubt_due()).min(self.ledger.black_hole());
        timers.min(self.life.due(self.habits(habits))).min(self.receipt.due())
    }

    /// Pieces whose fate is open, oldest first.
    pub(super) fn outstanding(&self) -> impl Iterator<Item = u64> + '_ {
        self.ledger.outstanding()
    }
}
