//! A sender driven by actions, which reports consistent events to a controller whose decisions are checked.

use super::checked::{Broken, CheckedController};
use crate::Violation;
use control::{AlgorithmEntry, CaState, Cause, Decision, LinuxRelease, PathEvent, PathInfo, Reduction};
use params::ParamValue;
use std::collections::BTreeMap;
use std::fmt;
use transport::path::{AckedPackets, ControllerHandle, Outstanding, PathSender, SendLimit};
use transport::recovery::SendSnapshot;
use units::{Instant, PathId, RngStream, Span};

/// An action on a path. Counts are clamped to the possible range.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// Sends up to this many packets, as the window allows; lost packets first.
    Send(u32),
    /// One acknowledgement.
    Ack {
        /// Packets newly delivered.
        acked: u32,
        /// Packets newly found lost.
        lost: u32,
        /// The round-trip time.
        rtt_us: u64,
    },
    /// An ECN echo.
    Mark,
    /// The sender's own interface drops a packet.
    LocalDrop,
    /// The retransmission timer expires.
    Timeout,
    /// The latest reduction was spurious.
    SpuriousLoss,
    /// A tail-loss probe repaired a loss.
    TlpRecovery,
    /// The application leaves the window unused but for this many packets.
    ApplicationLimited(u32),
    /// The payload of a packet changes to this many bytes.
    Mss(u32),
    /// Milliseconds pass.
    Wait(u64),
    /// The path goes down if it is up, and comes up if it is down.
    Toggle,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send(packets) => write!(f, "sends up to {packets} packets"),
            Self::Ack { acked, lost, rtt_us } => {
                write!(f, "an acknowledgement: up to {acked} packets delivered, {lost} lost, RTT {rtt_us} us")
            }
            Self::Mark => f.write_str("an ECN mark is echoed"),
            Self::LocalDrop => f.write_str("the sender's own interface drops a packet"),
            Self::Timeout => f.write_str("the retransmission timer expires"),
            Self::SpuriousLoss => f.write_str("the latest reduction proves spurious"),
            Self::TlpRecovery => f.write_str("a tail-loss probe repairs a loss"),
            Self::ApplicationLimited(used) => write!(f, "the application used {used} packets of the window"),
            Self::Mss(mss) => write!(f, "the payload of a packet becomes {mss} bytes"),
            Self::Wait(millis) => write!(f, "{millis} ms pass"),
            Self::Toggle => f.write_str("the path goes down, or up again"),
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
    /// The send snapshot of the newest packet.
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
        let packets_out = (self.snd_nxt - snd_una) as u32;
        Outstanding { in_flight, packets_out, sacked: self.sacked, snd_una, snd_nxt: self.snd_nxt }
    }
}

/// A sender with three paths and one algorithm, which checks every decision.
pub(crate) struct Sender {
    controller: ControllerHandle,
    now: Instant,
    paths: [Path; 3],
    broken: Broken,
    steps: Vec<(usize, Action)>,
}

const PATH: PathInfo = PathInfo {
    mss: 1448,
    initial_window: 10,
    rtt: None,
    tick: Span::from_millis(1),
    cwnd_clamp: u32::MAX / 2,
    reduction: Reduction::Proportional,
    release: LinuxRelease::V6_18,
};

impl Sender {
    /// A sender whose paths come up, for an algorithm with these parameters.
    pub(crate) fn new(entry: &AlgorithmEntry, given: &BTreeMap<String, ParamValue>) -> Result<Self, Violation> {
        let broken = Broken::default();
        let controller = Box::new(CheckedController::new(entry, given, &broken)?);
        let rng = RngStream::named(1, "controller");
        let controller = ControllerHandle { controller: Some(controller), rng };
        let paths = [0, 1, 2].map(|id| Path::new(PathId(id)));
        let mut sender = Self { controller, now: Instant::ZERO, paths, broken, steps: Vec::new() };
        (0..sender.paths.len()).try_for_each(|path| sender.bring_up(path))?;
        Ok(sender)
    }

    /// Brings the path up, for the first time or again. The random stream is the same each time, so that runs can be
    /// compared.
    pub(crate) fn bring_up(&mut self, path: usize) -> Result<(), Violation> {
        self.bring_up_with(path, PATH.rtt)
    }

    /// As [`Sender::bring_up`], with the RTT of a handshake.
    pub(crate) fn bring_up_with(&mut self, path: usize, rtt: Option<Span>) -> Result<(), Violation> {
        self.checked(|sender| sender.start(path, rtt))
    }

    fn start(&mut self, path: usize, rtt: Option<Span>) {
        self.controller.rng = RngStream::named(1, "controller");
        self.paths[path] = Path::new(PathId(path as u16));
        self.paths[path].sender.start(self.now, PathInfo { rtt, ..PATH }, &mut self.controller);
    }

    /// Continues at this time after the start, with the random stream as at the start.
    pub(crate) fn continue_at(&mut self, time: Span) {
        self.controller.rng = RngStream::named(1, "controller");
        self.now = self.now.max(Instant::ZERO + time);
    }

    /// Calls `act` and returns the rule that it broke, if any.
    fn checked(&mut self, act: impl FnOnce(&mut Self)) -> Result<(), Violation> {
        let result = crate::panics::caught(|| {
            act(self);
            self.broken.result()
        });
        result.map_err(|violation| self.violation(violation.rule, violation.message))
    }

    pub(crate) fn decision(&self, path: usize) -> Decision {
        self.paths[path].sender.decision()
    }

    /// A violation of `rule` after the actions so far.
    pub(crate) fn violation(&self, rule: &'static str, message: String) -> Violation {
        let steps = self.steps.iter().map(|(path, action)| format!("path {path}: {action}")).collect();
        Violation { rule, message, steps }
    }

    /// Carries out `action` on a path.
    pub(crate) fn apply(&mut self, path: usize, action: Action) -> Result<(), Violation> {
        self.steps.push((path, action));
        if let Action::Wait(millis) = action {
            self.now += Span::from_millis(millis);
            return Ok(());
        }
        self.checked(|sender| sender.act(path, action))
    }

    fn act(&mut self, path: usize, action: Action) {
        let (now, controller, path_state) = (self.now, &mut self.controller, &mut self.paths[path]);
        match action {
            Action::Toggle if path_state.down => self.start(path, PATH.rtt),
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
                let event = PathEvent::Congestion { cause, reduce_cwnd: true, in_flight, by_timer: false };
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
            self.sender.before_send(now, self.in_flight, false, controller);
        }
        for _ in 0..count {
            self.in_flight += 1;
            if self.lost > 0 {
                self.lost -= 1;
            } else {
                self.snd_nxt += 1;
            }
            self.snapshot = self.sender.on_sent(now, self.in_flight > 1, self.in_flight, 1);
        }
        self.sender.validate_cwnd(now, &self.outstanding(), Some(SendLimit::SendBuffer), controller);
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
            is_predicted: self.snd_una() > prior_una && self.sender.ca_state() == CaState::Open,
            may_raise_cwnd: self.snd_una() > prior_una,
            ..AckedPackets::default()
        };
        let sent = self.sender.last_sent();
        for _ in 0..acked {
            self.sender.on_delivered(&mut packets.rate_sample, self.snd_nxt, sent, 1, &self.snapshot);
        }
        if acked > 0 {
            packets.rtt = Some(rtt);
            self.sender.update_rtt(rtt, self.snd_una(), self.snd_nxt);
            self.sender.update_min_rtt(now, rtt);
        }
        if lost > 0 || self.sender.ca_state() != CaState::Open {
            self.sender.report_progress(now, &prior_state, &packets, &self.outstanding(), controller);
        }
        if lost > 0 {
            self.on_congestion(now, Cause::Loss, controller);
        }
        self.end_episode(now, controller);
        self.sender.finish_ack(now, &prior_state, &packets, &self.outstanding(), controller);
        if self.sender.is_asked_to_reduce(controller) {
            self.on_congestion(now, Cause::Requested, controller);
        }
    }

    /// Reports a loss, mark or local drop: an episode begins, unless a more severe one is in progress.
    fn on_congestion(&mut self, now: Instant, cause: Cause, controller: &mut ControllerHandle) {
        let ca_state = if cause == Cause::Loss { CaState::Recovery } else { CaState::Cwr };
        let begins = self.sender.ca_state() < ca_state;
        self.may_undo = begins && cause == Cause::Loss;
        if begins {
            self.sender.enter_reduction(now, cause, false, ca_state, &self.outstanding(), controller);
        } else if cause != Cause::Loss {
            let event = PathEvent::Congestion { cause, reduce_cwnd: false, in_flight: self.in_flight, by_timer: false };
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
