//! BBR, version 3: the model of version 1 with bounds from loss and marks.
//!
//! As in version 1 the sender paces at `gain * bandwidth` and keeps at most `gain * bandwidth * minimum RTT` in flight.
//! The model (`model.rs`) has the **bandwidth** (greatest delivery rate of this probing cycle and the one before) and
//! the **minimum RTT** (10 s); new are its bounds:
//! - *Long-term*: packets in flight at which a probe lost more than 2 %. It grows back by 1, 2, 4, 8... packets a
//!   round.
//! - *Short-term*: after a round with loss, bandwidth and packets in flight are reduced to those delivered in it, or to
//!   0.7 of the earlier bounds, whichever is more (`signals.rs`). The next probe resets them.
//!
//! The modes (`cycle.rs`):
//! - *Startup* at gain 2.77, until three rounds bring less than a quarter more bandwidth, or a round in recovery has
//!   six acknowledgements with loss and more than 2 % lost (`startup.rs`). *Drain*: the inverse, until the queue is
//!   gone.
//! - *Down* at 0.9, until there is headroom of 15 % below the long-term bound; *cruise* at 1; after 2 to 3 s (or as
//!   many rounds as Reno would need for a loss) *refill* at 1 for a round; then *up* at 1.25, until the bandwidth does
//!   not grow any more, or too much is lost.
//! - *RTT probing*, if five seconds brought no new minimum RTT: half a window for 200 ms (`min_rtt.rs`).
//!
//! What it needs of the sender: of the newest packet delivered and of the newest one lost, the packets in flight at its
//! sending and what was lost since (`AckSample::newest_delivered`, `newest_lost`). Without them, the packets
//! delivered and lost over the rate sample's interval are used. With `ecn`, the mark of each packet
//! ([`crate::Ecn`]).
//!
//! Source: the Linux v3 branch of google/bbr (`tcp_bbr.c`): constants, integer units, order of one acknowledgement;
//! draft-ietf-ccwg-bbr for the names. Where the two differ, as in Linux: bounds of the 2 % rule round down (one lost
//! packet of 51 in flight is too much), excess acknowledgements count over 5 rounds, drain has no limit in rounds, the
//! drain gain is 0.34 (draft: 0.5), spurious loss restores bounds and window (draft: also the mode that it ended).
//! Deviations from Linux: the loss of several packets on one acknowledgement is evaluated by the newest of them; losses
//! found by a timer are evaluated with the next acknowledgement; no fast path for application-limited flows; no path
//! change on marks (PLB); no early probe when marks cease; as in version 1, the pacer's next release is not known.

mod cwnd;
mod cycle;
mod ecn;
mod min_rtt;
mod model;
mod signals;
mod startup;
#[cfg(test)]
mod tests;

use super::bbr::aggregation::Aggregation;
use super::bbr::bandwidth;
use super::bbr::probe_rtt::ProbeRtt;
use crate::{
    AckSample, AlgorithmEntry, CaState, Cause, Constructor, Context, Decision, Deviation, Ecn, ParamKind, Parameter,
    Params, PathController, PathEvent, PathInfo, Properties, RateSample,
};
use bandwidth::BBR_UNIT;
use cycle::{Cycle, Mode};
use ecn::EcnState;
use min_rtt::MinRtt;
use model::{Bounds, Constants};
use signals::{CongestionSignals, TxRecord};
use startup::FullBw;
use units::{INFINITE_SSTHRESH, Instant, Rate, Span};

/// Registration.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "bbr3",
    aliases: &["bbrv3"],
    title: "BBR v3: BBR with bounds learnt from loss, and gentler probing",
    source: "google/bbr v3 tcp_bbr.c; draft-ietf-ccwg-bbr",
    parameters: &[
        Parameter {
            name: "loss_threshold",
            description: "share of lost packets above which a probe was too much",
            kind: ParamKind::Number { default: 0.02, min: 0.0, max: 0.5 },
        },
        Parameter {
            name: "beta",
            description: "what a round with loss leaves of a bound, at least",
            kind: ParamKind::Number { default: 0.7, min: 0.1, max: 1.0 },
        },
        Parameter {
            name: "headroom",
            description: "share of the long-term bound left to others while cruising",
            kind: ParamKind::Number { default: 0.15, min: 0.0, max: 0.9 },
        },
        Parameter {
            name: "probe_wait",
            description: "minimum time between bandwidth probes, seconds (up to one more at random)",
            kind: ParamKind::Number { default: 2.0, min: 0.0, max: 100.0 },
        },
        Parameter {
            name: "ecn",
            description: "answer CE marks, where the minimum RTT is at most 5 ms",
            kind: ParamKind::Choice(&["off", "on"]),
        },
    ],
    properties: Properties {
        // Marks count only with per-packet feedback (Linux v3: on routes with `ecn_low`).
        ecn: |params| if params.choice("ecn") == "on" { Ecn::PerPacket } else { Ecn::Classic },
        min_cwnd: 4,
        deviations: &[
            (
                Deviation::RaisesUnfilledCwnd,
                "the window follows the model; samples of an idle application do not enter it",
            ),
            (Deviation::KeepsCwndOnUndo, "loss does not set the threshold; what it did to the bounds is undone"),
        ],
        colour: Some(["#a33c00", "#ff9a63"]),
        ..Properties::DEFAULT
    },
    constructor: Constructor::PerPath(|params| Box::new(Bbr3::new(params))),
};

/// 4 ln 2: the minimum gain that doubles the delivery rate every round trip, with a window of two bandwidth-delay
/// products (in 1/256).
const STARTUP_GAIN: u32 = 710;

/// BBR v3 on one path.
#[derive(Debug)]
pub struct Bbr3 {
    constants: Constants,
    cwnd: u32,
    initial_window: u32,
    /// Set when Startup ends, for reports; BBR itself does not use it.
    ssthresh: u32,
    /// Bytes a second.
    pacing_rate: u64,
    has_seen_rtt: bool,
    mss: u32,

    /// Greatest delivery rate of the previous cycle and of this one, packets a microsecond times 2^24.
    bw_filter: [u64; 2],
    bounds: Bounds,
    min_rtt: MinRtt,
    round: RoundState,
    /// Packets delivered, and when the latest was.
    delivered: u64,
    delivered_at: Instant,
    congestion: CongestionSignals,
    ecn: EcnState,
    ack_aggregation: Aggregation,

    mode: Mode,
    cycle: Cycle,
    full_bw: FullBw,
    probe_rtt: ProbeRtt,
    idle_restart: bool,

    /// The sender's state at the previous acknowledgement.
    prev_ca_state: CaState,
    /// Window and bounds to restore after recovery, ProbeRTT and undo.
    prior_cwnd: u32,
    undo_bounds: Option<Bounds>,
}

/// Packet-timed round trips, by the count of delivered packets.
#[derive(Debug, Default)]
struct RoundState {
    /// The round ends with a sample of a packet sent when this many were delivered.
    next_round_delivered: u64,
    /// Whether this acknowledgement began a round.
    round_start: bool,
}

/// One acknowledgement with its rate sample.
#[derive(Clone, Copy, Debug)]
struct AckInfo<'a> {
    ack_sample: &'a AckSample,
    rate_sample: Option<RateSample>,
    /// The sample's rate, packets a microsecond times 2^24; zero without one.
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
        Self {
            constants: Constants::new(params),
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
            mode: Mode::Startup,
            cycle: Cycle::default(),
            full_bw: FullBw::default(),
            probe_rtt: ProbeRtt::default(),
            idle_restart: false,
            prev_ca_state: CaState::Open,
            prior_cwnd: 0,
            undo_bounds: None,
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
    }

    /// The sample, application-limited where ProbeRTT limited the sender.
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
            self.cycle.count_round();
        }
        self.update_ecn(ack);
    }

    fn update_ack_aggregation(&mut self, ack: &AckInfo<'_>) {
        if ack.rate_sample.is_some() {
            let (bandwidth, cwnd) = (self.bw(), self.cwnd);
            let slot_rounds = self.round.round_start.then_some(self.full_bw.extra_acked_win_rtts());
            self.ack_aggregation.update(ack.ack_sample.acked, bandwidth, cwnd, slot_rounds, self.delivered_at);
        }
    }

    fn on_congestion(&mut self, cause: Cause, reduce_cwnd: bool, in_flight: u32, cx: &mut Context<'_>) {
        if reduce_cwnd {
            self.save_cwnd_and_bounds();
        }
        match cause {
            Cause::Timeout => self.on_timeout(in_flight),
            Cause::TlpRecovery => self.on_tlp_recovery(cx),
            Cause::Loss | Cause::EcnMark | Cause::LocalDrop => {}
        }
    }

    fn on_timeout(&mut self, in_flight: u32) {
        let prior_cwnd = self.cwnd.max(self.prior_cwnd);
        self.cwnd = in_flight + 1;
        self.prev_ca_state = CaState::Loss;
        self.full_bw.restart(0);
        if !self.mode.is_probing_bw() && self.bounds.inflight_lo == Bounds::NONE.inflight_lo {
            self.bounds.inflight_lo = prior_cwnd;
        }
    }

    /// Saves window and bounds before an episode changes them.
    fn save_cwnd_and_bounds(&mut self) {
        self.save_cwnd();
        self.undo_bounds = Some(self.bounds);
    }

    fn on_spurious_loss(&mut self) {
        self.full_bw.restart(0);
        self.congestion.loss_in_round = false;
        if let Some(saved) = self.undo_bounds {
            self.bounds = self.bounds.max(saved);
            self.cwnd = self.prior_cwnd;
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
            PathEvent::Congestion { cause, reduce_cwnd, in_flight } => {
                self.on_congestion(*cause, *reduce_cwnd, *in_flight, cx);
            }
            PathEvent::SpuriousLoss => self.on_spurious_loss(),
            PathEvent::IdleRestart { .. } => self.on_idle_restart(cx),
            PathEvent::MssChanged { mss } => self.mss = *mss,
            // The model sets the window, not recovery or an idle application.
            PathEvent::PathDown
            | PathEvent::Recovered { .. }
            | PathEvent::ApplicationLimited { .. }
            | PathEvent::Penalise => {}
        }
    }

    fn decision(&self) -> Decision {
        // A byte a second at least: a rate of zero would stop the sender.
        let pacing_rate = Rate::from_bits(self.pacing_rate.max(1).saturating_mul(8));
        Decision { cwnd: self.cwnd, ssthresh: self.ssthresh, pacing_rate: Some(pacing_rate) }
    }
}
