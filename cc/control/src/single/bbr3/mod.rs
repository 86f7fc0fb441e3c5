//! BBR, version 3: the model of version 1 with bounds from loss and marks.
//!
//! As in version 1, the sender paces at `gain * bandwidth` and keeps at most `gain * bandwidth * minimum RTT` in
//! flight. The model (`model.rs`) has the **bandwidth** (maximum delivery rate of this probing cycle and the previous
//! one) and the **minimum RTT** (10 s). Its bounds are new:
//! - *Long-term*: the packets in flight at which a probe lost more than 2 %. It grows back by 1, 2, 4, 8... packets per
//!   round.
//! - *Short-term*: after a round with loss, bandwidth and packets in flight are reduced to those delivered in it, or to
//!   0.7 of the earlier bounds, whichever is more (`signals.rs`). The next probe resets them.
//!
//! The modes (`cycle.rs`):
//! - *Startup* at gain 2.77, until three rounds bring less than a quarter more bandwidth, or a round in recovery has
//!   six acknowledgements with loss and more than 2 % lost (`startup.rs`). *Drain* at the inverse gain, until the queue
//!   is empty.
//! - *Down* at 0.9, until there is headroom of 15 % below the long-term bound; *cruise* at 1; after 2 to 3 s (or as
//!   many rounds as Reno would need for a loss) *refill* at 1 for a round; then *up* at 1.25, until the bandwidth stops
//!   growing, or too many packets are lost.
//! - *RTT probing*, if there was no new minimum RTT for five seconds: half a window for 200 ms (`min_rtt.rs`).
//!
//! It needs from the sender, for the newest packet delivered and the newest one lost, the packets in flight at its
//! sending and the losses since then (`AckSample::newest_delivered`, `newest_lost`). Without them, the packets
//! delivered and lost over the rate sample's interval are used. With `ecn`, it needs the mark of each packet
//! ([`crate::Ecn`]).
//!
//! Source: the Linux v3 branch of google/bbr (`tcp_bbr.c`): constants, integer units, order of one acknowledgement;
//! draft-ietf-ccwg-bbr for the names. If the two differ (`rules.rs`), this follows Linux; the draft's version is
//! [`bbr3_draft`](super::bbr3_draft).
//! Deviations from Linux: the loss of several packets on one acknowledgement is evaluated by the newest of them; losses
//! found by a timer are evaluated with the next acknowledgement; there is no fast path for application-limited flows,
//! no path change on marks (PLB), and no early probe when marks cease. As in version 1, the pacer's next release is not
//! known.

mod cwnd;
mod cycle;
mod ecn;
mod min_rtt;
mod model;
mod rules;
mod signals;
mod startup;
#[cfg(test)]
mod tests;

use super::bbr::aggregation::Aggregation;
use super::bbr::bandwidth;
use super::bbr::episode::Episode;
use super::bbr::probe_rtt::ProbeRtt;
use crate::common::WindowedMax;
use crate::{
    AckSample, AlgorithmEntry, CaState, Cause, Constructor, Context, Decision, Deviation, Ecn, ParamKind, Parameter,
    Params, PathController, PathEvent, PathInfo, Properties, RateSample,
};
use bandwidth::BBR_UNIT;
use cycle::{Cycle, Mode};
use ecn::EcnState;
use min_rtt::MinRtt;
use model::{Bounds, Constants};
use rules::Rules;
use signals::{CongestionSignals, TxRecord};
use startup::FullBw;
use units::{INFINITE_SSTHRESH, Instant, Rate, Span};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "bbr3",
    aliases: &["bbrv3"],
    title: "BBR v3: BBR with bounds learnt from loss, and gentler probing",
    source: "google/bbr v3 tcp_bbr.c; draft-ietf-ccwg-bbr",
    parameters: &[LOSS_THRESHOLD, BETA, HEADROOM, PROBE_WAIT, ECN],
    properties: Properties {
        // Marks count only with feedback per packet (Linux v3: on routes with `ecn_low`).
        ecn: |params| if params.choice("ecn") == "on" { Ecn::PerPacket } else { Ecn::Classic },
        min_cwnd: 4,
        deviations: &[
            (
                Deviation::RaisesUnfilledCwnd,
                "the window follows the model; samples of an idle application do not enter it",
            ),
            (Deviation::KeepsCwndOnUndo, "loss does not set the threshold; what it did to the bounds is undone"),
        ],
        ..Properties::DEFAULT
    },
    constructor: Constructor::PerPath(|params| Box::new(Bbr3::new(params))),
};

pub(super) const LOSS_THRESHOLD: Parameter = Parameter {
    name: "loss_threshold",
    description: "share of lost packets above which a probe was too much",
    kind: ParamKind::Number { default: 0.02, min: 0.0, max: 0.5 },
};
pub(super) const BETA: Parameter = Parameter {
    name: "beta",
    description: "smallest share of a bound that a round with loss leaves",
    kind: ParamKind::Number { default: 0.7, min: 0.1, max: 1.0 },
};
pub(super) const HEADROOM: Parameter = Parameter {
    name: "headroom",
    description: "share of the long-term bound left to others while cruising",
    kind: ParamKind::Number { default: 0.15, min: 0.0, max: 0.9 },
};
pub(super) const PROBE_WAIT: Parameter = Parameter {
    name: "probe_wait",
    description: "minimum time between bandwidth probes, seconds (up to one more at random)",
    kind: ParamKind::Number { default: 2.0, min: 0.0, max: 100.0 },
};
const ECN: Parameter = Parameter {
    name: "ecn",
    description: "answer CE marks, where the minimum RTT is at most 5 ms",
    kind: ParamKind::Choice(&["off", "on"]),
};

/// BBR v3 on one path.
#[derive(Debug)]
pub struct Bbr3 {
    rules: &'static Rules,
    constants: Constants,
    cwnd: u32,
    initial_window: u32,
    /// Set when Startup ends, for reports; BBR itself does not use it.
    ssthresh: u32,
    /// Bytes per second.
    pacing_rate: u64,
    has_seen_rtt: bool,
    mss: u32,

    /// Maximum delivery rate of the previous cycle and of this one, packets per microsecond times 2^24.
    bw_filter: [u64; 2],
    bounds: Bounds,
    min_rtt: MinRtt,
    round: RoundState,
    /// Packets delivered, and the time of the latest delivery.
    delivered: u64,
    delivered_at: Instant,
    congestion: CongestionSignals,
    ecn: EcnState,
    ack_aggregation: Aggregation,
    /// Excess acknowledgements by rounds, for rules with one sliding maximum.
    extra_acked_filter: WindowedMax,

    mode: Mode,
    /// The round in which Drain began.
    drain_start_round: u64,
    cycle: Cycle,
    full_bw: FullBw,
    probe_rtt: ProbeRtt,
    idle_restart: bool,

    /// The sender's state at the previous acknowledgement.
    prev_ca_state: CaState,
    episode: Episode,
    /// Window and bounds to restore after recovery, ProbeRTT and undo.
    prior_cwnd: u32,
    undo_bounds: Option<Bounds>,
    /// The mode that the episode's loss ended: Startup or ProbeBW_UP.
    undo_mode: Option<Mode>,
}

/// Packet-timed round trips, by the count of delivered packets.
#[derive(Debug, Default)]
struct RoundState {
    /// The round ends with a sample of a packet that was sent after this many had been delivered.
    next_round_delivered: u64,
    round_count: u64,
    /// Whether this acknowledgement began a round.
    round_start: bool,
}

/// One acknowledgement with its rate sample.
#[derive(Clone, Copy, Debug)]
struct AckInfo<'a> {
    ack_sample: &'a AckSample,
    rate_sample: Option<RateSample>,
    /// The sample's rate, packets per microsecond times 2^24; zero without one.
    rate: u64,
    /// Send state of the newest packet delivered.
    tx: TxRecord,
    now: Instant,
}

impl AckInfo<'_> {
    fn is_app_limited(&self) -> bool {
        self.rate_sample.is_some_and(|rate_sample| rate_sample.app_limited)
    }
}

impl Bbr3 {
    fn new(params: &Params) -> Self {
        Self::with_rules(params, &rules::LINUX)
    }

    /// BBR v3 as in draft-ietf-ccwg-bbr.
    pub(super) fn as_in_draft(params: &Params) -> Self {
        Self::with_rules(params, &rules::DRAFT)
    }

    fn with_rules(params: &Params, rules: &'static Rules) -> Self {
        Self {
            rules,
            constants: Constants::new(params, rules),
            cwnd: 10,
            initial_window: 10,
            ssthresh: INFINITE_SSTHRESH,
            pacing_rate: 0,
            has_seen_rtt: false,
            mss: 1448,
            bw_filter: [0; 2],
            bounds: Bounds::NONE,
            min_rtt: MinRtt::default(),
            round: RoundState::default(),
            delivered: 0,
            delivered_at: Instant::ZERO,
            congestion: CongestionSignals::default(),
            ecn: EcnState::default(),
            ack_aggregation: Aggregation::default(),
            extra_acked_filter: WindowedMax::default(),
            mode: Mode::Startup,
            drain_start_round: 0,
            cycle: Cycle::default(),
            full_bw: FullBw::default(),
            probe_rtt: ProbeRtt::default(),
            idle_restart: false,
            prev_ca_state: CaState::Open,
            episode: Episode::default(),
            prior_cwnd: 0,
            undo_bounds: None,
            undo_mode: None,
        }
    }

    fn init(&mut self, path: &PathInfo, now: Instant) {
        (self.cwnd, self.initial_window, self.mss) = (path.initial_window, path.initial_window, path.mss);
        self.min_rtt = MinRtt::new(path.rtt, now);
        self.delivered_at = now;
        self.ack_aggregation.restart(now);
        self.init_pacing_rate(path.rtt.unwrap_or(Span::ZERO));
    }

    fn on_ack(&mut self, sample: &AckSample, cx: &mut Context<'_>) {
        self.delivered = sample.delivered;
        if sample.acked > 0 {
            self.delivered_at = cx.now;
        }
        self.handle_lost_packets(sample, cx);
        let ack = self.ack_info(sample, cx.now);
        self.update_round(&ack);
        self.update_latest_delivery_signals(&ack);
        self.update_max_bw(&ack);
        self.update_ack_aggregation(&ack);
        self.check_startup_high_loss(&ack);
        self.check_full_bw_reached(&ack);
        self.check_drain(&ack, cx);
        self.update_probe_bw_cycle_phase(&ack, cx);
        self.update_min_rtt(&ack, cx);
        self.set_pacing_rate(sample.srtt);
        self.set_cwnd(sample);
        self.advance_latest_delivery_signals(&ack);
        self.prev_ca_state = sample.ca_state;
        self.episode.set_ca_state(sample.ca_state);
    }

    /// The acknowledgement with its sample, which is application-limited if ProbeRTT limited the sender.
    fn ack_info<'a>(&self, sample: &'a AckSample, now: Instant) -> AckInfo<'a> {
        let valid = |rate_sample: &RateSample| rate_sample.interval.as_micros() > 0 && sample.acked > 0;
        let rate_sample = sample.rate_sample.filter(valid).map(|rate_sample| {
            let app_limited = rate_sample.app_limited || self.probe_rtt.is_app_limited(rate_sample.prior_delivered);
            RateSample { app_limited, ..rate_sample }
        });
        let rate = rate_sample.map_or(0, |rate_sample| model::rate(rate_sample.delivered, rate_sample.interval));
        AckInfo {
            ack_sample: sample,
            rate_sample,
            rate,
            tx: self.congestion.tx_record(sample, rate_sample.as_ref()),
            now,
        }
    }

    fn update_round(&mut self, ack: &AckInfo<'_>) {
        self.round.round_start =
            ack.rate_sample.is_some_and(|rate_sample| rate_sample.prior_delivered >= self.round.next_round_delivered);
        if self.round.round_start {
            self.round.next_round_delivered = ack.ack_sample.delivered;
            self.round.round_count += 1;
            self.cycle.count_round();
        }
        self.update_ecn(ack);
    }

    fn update_ack_aggregation(&mut self, ack: &AckInfo<'_>) {
        if ack.rate_sample.is_some() {
            let (bandwidth, cwnd) = (self.bw(), self.cwnd);
            let slot_rounds = self.round.round_start.then_some(self.full_bw.extra_acked_win_rtts());
            let extra_acked =
                self.ack_aggregation.update(ack.ack_sample.acked, bandwidth, cwnd, slot_rounds, self.delivered_at);
            if let Some(rounds) = self.rules.extra_acked_rounds {
                let rounds = if self.full_bw.full_bw_reached { rounds } else { 1 };
                self.extra_acked_filter.update(rounds, self.round.round_count, extra_acked);
            }
        }
    }

    fn on_congestion(&mut self, cause: Cause, reduce_cwnd: bool, in_flight: u32, cx: &mut Context<'_>) {
        let begins = self.episode.on_congestion(cause, reduce_cwnd, self.cwnd, self.ssthresh);
        if begins || reduce_cwnd && !self.rules.loss_continues_reduction {
            self.save_cwnd_and_bounds();
        }
        match cause {
            Cause::Timeout => self.on_timeout(in_flight),
            Cause::TlpRecovery => self.on_tlp_recovery(cx),
            Cause::Loss | Cause::EcnMark | Cause::LocalDrop | Cause::Requested => {}
        }
    }

    fn on_timeout(&mut self, in_flight: u32) {
        let prior_cwnd = self.cwnd.max(self.prior_cwnd);
        self.cwnd = in_flight + 1;
        self.prev_ca_state = CaState::Loss;
        if !self.rules.timeout_changes_model {
            return;
        }
        self.full_bw.restart(0);
        if !self.mode.is_probing_bw() && self.bounds.inflight_lo == Bounds::NONE.inflight_lo {
            self.bounds.inflight_lo = prior_cwnd;
        }
    }

    /// Saves window and bounds before an episode changes them.
    fn save_cwnd_and_bounds(&mut self) {
        self.save_cwnd();
        (self.undo_bounds, self.undo_mode) = (Some(self.bounds), None);
    }

    fn on_spurious_loss(&mut self) {
        let prior_ssthresh = self.episode.on_spurious_loss();
        if self.rules.loss_continues_reduction {
            let Some(ssthresh) = prior_ssthresh else { return };
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
        self.full_bw.restart(0);
        self.congestion.loss_in_round = false;
        if let Some(saved) = self.undo_bounds {
            self.bounds = self.bounds.max(saved);
            self.cwnd = if self.rules.undo_restores_mode { self.cwnd.max(self.prior_cwnd) } else { self.prior_cwnd };
        }
        if self.rules.undo_restores_mode {
            self.return_to_undo_mode();
        }
    }

    /// Searches for bandwidth again if the spurious loss had ended the search.
    fn return_to_undo_mode(&mut self) {
        let Some(undo_mode) = self.undo_mode.take().filter(|undo_mode| *undo_mode != self.mode) else { return };
        self.full_bw.full_bw_reached &= undo_mode != Mode::Startup;
        match (undo_mode, self.mode) {
            (_, Mode::ProbeRtt) => {}
            (Mode::Startup, _) => self.mode = Mode::Startup,
            _ => self.start_probe_bw_refill(),
        }
    }

    fn on_idle_restart(&mut self, cx: &mut Context<'_>) {
        self.idle_restart = true;
        self.ack_aggregation.restart(cx.now);
        if self.mode.is_probe_bw() {
            self.pacing_rate = bandwidth::bytes_per_second(self.bw(), self.mss, BBR_UNIT);
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_done(cx);
        }
    }
}

impl PathController for Bbr3 {
    fn on_event(&mut self, event: &PathEvent, cx: &mut Context<'_>) {
        match event {
            PathEvent::Ack(sample) => self.on_ack(sample, cx),
            PathEvent::PathUp(path) => self.init(path, cx.now),
            PathEvent::Congestion { cause, reduce_cwnd, in_flight, .. } => {
                self.on_congestion(*cause, *reduce_cwnd, *in_flight, cx);
            }
            PathEvent::SpuriousLoss => self.on_spurious_loss(),
            PathEvent::Recovered { .. } => self.episode.set_ca_state(CaState::Open),
            PathEvent::IdleRestart { app_limited: true, .. } => self.on_idle_restart(cx),
            PathEvent::MssChanged { mss } => self.mss = *mss,
            // The model determines the window, not recovery or an idle application.
            PathEvent::PathDown
            | PathEvent::AckProgress(_)
            | PathEvent::WindowRestart { .. }
            | PathEvent::IdleRestart { .. }
            | PathEvent::ApplicationLimited { .. }
            | PathEvent::Penalise => {}
        }
    }

    fn decision(&self) -> Decision {
        // At least one byte per second, because a rate of zero would stop the sender.
        let pacing_rate = Rate::from_bits(self.pacing_rate.max(1).saturating_mul(8));
        Decision { cwnd: self.cwnd, ssthresh: self.ssthresh, pacing_rate: Some(pacing_rate) }
    }
}
