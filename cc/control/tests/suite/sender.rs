//! A sender driven by random actions, which reports consistent events to a controller whose decisions are checked.

use control::{
    AlgorithmEntry, CaState, Cause, Context, Controller, Decision, Deviation, ParamValue, PathEvent, PathInfo,
    Reduction,
};
use std::collections::BTreeMap;
use transport::path::{AckedPackets, ControllerHandle, Outstanding, PathSender};
use transport::recovery::SendSnapshot;
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

/// A controller that checks each decision of another one.
#[derive(Debug)]
struct CheckedController {
    inner: Box<dyn Controller>,
    entry: &'static AlgorithmEntry,
    /// Whether the coupling has path controllers, which may raise an unfilled window.
    has_path_controllers: bool,
    /// The congestion states of the paths, by their events.
    ca_states: BTreeMap<PathId, CaState>,
}

impl Controller for CheckedController {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        let ca_state = match event {
            PathEvent::PathUp(_) => {
                self.ca_states.insert(path, CaState::Open);
                return self.inner.on_event(path, event, cx);
            }
            PathEvent::Ack(sample) => sample.ca_state,
            PathEvent::SpuriousLoss | PathEvent::Recovered { .. } => CaState::Open,
            _ => self.ca_states[&path],
        };
        let prior = self.inner.decision(path);
        self.inner.on_event(path, event, cx);
        self.check(event, ca_state, prior, self.inner.decision(path));
        let next_ca_state = match event {
            PathEvent::Congestion { cause: Cause::Loss, .. } => CaState::Recovery,
            PathEvent::Congestion { cause: Cause::Timeout, .. } => CaState::Loss,
            PathEvent::Congestion { cause: Cause::EcnMark | Cause::LocalDrop, .. } => ca_state.max(CaState::Cwr),
            _ => ca_state,
        };
        self.ca_states.insert(path, next_ca_state);
    }

    fn decision(&self, path: PathId) -> Decision {
        self.inner.decision(path)
    }
}

impl CheckedController {
    fn check(&self, event: &PathEvent, ca_state: CaState, prior: Decision, decision: Decision) {
        let name = self.entry.name;
        let describe = || format!("{name} on {event:?} in {ca_state:?}: {prior:?} became {decision:?}");
        assert!(
            (1..=INFINITE_SSTHRESH).contains(&decision.cwnd),
            "cwnd is at least one packet and finite: {}",
            describe()
        );
        assert!(
            (2..=INFINITE_SSTHRESH).contains(&decision.ssthresh),
            "ssthresh is at least two packets: {}",
            describe()
        );
        assert!(decision.pacing_rate.is_none_or(|rate| rate.as_bits() > 0), "the pacing rate is zero: {}", describe());
        if ca_state < CaState::Cwr && !matches!(event, PathEvent::Congestion { .. }) {
            let min_cwnd = self.entry.properties.min_cwnd.min(prior.cwnd);
            assert!(decision.cwnd >= min_cwnd, "cwnd is below the minimum outside a reduction: {}", describe());
        }
        if let PathEvent::Ack(sample) = event {
            let may_rise = sample.cwnd_limited
                || matches!(sample.ca_state, CaState::Cwr | CaState::Recovery)
                || self.entry.deviates(Deviation::RaisesUnfilledCwnd)
                || self.has_path_controllers;
            assert!(may_rise || decision.cwnd <= prior.cwnd, "cwnd grew though it is not filled: {}", describe());
        }
        if let PathEvent::Congestion { cause, reduce_cwnd, .. } = event {
            let reduces_again = *cause == Cause::Loss
                && ca_state == CaState::Cwr
                && self.entry.deviates(Deviation::ReducesOnLossAfterMark);
            let reduced_before =
                !reduce_cwnd || ca_state >= CaState::Cwr && !matches!(cause, Cause::Timeout) && !reduces_again;
            assert!(
                !reduced_before || decision.ssthresh == prior.ssthresh,
                "ssthresh was reduced twice in one window: {}",
                describe()
            );
        }
    }
}

/// State of one path.
struct Path {
    down: bool,
    sender: PathSender,
    snd_nxt: u64,
    in_flight: u32,
    lost: u32,
    sacked: u32,
    /// Send snapshot of the newest packet.
    snapshot: SendSnapshot,
    may_undo: bool,
}

impl Path {
    fn new(id: PathId) -> Self {
        Self {
            down: false,
            sender: PathSender::new(id, PATH.initial_window, Span::from_secs(1)),
            snd_nxt: 0,
            in_flight: 0,
            lost: 0,
            sacked: 0,
            snapshot: SendSnapshot::default(),
            may_undo: false,
        }
    }

    fn snd_una(&self) -> u64 {
        self.snd_nxt - u64::from(self.in_flight) - u64::from(self.lost) - u64::from(self.sacked)
    }

    fn outstanding(&self) -> Outstanding {
        let (in_flight, snd_una) = (self.in_flight, self.snd_una());
        Outstanding { in_flight, packets_out: (self.snd_nxt - snd_una) as u32, snd_una, snd_nxt: self.snd_nxt }
    }
}

/// A sender with three paths and one algorithm, which checks every decision.
pub(crate) struct Sender {
    controller: ControllerHandle,
    now: Instant,
    paths: [Path; 3],
}

const PATH: PathInfo = PathInfo {
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

    /// A sender whose paths come up, of an algorithm with these parameters.
    pub(crate) fn with(entry: &'static AlgorithmEntry, given: &BTreeMap<String, ParamValue>) -> Self {
        let inner = entry.controller(given).expect("allowed");
        let has_path_controllers = given.get("path").is_some_and(|path| *path != ParamValue::Choice("reno".to_owned()));
        let controller = CheckedController { inner, entry, has_path_controllers, ca_states: BTreeMap::new() };
        let controller =
            ControllerHandle { controller: Some(Box::new(controller)), rng: RngStream::named(1, "controller") };
        let paths = [0, 1, 2].map(|id| Path::new(PathId(id)));
        let mut sender = Self { controller, now: Instant::ZERO, paths };
        (0..sender.paths.len()).for_each(|path| sender.bring_up(path));
        sender
    }

    /// The path comes up, for the first time or again, with the same random stream, so that runs can be compared.
    pub(crate) fn bring_up(&mut self, path: usize) {
        self.controller.rng = RngStream::named(1, "controller");
        self.paths[path] = Path::new(PathId(path as u16));
        self.paths[path].sender.start(self.now, PATH, &mut self.controller);
    }

    pub(crate) fn decision(&self, path: usize) -> Decision {
        self.paths[path].sender.decision()
    }

    pub(crate) fn apply(&mut self, path: usize, action: Action) {
        if let Action::Wait(millis) = action {
            self.now += Span::from_millis(millis);
            return;
        }
        let (now, controller, path_state) = (self.now, &mut self.controller, &mut self.paths[path]);
        match action {
            Action::Toggle if path_state.down => self.bring_up(path),
            _ if path_state.down => {}
            Action::Toggle => {
                path_state.sender.notify(now, &PathEvent::PathDown, controller);
                path_state.down = true;
            }
            Action::Send(count) => path_state.send(now, count, controller),
            Action::Ack { acked, lost, rtt_us } => {
                path_state.ack(now, acked, lost, Span::from_micros(rtt_us), controller);
            }
            Action::Mark => path_state.on_congestion(now, Cause::EcnMark, controller),
            Action::LocalDrop => path_state.on_congestion(now, Cause::LocalDrop, controller),
            Action::Timeout => path_state.timeout(now, controller),
            Action::SpuriousLoss => path_state.on_spurious_loss(now, controller),
            Action::TlpRecovery if path_state.sender.ca_state() < CaState::Cwr => {
                let (cause, in_flight) = (Cause::TlpRecovery, path_state.in_flight);
                let event = PathEvent::Congestion { cause, reduce_cwnd: true, in_flight };
                path_state.sender.notify(now, &event, controller);
            }
            Action::ApplicationLimited(cwnd_used) if path_state.sender.ca_state() == CaState::Open => {
                path_state.sender.mark_app_limited(path_state.in_flight);
                path_state.sender.notify(now, &PathEvent::ApplicationLimited { cwnd_used }, controller);
            }
            Action::Mss(mss) => path_state.sender.notify(now, &PathEvent::MssChanged { mss }, controller),
            Action::TlpRecovery | Action::ApplicationLimited(_) | Action::Wait(_) => {}
        }
    }
}

impl Path {
    fn send(&mut self, now: Instant, count: u32, controller: &mut ControllerHandle) {
        let count = count.min(self.sender.decision().cwnd.saturating_sub(self.in_flight));
        if count > 0 && self.snd_una() == self.snd_nxt {
            self.sender.before_send(now, self.in_flight, controller);
        }
        for _ in 0..count {
            self.in_flight += 1;
            if self.lost > 0 {
                self.lost -= 1;
            } else {
                self.snd_nxt += 1;
            }
            self.snapshot = self.sender.on_sent(now, self.in_flight > 1, self.in_flight);
        }
        self.sender.validate_cwnd(now, &self.outstanding(), true, controller);
    }

    fn ack(&mut self, now: Instant, acked: u32, lost: u32, rtt: Span, controller: &mut ControllerHandle) {
        let (prior_state, prior_una) = (self.sender.prior_state(self.in_flight), self.snd_una());
        let acked = acked.min(self.in_flight);
        self.in_flight -= acked;
        let lost = lost.min(self.in_flight);
        self.in_flight -= lost;
        self.lost += lost;
        self.sender.count_lost(lost);
        self.sacked = if self.lost == 0 { 0 } else { self.sacked + acked };
        let mut packets = AckedPackets {
            pkts_acked: acked,
            newest_lost: (lost > 0).then_some(self.snapshot),
            advanced: self.snd_una() > prior_una,
            may_raise_cwnd: self.snd_una() > prior_una,
            ..AckedPackets::default()
        };
        let sent = self.sender.last_sent();
        for _ in 0..acked {
            self.sender.on_delivered(&mut packets.rate_sample, self.snd_nxt, sent, &self.snapshot);
        }
        if acked > 0 {
            packets.rtt = Some(rtt);
            self.sender.update_rtt(rtt, self.snd_una(), self.snd_nxt);
            self.sender.update_min_rtt(now, rtt);
        }
        if lost > 0 {
            self.on_congestion(now, Cause::Loss, controller);
        }
        self.end_episode(now, controller);
        self.sender.finish_ack(now, &prior_state, &packets, &self.outstanding(), controller);
    }

    /// Loss, mark or local drop: an episode begins, unless a more severe one is under way.
    fn on_congestion(&mut self, now: Instant, cause: Cause, controller: &mut ControllerHandle) {
        let ca_state = if cause == Cause::Loss { CaState::Recovery } else { CaState::Cwr };
        let begins = self.sender.ca_state() < ca_state;
        self.may_undo = begins && cause == Cause::Loss;
        if begins {
            self.sender.enter_reduction(now, cause, ca_state, &self.outstanding(), controller);
        } else if cause != Cause::Loss {
            let event = PathEvent::Congestion { cause, reduce_cwnd: true, in_flight: self.in_flight };
            self.sender.notify(now, &event, controller);
        }
    }

    fn end_episode(&mut self, now: Instant, controller: &mut ControllerHandle) {
        let ends = self.snd_una() >= self.sender.high_seq();
        match self.sender.ca_state() {
            CaState::Cwr | CaState::Recovery if ends => self.sender.leave_reduction(now, true, controller),
            CaState::Loss if ends => self.sender.leave_loss(),
            _ => {}
        }
    }

    fn timeout(&mut self, now: Instant, controller: &mut ControllerHandle) {
        if self.snd_una() == self.snd_nxt {
            return;
        }
        let reduce_cwnd = self.sender.ca_state() < CaState::Cwr || self.snd_una() >= self.sender.high_seq();
        self.lost += self.in_flight;
        self.in_flight = 0;
        self.may_undo |= reduce_cwnd;
        self.sender.enter_loss(now, reduce_cwnd, &self.outstanding(), controller);
    }

    fn on_spurious_loss(&mut self, now: Instant, controller: &mut ControllerHandle) {
        if std::mem::take(&mut self.may_undo) {
            self.sender.notify(now, &PathEvent::SpuriousLoss, controller);
            match self.sender.ca_state() {
                CaState::Cwr | CaState::Recovery => self.sender.leave_reduction(now, false, controller),
                _ => self.sender.leave_loss(),
            }
        }
    }
}
