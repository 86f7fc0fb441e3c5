//! A sender driven by random actions, which reports consistent events and checks the invariants of a controller.

use control::{
    AckSample, AlgorithmEntry, CaState, Cause, Context, Controller, Decision, Deviation, ParamValue, PathEvent,
    PathInfo, RateSample, Reduction, SendState,
};
use std::collections::BTreeMap;
use units::{INFINITE_SSTHRESH, Instant, PathId, RngStream, Span};

/// An action on a path. Counts are clamped to the possible.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// Sends up to this many packets, as the window allows; lost ones first.
    Send(u32),
    /// One acknowledgement.
    Ack {
        acked: u32,
        lost: u32,
        rtt_us: u64,
        cwnd_limited: bool,
        app_limited: bool,
    },
    /// An ECN echo.
    Mark,
    LocalDrop,
    Timeout,
    /// The latest reduction was spurious.
    SpuriousLoss,
    TlpRecovery,
    ApplicationLimited(u32),
    Mss(u32),
    /// Milliseconds pass.
    Wait(u64),
    /// The path goes down if it is up, and comes up if it is down.
    Toggle,
}

/// State of one path.
#[derive(Debug, Default)]
struct Path {
    down: bool,
    next: u64,
    in_flight: u32,
    lost: u32,
    sacked: u32,
    delivered: u64,
    delivered_at_send: u64,
    /// Packets ever lost; now, and when the newest packet was sent.
    ever_lost: u32,
    lost_at_send: u32,
    in_flight_at_send: u32,
    sent: u32,
    last_send: Instant,
    ca_state: CaState,
    /// The episode ends when everything up to here is acknowledged.
    high_seq: u64,
    may_undo: bool,
    srtt: Span,
    min_rtt: Option<Span>,
}

impl Path {
    fn una(&self) -> u64 {
        self.next - u64::from(self.in_flight) - u64::from(self.lost) - u64::from(self.sacked)
    }
}

/// A sender with three paths and one algorithm, which checks every decision.
pub(crate) struct Sender {
    /// Whether the coupling has path controllers, which may raise an unfilled window.
    has_path_controllers: bool,
    entry: &'static AlgorithmEntry,
    controller: Box<dyn Controller>,
    rng: RngStream,
    now: Instant,
    paths: [Path; 3],
}

pub(crate) const PATH: PathInfo = PathInfo {
    mss: 1448,
    initial_window: 10,
    rtt: None,
    tick: Span::from_millis(1),
    cwnd_clamp: u32::MAX / 2,
    reduction: Reduction::Proportional,
};

impl Sender {
    /// A sender whose paths come up.
    pub(crate) fn new(entry: &'static AlgorithmEntry) -> Self {
        Self::with(entry, &BTreeMap::new())
    }

    /// The same with these parameters.
    pub(crate) fn with(entry: &'static AlgorithmEntry, given: &BTreeMap<String, ParamValue>) -> Self {
        let controller = entry.controller(given).expect("allowed");
        let has_path_controllers = given.get("path").is_some_and(|path| *path != ParamValue::Choice("reno".to_owned()));
        let rng = RngStream::named(1, "controller");
        let mut sender =
            Self { has_path_controllers, entry, controller, rng, now: Instant::ZERO, paths: Default::default() };
        (0..sender.paths.len()).for_each(|path| sender.bring_up(path));
        sender
    }

    /// The path comes up, for the first time or again, with the same random stream, so that runs can be compared.
    pub(crate) fn bring_up(&mut self, path: usize) {
        self.paths[path] = Path { last_send: self.now, ..Path::default() };
        self.rng = RngStream::named(1, "controller");
        let event = PathEvent::PathUp(PATH);
        self.controller.on_event(PathId(path as u16), &event, &mut context(self.now, &mut self.rng));
    }

    pub(crate) fn decision(&self, path: usize) -> Decision {
        self.controller.decision(PathId(path as u16))
    }

    pub(crate) fn apply(&mut self, path: usize, action: Action) {
        if self.paths[path].down {
            if matches!(action, Action::Toggle) {
                self.bring_up(path);
            }
            return;
        }
        match action {
            Action::Toggle => {
                self.notify(path, &PathEvent::PathDown);
                self.paths[path].down = true;
            }
            Action::Send(count) => self.send(path, count),
            Action::Ack { acked, lost, rtt_us, cwnd_limited, app_limited } => {
                let rtt = Span::from_micros(rtt_us);
                self.ack(path, acked, lost, rtt, (cwnd_limited, app_limited));
            }
            Action::Mark => self.on_congestion(path, Cause::EcnMark),
            Action::LocalDrop => self.on_congestion(path, Cause::LocalDrop),
            Action::Timeout => self.timeout(path),
            Action::SpuriousLoss => self.on_spurious_loss(path),
            Action::TlpRecovery => self.tlp_recovery(path),
            Action::ApplicationLimited(used) if self.paths[path].ca_state == CaState::Open => {
                self.notify(path, &PathEvent::ApplicationLimited { cwnd_used: used });
            }
            Action::ApplicationLimited(_) => {}
            Action::Mss(mss) => self.notify(path, &PathEvent::MssChanged { mss }),
            Action::Wait(millis) => self.now += Span::from_millis(millis),
        }
    }

    fn send(&mut self, path: usize, count: u32) {
        let window = self.decision(path).cwnd;
        let now = self.now;
        let state = &mut self.paths[path];
        let count = count.min(window.saturating_sub(state.in_flight));
        if count == 0 {
            return;
        }
        let was_empty = state.una() == state.next;
        let idle = now.since(state.last_send);
        let retransmissions = count.min(state.lost);
        state.lost -= retransmissions;
        state.in_flight += count;
        state.next += u64::from(count - retransmissions);
        state.sent += count;
        state.last_send = now;
        state.delivered_at_send = state.delivered;
        (state.lost_at_send, state.in_flight_at_send) = (state.ever_lost, state.in_flight);
        if was_empty {
            self.notify(path, &PathEvent::IdleRestart { idle, rto: Span::from_millis(250) });
        }
    }

    fn ack(&mut self, path: usize, acked: u32, lost: u32, rtt: Span, (cwnd_limited, app_limited): (bool, bool)) {
        let state = &mut self.paths[path];
        let (prior_una, prior_in_flight) = (state.una(), state.in_flight);
        let acked = acked.min(state.in_flight);
        state.in_flight -= acked;
        let lost = lost.min(state.in_flight);
        state.in_flight -= lost;
        state.lost += lost;
        state.ever_lost += lost;
        state.delivered += u64::from(acked);
        state.sacked = if state.lost == 0 { 0 } else { state.sacked + acked };
        if acked > 0 {
            state.srtt = rtt;
            state.min_rtt = Some(state.min_rtt.map_or(rtt, |min_rtt| min_rtt.min(rtt)));
        }
        if lost > 0 {
            self.on_congestion(path, Cause::Loss);
        }
        self.end_episode(path);
        let state = &mut self.paths[path];
        let sample = RateSample {
            delivered: (state.delivered - state.delivered_at_send) as u32,
            interval: rtt,
            prior_delivered: state.delivered_at_send,
            app_limited,
            ack_delayed: false,
        };
        let newest = SendState {
            tx_in_flight: state.in_flight_at_send,
            lost: state.ever_lost - state.lost_at_send,
            app_limited,
            ..SendState::default()
        };
        let sample = AckSample {
            acked,
            pkts_acked: acked,
            lost,
            newest_delivered: (acked > 0).then_some(newest),
            newest_lost: (lost > 0).then_some(newest),
            sent: std::mem::take(&mut state.sent),
            prior_in_flight,
            in_flight: state.in_flight,
            rtt: (acked > 0).then_some(rtt),
            srtt: state.srtt,
            min_rtt: state.min_rtt.unwrap_or(Span::MAX),
            rate_sample: (acked > 0).then_some(sample),
            delivered: state.delivered,
            snd_una: state.una(),
            snd_nxt: state.next,
            una_advanced: state.una() > prior_una,
            cwnd_limited,
            may_raise_cwnd: state.una() > prior_una,
            ca_state: state.ca_state,
            ..AckSample::default()
        };
        self.notify(path, &PathEvent::Ack(sample));
    }

    /// Loss, mark or local drop: an episode begins, unless a more severe one is under way.
    fn on_congestion(&mut self, path: usize, cause: Cause) {
        let to = if cause == Cause::Loss { CaState::Recovery } else { CaState::Cwr };
        let state = &mut self.paths[path];
        let begins = state.ca_state < to;
        if begins && state.ca_state < CaState::Cwr {
            state.high_seq = state.next;
            state.sent = 0;
        }
        state.may_undo = begins && cause == Cause::Loss;
        let in_flight = state.in_flight;
        // Before the state changes, as the invariants are about the state before.
        if begins || cause != Cause::Loss {
            self.notify(path, &PathEvent::Congestion { cause, reduce_cwnd: true, in_flight });
        }
        let state = &mut self.paths[path];
        state.ca_state = state.ca_state.max(to);
    }

    fn end_episode(&mut self, path: usize) {
        let state = &mut self.paths[path];
        if state.ca_state >= CaState::Cwr && state.una() >= state.high_seq {
            let reduced = state.ca_state < CaState::Loss;
            state.ca_state = CaState::Open;
            if reduced {
                self.notify(path, &PathEvent::Recovered { to_ssthresh: true });
            }
        }
    }

    fn timeout(&mut self, path: usize) {
        let state = &mut self.paths[path];
        if state.una() == state.next {
            return;
        }
        let reduce_cwnd = state.ca_state < CaState::Cwr || state.una() >= state.high_seq;
        state.lost += state.in_flight;
        state.in_flight = 0;
        state.may_undo |= reduce_cwnd;
        state.ca_state = CaState::Loss;
        state.high_seq = state.next;
        self.notify(path, &PathEvent::Congestion { cause: Cause::Timeout, reduce_cwnd, in_flight: 0 });
    }

    fn on_spurious_loss(&mut self, path: usize) {
        let state = &mut self.paths[path];
        if std::mem::take(&mut state.may_undo) {
            let reduced = matches!(state.ca_state, CaState::Cwr | CaState::Recovery);
            state.ca_state = CaState::Open;
            self.notify(path, &PathEvent::SpuriousLoss);
            if reduced {
                self.notify(path, &PathEvent::Recovered { to_ssthresh: false });
            }
        }
    }

    fn tlp_recovery(&mut self, path: usize) {
        let state = &self.paths[path];
        if state.ca_state < CaState::Cwr {
            let in_flight = state.in_flight;
            self.notify(path, &PathEvent::Congestion { cause: Cause::TlpRecovery, reduce_cwnd: true, in_flight });
        }
    }

    fn notify(&mut self, path: usize, event: &PathEvent) {
        let before = self.decision(path);
        self.controller.on_event(PathId(path as u16), event, &mut context(self.now, &mut self.rng));
        let after = self.decision(path);
        self.check(path, event, before, after);
    }

    fn check(&self, path: usize, event: &PathEvent, before: Decision, after: Decision) {
        let (name, ca_state) = (self.entry.name, self.paths[path].ca_state);
        let describe = || format!("{name} on {event:?} in {ca_state:?}: {before:?} became {after:?}");
        assert!(
            (1..=INFINITE_SSTHRESH).contains(&after.cwnd),
            "cwnd is at least one packet and finite: {}",
            describe()
        );
        assert!((2..=INFINITE_SSTHRESH).contains(&after.ssthresh), "ssthresh is at least two packets: {}", describe());
        assert!(after.pacing_rate.is_none_or(|rate| rate.as_bits() > 0), "the pacing rate is zero: {}", describe());
        if ca_state < CaState::Cwr && !matches!(event, PathEvent::Congestion { .. }) {
            let min_cwnd = self.entry.properties.min_cwnd.min(before.cwnd);
            assert!(after.cwnd >= min_cwnd, "cwnd is below the minimum outside a reduction: {}", describe());
        }
        if let PathEvent::Ack(sample) = event {
            let may_rise = sample.cwnd_limited
                || matches!(sample.ca_state, CaState::Cwr | CaState::Recovery)
                || self.entry.deviates(Deviation::RaisesUnfilledCwnd)
                || self.has_path_controllers;
            assert!(may_rise || after.cwnd <= before.cwnd, "cwnd grew though it is not filled: {}", describe());
        }
        if let PathEvent::Congestion { cause, reduce_cwnd, .. } = event {
            let reduces_again = *cause == Cause::Loss
                && ca_state == CaState::Cwr
                && self.entry.deviates(Deviation::ReducesOnLossAfterMark);
            let reduced_before =
                !reduce_cwnd || ca_state >= CaState::Cwr && !matches!(cause, Cause::Timeout) && !reduces_again;
            assert!(
                !reduced_before || after.ssthresh == before.ssthresh,
                "ssthresh was reduced twice in one window: {}",
                describe()
            );
        }
    }
}

fn context(now: Instant, rng: &mut RngStream) -> Context<'_> {
    Context { now, rng }
}
