//! The controller of a connection's paths, from a [`Coupling`].
//!
//! Every event changes a path's window by the same steps as any single window ([`super::CwndController`]). Slow start,
//! one reduction per round, proportional rate reduction, undo, and restart after idling are not coupled. A path whose
//! siblings are not active (not up, not in use, or without an RTT sample) uses Reno.
//!
//! An event changes its own path only. A sibling's decision changes with that sibling's next event.

use super::path_controllers::PathControllers;
use super::subflows::{SubflowGroup, SubflowView};
use super::usage::Usage;
use super::{CongestionOps, CwndState, reno_cong_avoid, reno_ssthresh};
use crate::{AckProgress, AckSample, CaState, Context, Controller, Decision, PathController, PathEvent, PathInfo};
use std::fmt::Debug;
use units::{Instant, PathId, Span};

/// The operations of a coupled window-based algorithm. State of the group belongs in `self`. State of one path belongs
/// in its [`Coupling::PathState`], which is reset when the path comes up.
pub trait Coupling: Debug + Send + Sync {
    /// State of one path.
    type PathState: Debug + Default + Send + Sync;

    /// Packets by which the own window grows for each packet acknowledged, in congestion avoidance among active
    /// siblings; may be negative.
    fn increase(&mut self, group: &SubflowGroup<'_, Self::PathState>) -> f64;

    /// Packets by which congestion reduces the own window, among active siblings.
    fn decrease(&mut self, group: &SubflowGroup<'_, Self::PathState>, _now: Instant) -> f64 {
        group.own_subflow().cwnd / 2.0
    }

    /// Handles an acknowledgement that may raise this path's window; `acked` packets were newly delivered. The default is
    /// Reno for a path alone. Otherwise it is slow start, then [`Coupling::increase`] for the remaining packets.
    fn cong_avoid(
        &mut self,
        group: &mut SubflowGroup<'_, Self::PathState>,
        state: &mut CwndState,
        acked: u32,
        _sample: &AckSample,
    ) {
        if group.is_alone() {
            return reno_cong_avoid(state, acked);
        }
        let increase = self.increase(group);
        group.cong_avoid(state, acked, increase);
    }

    /// Whether the window also changes while the sender does not fill it.
    fn ignores_cwnd_limited(&self) -> bool {
        false
    }

    /// The own path came up; its window is the initial one.
    fn init(&mut self, _paths: &mut SubflowGroup<'_, Self::PathState>, _state: &mut CwndState) {}

    /// Called for every acknowledgement, before state and window change.
    fn pkts_acked(&mut self, _path_state: &mut Self::PathState, _progress: &AckProgress) {}

    /// This path's window is about to be reduced. Called once per episode, alone or not.
    fn on_congestion(&mut self, _path_state: &mut Self::PathState) {}

    /// This path's sender changes to state `next`. Every timeout reports [`CaState::Loss`] again.
    fn set_state(&mut self, _path_state: &mut Self::PathState, _next: CaState) {}

    /// The own path was idle for longer than its retransmission timeout.
    fn on_window_restart(&mut self, _path_state: &mut Self::PathState) {}
}

/// The controller of a connection's paths, from a [`Coupling`].
#[derive(Debug)]
pub struct CoupledController<C: Coupling> {
    coupling: C,
    subflows: Vec<SubflowView<C::PathState>>,
    states: Vec<CwndState>,
    usages: Vec<Usage>,
    path_controllers: PathControllers,
}

impl<C: Coupling> CoupledController<C> {
    /// The coupled windows, without controllers of the paths.
    pub fn new(coupling: C) -> Self {
        Self {
            coupling,
            subflows: Vec::new(),
            states: Vec::new(),
            usages: Vec::new(),
            path_controllers: PathControllers::default(),
        }
    }

    /// The coupled windows, with a controller from `construct` for each path (`path_controllers.rs` documents how they
    /// combine).
    #[must_use]
    pub fn with_path_controllers(self, construct: fn() -> Box<dyn PathController>) -> Self {
        Self { path_controllers: PathControllers::new(construct), ..self }
    }

    /// Determines which siblings are active at an event of this path, which is in use.
    fn find_active(&mut self, own_index: usize, now: Instant) {
        for (index, (subflow, usage)) in self.subflows.iter_mut().zip(&self.usages).enumerate() {
            subflow.in_use = subflow.up && (index == own_index || usage.is_in_use(now));
            subflow.active = subflow.in_use && subflow.srtt > 0.0;
        }
    }

    fn ensure_path(&mut self, path: usize) {
        while self.states.len() <= path {
            self.states.push(CwndState::default());
            self.subflows.push(SubflowView::default());
            self.usages.push(Usage::NEVER);
            self.path_controllers.add();
        }
    }
}

impl<C: Coupling + 'static> Controller for CoupledController<C> {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        let own_index = path.index();
        self.ensure_path(own_index);
        self.find_active(own_index, cx.now);
        let state = &mut self.states[own_index];
        let mut ops = CoupledOps {
            coupling: &mut self.coupling,
            group: SubflowGroup { subflows: &mut self.subflows, own_index },
            path_controller_allows_more: self.path_controllers.allows_more(own_index, state),
            has_path_controllers: !self.path_controllers.is_absent(),
        };
        match event {
            // Data that a path's controller holds back does not count as idle time of the application, which ends with
            // the first packet: no kernel restarts the window of an algorithm that paces.
            PathEvent::ApplicationLimited { .. } | PathEvent::WindowRestart { .. } if ops.has_path_controllers => {}
            PathEvent::IdleRestart { idle, rto, app_limited } if ops.has_path_controllers => {
                if *app_limited {
                    state.on_event(&mut ops, &PathEvent::WindowRestart { idle: *idle, rto: *rto }, cx);
                    state.on_event(&mut ops, event, cx);
                }
            }
            _ => state.on_event(&mut ops, event, cx),
        }
        self.path_controllers.on_event(own_index, event, state, cx);
        self.subflows[own_index].update(event, state);
        self.usages[own_index].on_event(event, cx.now);
    }

    fn decision(&self, path: PathId) -> Decision {
        self.path_controllers.decision(path.index(), &self.states[path.index()])
    }

    fn requests_reduction(&self, path: PathId) -> bool {
        self.states[path.index()].requests_reduction
    }
}

impl<M: Default> SubflowView<M> {
    /// Updates the siblings' view of this path, which holds until the path's next event.
    fn update(&mut self, event: &PathEvent, state: &CwndState) {
        self.up &= !matches!(event, PathEvent::PathDown);
        self.cwnd = f64::from(if state.in_cwnd_reduction() { state.ssthresh } else { state.cwnd });
        self.ca_state = state.ca_state;
    }
}

/// The operations of one path of a coupling, for the duration of one event.
#[derive(Debug)]
struct CoupledOps<'a, C: Coupling> {
    coupling: &'a mut C,
    group: SubflowGroup<'a, C::PathState>,
    path_controller_allows_more: bool,
    has_path_controllers: bool,
}

impl<C: Coupling> CoupledOps<'_, C> {
    fn own_subflow(&mut self) -> &mut SubflowView<C::PathState> {
        &mut self.group.subflows[self.group.own_index]
    }

    /// Whether the coupled window limits the sender.
    fn limits_sender(&self, sample: &AckSample) -> bool {
        !self.has_path_controllers || self.path_controller_allows_more && sample.cwnd_limited
    }
}

impl<C: Coupling> CongestionOps for CoupledOps<'_, C> {
    fn init(&mut self, state: &mut CwndState, path: &PathInfo, _cx: &mut Context<'_>) {
        let rtt = path.rtt.map_or(0.0, Span::as_secs_f64);
        *self.own_subflow() =
            SubflowView { up: true, srtt: rtt, min_rtt: path.rtt.unwrap_or(Span::MAX), ..SubflowView::default() };
        self.coupling.init(&mut self.group, state);
    }

    fn pkts_acked(&mut self, _state: &mut CwndState, progress: &AckProgress, _cx: &mut Context<'_>) {
        self.coupling.pkts_acked(self.group.own_state(), progress);
    }

    fn on_ack(&mut self, state: &mut CwndState, sample: &AckSample, _cx: &mut Context<'_>) {
        let subflow = self.own_subflow();
        if sample.srtt > Span::ZERO {
            subflow.srtt = sample.srtt.as_secs_f64();
            subflow.active = subflow.up;
        }
        (subflow.min_rtt, subflow.in_flight, subflow.cwnd) = (sample.min_rtt, sample.in_flight, f64::from(state.cwnd));
    }

    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, sample: &AckSample, _cx: &mut Context<'_>) {
        let max_cwnd = if self.limits_sender(sample) { u32::MAX } else { state.cwnd };
        self.coupling.cong_avoid(&mut self.group, state, acked, sample);
        state.cwnd = state.cwnd.min(max_cwnd);
    }

    fn ssthresh(&mut self, state: &CwndState, cx: &mut Context<'_>) -> u32 {
        self.coupling.on_congestion(self.group.own_state());
        if self.group.is_alone() {
            return reno_ssthresh(state);
        }
        self.own_subflow().cwnd = f64::from(state.cwnd);
        let decrease = self.coupling.decrease(&self.group, cx.now);
        ((f64::from(state.cwnd) - decrease) as u32).max(2)
    }

    fn set_state(&mut self, _state: &mut CwndState, next: CaState, _cx: &mut Context<'_>) {
        if next >= CaState::Cwr {
            self.own_subflow().cwnd_fraction = 0.0;
        }
        self.coupling.set_state(self.group.own_state(), next);
    }

    fn ignores_cwnd_limited(&self) -> bool {
        self.coupling.ignores_cwnd_limited()
    }

    fn on_window_restart(&mut self, _state: &mut CwndState, _cx: &mut Context<'_>) {
        self.coupling.on_window_restart(self.group.own_state());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, LinuxRelease, Reduction};
    use units::{INFINITE_SSTHRESH, RngStream};

    /// Grows by a hundredth of the siblings' windows for each packet; counts reductions.
    #[derive(Debug)]
    struct Hundredth;

    impl Coupling for Hundredth {
        type PathState = u32;

        fn increase(&mut self, group: &SubflowGroup<'_, u32>) -> f64 {
            group.others().filter(|path| path.active).map(|path| path.cwnd).sum::<f64>() / 100.0
        }

        fn on_congestion(&mut self, reductions: &mut u32) {
            *reductions += 1;
        }
    }

    /// A path controller whose window and threshold are set by a change of packet size.
    #[derive(Debug)]
    struct Fixed(Decision);

    impl PathController for Fixed {
        fn on_event(&mut self, event: &PathEvent, _cx: &mut Context<'_>) {
            if let PathEvent::MssChanged { mss } = event {
                (self.0.cwnd, self.0.ssthresh) = (*mss, *mss);
            }
        }

        fn decision(&self) -> Decision {
            self.0
        }
    }

    fn path_controller() -> Box<dyn PathController> {
        Box::new(Fixed(Decision { cwnd: 1000, ssthresh: INFINITE_SSTHRESH, pacing_rate: None }))
    }

    fn notify(group: &mut CoupledController<Hundredth>, path: u16, event: &PathEvent) -> u32 {
        let mut rng = RngStream::named(1, "test");
        group.on_event(PathId(path), event, &mut Context { now: Instant::ZERO, rng: &mut rng });
        group.decision(PathId(path)).cwnd
    }

    fn up(rtt: Option<Span>) -> PathEvent {
        let (tick, reduction) = (Span::from_millis(1), Reduction::Proportional);
        let release = LinuxRelease::default();
        PathEvent::PathUp(PathInfo { mss: 1448, initial_window: 20, rtt, tick, cwnd_clamp: 1000, reduction, release })
    }

    fn ack(acked: u32, cwnd_limited: bool) -> PathEvent {
        let srtt = Span::from_millis(100);
        PathEvent::Ack(AckSample {
            acked,
            srtt,
            cwnd_limited,
            may_raise_cwnd: true,
            rto: Span::from_secs(1),
            ..AckSample::default()
        })
    }

    const LOSS: PathEvent =
        PathEvent::Congestion { cause: Cause::Loss, reduce_cwnd: true, in_flight: 20, by_timer: false };
    const SENT: PathEvent = PathEvent::IdleRestart { idle: Span::ZERO, rto: Span::MAX, app_limited: false };
    const RECOVERED: PathEvent = PathEvent::Recovered { to_ssthresh: true };

    /// Two paths with ten packets each, in congestion avoidance.
    fn two_paths(mut group: CoupledController<Hundredth>) -> CoupledController<Hundredth> {
        for path in [0, 1] {
            notify(&mut group, path, &up(Some(Span::from_millis(100))));
            notify(&mut group, path, &SENT);
            notify(&mut group, path, &ack(0, false));
            notify(&mut group, path, &LOSS);
            assert_eq!(notify(&mut group, path, &RECOVERED), 10);
        }
        group
    }

    #[test]
    fn siblings_count_until_they_go_down_and_are_reset_when_they_come_up() {
        let mut group = two_paths(CoupledController::new(Hundredth));
        assert_eq!(notify(&mut group, 0, &ack(10, true)), 11, "ten times a tenth");
        notify(&mut group, 1, &PathEvent::PathDown);
        assert_eq!(notify(&mut group, 0, &ack(10, true)), 11, "Reno: one packet for eleven");
        assert_eq!(notify(&mut group, 0, &ack(1, true)), 12);
        notify(&mut group, 1, &up(None));
        assert_eq!(group.subflows[1].state, 0, "its state is reset");
        notify(&mut group, 1, &SENT);
        assert_eq!(notify(&mut group, 0, &ack(11, true)), 12, "it is not active before its first RTT");
        notify(&mut group, 1, &ack(0, true));
        assert_eq!(notify(&mut group, 0, &ack(10, true)), 14, "ten times a fifth");
    }

    #[test]
    fn a_sibling_in_recovery_counts_with_its_threshold() {
        let mut group = two_paths(CoupledController::new(Hundredth));
        notify(
            &mut group,
            1,
            &PathEvent::Congestion { cause: Cause::Loss, reduce_cwnd: true, in_flight: 9, by_timer: false },
        );
        assert_eq!((group.states[1].cwnd, group.subflows[1].cwnd), (10, 5.0));
        assert_eq!(notify(&mut group, 0, &ack(20, true)), 11, "twenty times a twentieth");
    }

    #[test]
    fn one_reduction_an_episode_which_clears_the_fraction() {
        let mut group = two_paths(CoupledController::new(Hundredth));
        notify(&mut group, 0, &ack(9, true));
        assert!((group.subflows[0].cwnd_fraction - 0.9).abs() < 1e-9);
        notify(&mut group, 0, &LOSS);
        notify(&mut group, 0, &LOSS);
        assert_eq!((group.subflows[0].state, group.subflows[0].cwnd_fraction, group.states[0].ssthresh), (2, 0.0, 5));
    }

    #[test]
    fn with_path_controllers_only_the_window_that_limits_grows() {
        let mut group = two_paths(CoupledController::new(Hundredth).with_path_controllers(path_controller));
        assert_eq!(notify(&mut group, 0, &ack(10, true)), 11);
        assert_eq!(notify(&mut group, 0, &ack(10, false)), 11, "pacing limits");
        notify(&mut group, 0, &PathEvent::MssChanged { mss: 8 });
        assert_eq!(notify(&mut group, 0, &ack(10, true)), 8, "the path controller limits");
        assert_eq!(group.states[0].cwnd, 11);
        notify(&mut group, 0, &PathEvent::ApplicationLimited { cwnd_used: 2 });
        assert_eq!(group.states[0].cwnd, 11, "what pacing leaves unused does not decay");
    }

    #[test]
    fn with_path_controllers_slow_start_ends_when_theirs_does() {
        let mut group = CoupledController::new(Hundredth).with_path_controllers(path_controller);
        notify(&mut group, 0, &up(None));
        assert_eq!(notify(&mut group, 0, &ack(20, true)), 40);
        assert_eq!(notify(&mut group, 0, &PathEvent::MssChanged { mss: 30 }), 30);
        assert_eq!((group.states[0].cwnd, group.states[0].ssthresh), (30, 30));
    }
}
