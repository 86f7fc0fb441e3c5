//! BBR, version 3: the model of version 1, bounded by what loss and marks have shown to be too much.
//!
//! As in version 1 the sender paces at `gain * bandwidth` and keeps at most `gain * bandwidth * least RTT` in flight.
//! The model (`model.rs`) has the **bandwidth** (greatest delivery rate of this probing cycle and the one before) and
//! the **least RTT** (10 s); new are its bounds:
//! - *Long-term*: packets in flight at which a probe lost more than 2 %. It grows back by 1, 2, 4, 8... packets a
//!   round.
//! - *Short-term*: after a round with loss, bandwidth and packets in flight come down to what was delivered in it, or
//!   to 0.7 of what they were, whichever is more (`signals.rs`). The next probe forgets them.
//!
//! The modes (`cycle.rs`):
//! - *Startup* at gain 2.77, until three rounds bring less than a quarter more bandwidth, or a round in recovery has
//!   six acknowledgements with loss and more than 2 % lost (`startup.rs`). *Drain*: the inverse, until the queue is
//!   gone.
//! - *Down* at 0.9, until there is headroom of 15 % below the long-term bound; *cruise* at 1; after 2 to 3 s (or as
//!   many rounds as Reno would need for a loss) *refill* at 1 for a round; then *up* at 1.25, until the bandwidth does
//!   not grow any more, or too much is lost.
//! - *RTT probing*, if five seconds brought no new least RTT: half a window for 200 ms (`rtt.rs`).
//!
//! What it needs from the machine: of the newest packet delivered and of the newest one lost, the packets in flight at
//! its sending and what was lost since (`AckSample::newest_delivered`, `newest_lost`). Where they are missing, what was delivered
//! and lost over the rate sample's interval stands in for them. With `ecn`, the mark of each packet ([`crate::Ecn`]).
//!
//! Source: the Linux v3 branch of google/bbr (`tcp_bbr.c`): constants, integer units, order of one acknowledgement;
//! draft-ietf-ccwg-bbr for what the names mean.
//! Where the two disagree, Linux's way: bounds of the 2 % rule round down (one lost packet of 51 in flight is too
//! much), excess acknowledgements count over 5 rounds, drain has no limit in rounds, the drain gain is 0.34 (draft:
//! 0.5), spurious loss restores bounds and window (draft: also the mode that it ended).
//! Departures from Linux: the loss of several packets on one acknowledgement is judged by the newest of them; losses
//! found by a timer are judged with the next acknowledgement; no fast path for application-limited flows; no path
//! change on marks (PLB); no early probe when marks cease; as in version 1, the pacer's next release is not known.

mod cwnd;
mod cycle;
mod ecn;
mod model;
mod rtt;
mod signals;
mod startup;
#[cfg(test)]
mod tests;

use super::bbr::aggregation::Aggregation;
use super::bbr::bandwidth;
use super::bbr::rtt_probe::RttProbe;
use crate::{
    AckSample, AlgorithmEntry, CaState, Cause, Constructor, Context, Decision, ParamDefault, Parameter, Params,
    PathController, PathEvent, PathInfo, RateSample,
};
use bandwidth::GAIN_ONE;
use cycle::{Cycle, Mode};
use ecn::Ecn;
use model::{Bounds, Tuning};
use rtt::LeastRtt;
use signals::{Flight, Signals};
use startup::FullPipe;
use units::{INFINITE_SSTHRESH, Instant, Rate, Span};

/// The registry's line.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "bbr3",
    aliases: &["bbrv3"],
    title: "BBR v3: BBR with bounds learnt from loss, and gentler probing",
    source: "google/bbr v3 tcp_bbr.c; draft-ietf-ccwg-bbr",
    parameters: &[
        Parameter {
            name: "loss_threshold",
            meaning: "share of lost packets above which a probe was too much",
            default: ParamDefault::Number { value: 0.02, least: 0.0, most: 0.5 },
        },
        Parameter {
            name: "beta",
            meaning: "what a round with loss leaves of a bound, at least",
            default: ParamDefault::Number { value: 0.7, least: 0.1, most: 1.0 },
        },
        Parameter {
            name: "headroom",
            meaning: "share of the long-term bound left to others while cruising",
            default: ParamDefault::Number { value: 0.15, least: 0.0, most: 0.9 },
        },
        Parameter {
            name: "probe_wait",
            meaning: "least time between bandwidth probes, seconds (up to one more at random)",
            default: ParamDefault::Number { value: 2.0, least: 0.0, most: 100.0 },
        },
        Parameter {
            name: "ecn",
            meaning: "answer CE marks, where the least RTT is at most 5 ms",
            default: ParamDefault::Word(&["off", "on"]),
        },
    ],
    make: Constructor::Single(|settings| Box::new(Bbr3::new(settings))),
};

/// 4 ln 2: the least gain that doubles the delivery rate every round trip, with a window of two products (in 1/256).
const STARTUP_GAIN: u32 = 710;

/// The model, the mode, and what follows from them.
#[derive(Debug)]
pub struct Bbr3 {
    tuning: Tuning,
    cwnd: u32,
    initial_window: u32,
    /// Set when startup ends, for those who look; BBR itself does not use it.
    ssthresh: u32,
    /// Bytes a second.
    pacing_rate: u64,
    pacing_saw_rtt: bool,
    mss: u32,

    /// The greatest of the cycle before and of this one, packets a microsecond times 2^24.
    bandwidths: [u64; 2],
    bounds: Bounds,
    least_rtt: LeastRtt,
    round: Round,
    /// Packets delivered, and when the latest was.
    delivered: u64,
    delivered_at: Instant,
    signals: Signals,
    ecn: Ecn,
    aggregation: Aggregation,

    mode: Mode,
    cycle: Cycle,
    full_pipe: FullPipe,
    rtt_probe: RttProbe,
    restarted: bool,

    /// The sender's state at the acknowledgement before.
    ca_state: CaState,
    /// The last good window and bounds, to return to.
    prior_cwnd: u32,
    saved_bounds: Option<Bounds>,
}

/// Packet-timed round trips, by the count of delivered packets.
#[derive(Debug, Default)]
struct Round {
    /// A sample of a packet sent when this many were delivered ends the round.
    end: u64,
    /// This acknowledgement began a round.
    begun: bool,
}

/// One acknowledgement, seen with the sample that it made.
#[derive(Clone, Copy, Debug)]
struct Ack<'a> {
    sample: &'a AckSample,
    rs: Option<RateSample>,
    /// The sample's rate, packets a microsecond times 2^24; zero without one.
    rate: u64,
    /// The flight of the newest packet delivered.
    flight: Flight,
    now: Instant,
}

impl Ack<'_> {
    fn is_app_limited(&self) -> bool {
        self.rs.is_some_and(|rs| rs.app_limited)
    }
}

impl Bbr3 {
    fn new(settings: &Params) -> Self {
        Self {
            tuning: Tuning::new(settings),
            cwnd: 10,
            initial_window: 10,
            ssthresh: INFINITE_SSTHRESH,
            pacing_rate: 0,
            pacing_saw_rtt: false,
            mss: 1448,
            bandwidths: [0; 2],
            bounds: Bounds::NONE,
            least_rtt: LeastRtt::default(),
            round: Round::default(),
            delivered: 0,
            delivered_at: Instant::ZERO,
            signals: Signals::default(),
            ecn: Ecn::default(),
            aggregation: Aggregation::default(),
            mode: Mode::Startup,
            cycle: Cycle::default(),
            full_pipe: FullPipe::default(),
            rtt_probe: RttProbe::default(),
            restarted: false,
            ca_state: CaState::Open,
            prior_cwnd: 0,
            saved_bounds: None,
        }
    }

    fn start(&mut self, path: &PathInfo, now: Instant) {
        (self.cwnd, self.initial_window, self.mss) = (path.initial_window, path.initial_window, path.mss);
        self.least_rtt = LeastRtt::new(path.rtt, now);
        self.delivered_at = now;
        self.aggregation.restart(now);
        self.pace_by_window(path.rtt.unwrap_or(Span::ZERO));
    }

    fn on_feedback(&mut self, sample: &AckSample, cx: &mut Context<'_>) {
        self.delivered = sample.delivered;
        if sample.acked > 0 {
            self.delivered_at = cx.now;
        }
        self.note_losses(sample, cx);
        let ack = self.read(sample, cx.now);
        self.begin_round(&ack);
        self.update_latest(&ack);
        self.update_bandwidth(&ack);
        self.update_aggregation(&ack);
        self.check_startup_loss(&ack);
        self.check_full_pipe(&ack);
        self.check_drain(&ack, cx);
        self.update_cycle(&ack, cx);
        self.update_least_rtt(&ack, cx);
        self.update_pacing(sample.srtt);
        self.update_window(sample);
        self.forget_latest(&ack);
        self.ca_state = sample.ca_state;
    }

    /// The sample, marked where RTT probing held the sender back.
    fn read<'a>(&self, sample: &'a AckSample, now: Instant) -> Ack<'a> {
        let valid = |rs: &RateSample| rs.interval.as_micros() > 0 && sample.acked > 0;
        let rs = sample.rate_sample.filter(valid).map(|rs| {
            let app_limited = rs.app_limited || self.rtt_probe.held_back(rs.prior_delivered);
            RateSample { app_limited, ..rs }
        });
        let rate = rs.map_or(0, |rs| model::rate(rs.delivered, rs.interval));
        Ack { sample, rs, rate, flight: self.signals.flight(sample, rs.as_ref()), now }
    }

    fn begin_round(&mut self, ack: &Ack<'_>) {
        self.round.begun = ack.rs.is_some_and(|rs| rs.prior_delivered >= self.round.end);
        if self.round.begun {
            self.round.end = ack.sample.delivered;
            self.cycle.count_round();
        }
        self.update_ecn(ack);
    }

    fn update_aggregation(&mut self, ack: &Ack<'_>) {
        if ack.rs.is_some() {
            let (bandwidth, cwnd) = (self.bandwidth(), self.cwnd);
            let slot = self.round.begun.then_some(self.full_pipe.excess_rounds());
            self.aggregation.update(ack.sample.acked, bandwidth, cwnd, slot, self.delivered_at);
        }
    }

    fn on_congestion(&mut self, cause: Cause, cut: bool, in_flight: u32, cx: &mut Context<'_>) {
        if cut {
            self.save();
        }
        match cause {
            Cause::Timeout => self.on_timeout(in_flight),
            Cause::TlpRepair => self.on_probe_repair(cx),
            Cause::Loss | Cause::EcnMark | Cause::LocalDrop => {}
        }
    }

    fn on_timeout(&mut self, in_flight: u32) {
        let before = self.cwnd.max(self.prior_cwnd);
        self.cwnd = in_flight + 1;
        self.ca_state = CaState::Loss;
        self.full_pipe.restart(0);
        if !self.mode.is_probing() && self.bounds.short == Bounds::NONE.short {
            self.bounds.short = before;
        }
    }

    /// Remembers window and bounds before an episode changes them.
    fn save(&mut self) {
        self.save_window();
        self.saved_bounds = Some(self.bounds);
    }

    fn on_spurious_loss(&mut self) {
        self.full_pipe.restart(0);
        self.signals.loss_in_round = false;
        if let Some(saved) = self.saved_bounds {
            self.bounds = self.bounds.max(saved);
            self.cwnd = self.prior_cwnd;
        }
    }

    fn on_restart(&mut self, cx: &mut Context<'_>) {
        self.restarted = true;
        self.aggregation.restart(cx.now);
        if self.mode.is_cycling() {
            self.pacing_rate = bandwidth::bytes_per_second(self.bandwidth(), self.mss, GAIN_ONE);
        } else if self.mode == Mode::ProbeRtt {
            self.check_rtt_probe_over(cx);
        }
    }
}

impl PathController for Bbr3 {
    fn on_event(&mut self, event: &PathEvent, cx: &mut Context<'_>) {
        match event {
            PathEvent::Ack(sample) => self.on_feedback(sample, cx),
            PathEvent::PathUp(path) => self.start(path, cx.now),
            PathEvent::Congestion { cause, cut, in_flight } => self.on_congestion(*cause, *cut, *in_flight, cx),
            PathEvent::SpuriousLoss => self.on_spurious_loss(),
            PathEvent::IdleRestart { .. } => self.on_restart(cx),
            PathEvent::MssChanged { mss } => self.mss = *mss,
            // The window is the model's: recovery and an idle application do not settle it.
            PathEvent::PathDown
            | PathEvent::Recovered { .. }
            | PathEvent::ApplicationLimited { .. }
            | PathEvent::Penalise => {}
        }
    }

    fn decision(&self) -> Decision {
        // A byte a second at least: a rate of zero would never send again.
        let pacing_rate = Rate::from_bits(self.pacing_rate.max(1).saturating_mul(8));
        Decision { cwnd: self.cwnd, ssthresh: self.ssthresh, pacing_rate: Some(pacing_rate) }
    }

    /// Marks count packet by packet, or not at all (Linux v3: on routes with `ecn_low`).
    fn ecn(&self) -> crate::Ecn {
        if self.tuning.ecn { crate::Ecn::PerPacket } else { crate::Ecn::Classic }
    }
}
