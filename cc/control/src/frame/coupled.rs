//! The frame of coupled window-based algorithms.
//!
//! A [`Coupling`] states its increase and decrease over a view of the siblings. Each path has a window of its own, and
//! every event moves it by the same steps as any single window ([`super::Windowed`]): slow start, one cut a round,
//! proportional rate reduction, undo, and restart after idling are not coupled. A path whose siblings take no part (not
//! up, or without RTT) is Reno.
//!
//! What an event changes is its own path only. A sibling's decision moves with that sibling's next event.

use super::pair::PathControllers;
use super::paths::{SubflowGroup, SubflowView};
use super::windowed::Step;
use super::{CwndState, WindowRule, reno_increase, reno_threshold};
use crate::{AckSample, CaState, Context, Controller, Decision, PathController, PathEvent, PathInfo};
use std::fmt::Debug;
use units::{Instant, PathId, Span};

/// What a coupled window-based algorithm says of itself. Everything else is the frame's. What it remembers of the
/// group, it keeps in itself; what of one path, in that path's memory, which a path that comes up has empty.
pub trait Coupling: Debug + Send {
    /// What is remembered of each path.
    type PathState: Debug + Default + Send;

    /// Packets by which the own window grows for each packet acknowledged, in congestion avoidance among siblings.
    /// It may be negative.
    fn increase(&mut self, paths: &SubflowGroup<'_, Self::PathState>) -> f64;

    /// Packets that the own window loses at congestion, among siblings.
    fn decrease(&mut self, paths: &SubflowGroup<'_, Self::PathState>, _now: Instant) -> f64 {
        paths.own().cwnd / 2.0
    }

    /// An acknowledgement that may raise the own window; `acked` packets were newly delivered. What is stated here
    /// stands for most: Reno for a path alone; else slow start, and [`Coupling::increase`] with what that leaves.
    fn cong_avoid(
        &mut self,
        paths: &mut SubflowGroup<'_, Self::PathState>,
        state: &mut CwndState,
        acked: u32,
        _feedback: &AckSample,
    ) {
        if paths.alone() {
            return reno_increase(state, acked);
        }
        let increase = self.increase(paths);
        paths.cong_avoid(state, acked, increase);
    }

    /// Whether the window may also move while the sender does not fill it.
    fn ignores_cwnd_limited(&self) -> bool {
        false
    }

    /// The own path came up; its window stands at the initial one.
    fn init(&mut self, _paths: &mut SubflowGroup<'_, Self::PathState>, _state: &mut CwndState) {}

    /// Every acknowledgement, before anything moves.
    fn on_ack(&mut self, _memory: &mut Self::PathState, _feedback: &AckSample) {}

    /// The own window is about to be cut: once an episode, alone or not.
    fn on_congestion(&mut self, _memory: &mut Self::PathState) {}

    /// The own sender goes into this phase; every timeout reports [`CaState::Loss`] again.
    fn set_state(&mut self, _memory: &mut Self::PathState, _next: CaState) {}

    /// The own path stood idle for longer than its retransmission timeout.
    fn on_idle_restart(&mut self, _memory: &mut Self::PathState) {}
}

/// A controller made of the frame and one coupling.
#[derive(Debug)]
pub struct Coupled<C: Coupling> {
    coupling: C,
    subflows: Vec<SubflowView<C::PathState>>,
    states: Vec<CwndState>,
    path_controllers: PathControllers,
}

impl<C: Coupling> Coupled<C> {
    /// The coupled windows alone.
    pub fn new(coupling: C) -> Self {
        Self { coupling, subflows: Vec::new(), states: Vec::new(), path_controllers: PathControllers::default() }
    }

    /// The pair: the coupled windows over a controller of each path, which `make` returns. The window is the smaller
    /// of both, the pacing rate the path's; the coupled window grows only where it is what limits.
    #[must_use]
    pub fn over(self, make: fn() -> Box<dyn PathController>) -> Self {
        Self { path_controllers: PathControllers::new(make), ..self }
    }

    fn know(&mut self, path: usize) {
        while self.states.len() <= path {
            self.states.push(CwndState::default());
            self.subflows.push(SubflowView::default());
            self.path_controllers.add();
        }
    }
}

impl<C: Coupling> Controller for Coupled<C> {
    fn on_event(&mut self, path: PathId, event: &PathEvent, cx: &mut Context<'_>) {
        let own = path.index();
        self.know(own);
        let state = &mut self.states[own];
        let mut linked = CoupledRule {
            coupling: &mut self.coupling,
            paths: SubflowGroup { subflows: &mut self.subflows, own },
            leaves_room: self.path_controllers.leaves_room(own, state),
            has_level: !self.path_controllers.is_absent(),
        };
        if !(linked.has_level && matches!(event, PathEvent::ApplicationLimited { .. })) {
            Step { state: state, rule: &mut linked }.on_event(event, cx);
        }
        self.path_controllers.on_event(own, event, state, cx);
        self.subflows[own].note(event, state);
    }

    fn decision(&self, path: PathId) -> Decision {
        self.path_controllers.decision(path.index(), &self.states[path.index()])
    }
}

impl<M: Default> SubflowView<M> {
    /// As the siblings will see it until its next event.
    fn note(&mut self, event: &PathEvent, state: &CwndState) {
        self.up &= !matches!(event, PathEvent::PathDown);
        self.active = self.up && self.srtt > 0.0;
        self.cwnd = f64::from(if state.in_cwnd_reduction() { state.ssthresh } else { state.cwnd });
        self.ca_state = state.ca_state;
    }
}

/// One path's growth, for the time of one event.
#[derive(Debug)]
struct CoupledRule<'a, C: Coupling> {
    coupling: &'a mut C,
    paths: SubflowGroup<'a, C::PathState>,
    leaves_room: bool,
    has_level: bool,
}

impl<C: Coupling> CoupledRule<'_, C> {
    fn own(&mut self) -> &mut SubflowView<C::PathState> {
        &mut self.paths.subflows[self.paths.own]
    }

    /// The coupled window is what limits the sender.
    fn binds(&self, sample: &AckSample) -> bool {
        !self.has_level || self.leaves_room && sample.cwnd_limited
    }
}

impl<C: Coupling> WindowRule for CoupledRule<'_, C> {
    fn init(&mut self, state: &mut CwndState, path: &PathInfo, _cx: &mut Context<'_>) {
        let rtt = path.rtt.map_or(0.0, Span::as_secs_f64);
        *self.own() =
            SubflowView { up: true, srtt: rtt, min_rtt: path.rtt.unwrap_or(Span::MAX), ..SubflowView::default() };
        self.coupling.init(&mut self.paths, state);
    }

    fn on_ack(&mut self, state: &mut CwndState, sample: &AckSample, _cx: &mut Context<'_>) {
        let own = self.own();
        if sample.srtt > Span::ZERO {
            own.srtt = sample.srtt.as_secs_f64();
            own.active = own.up;
        }
        (own.min_rtt, own.in_flight, own.cwnd) = (sample.min_rtt, sample.in_flight, f64::from(state.cwnd));
        self.coupling.on_ack(self.paths.own_state(), sample);
    }

    fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, sample: &AckSample, _cx: &mut Context<'_>) {
        let most = if self.binds(sample) { u32::MAX } else { state.cwnd };
        self.coupling.cong_avoid(&mut self.paths, state, acked, sample);
        state.cwnd = state.cwnd.min(most);
    }

    fn ssthresh(&mut self, state: &CwndState, cx: &mut Context<'_>) -> u32 {
        self.coupling.on_congestion(self.paths.own_state());
        if self.paths.alone() {
            return reno_threshold(state);
        }
        self.own().cwnd = f64::from(state.cwnd);
        let decrease = self.coupling.decrease(&self.paths, cx.now);
        ((f64::from(state.cwnd) - decrease) as u32).max(2)
    }

    fn set_state(&mut self, _state: &mut CwndState, next: CaState, _cx: &mut Context<'_>) {
        if next >= CaState::Cwr {
            self.own().cwnd_fraction = 0.0;
        }
        self.coupling.set_state(self.paths.own_state(), next);
    }

    fn ignores_cwnd_limited(&self) -> bool {
        self.coupling.ignores_cwnd_limited()
    }

    fn on_idle_restart(&mut self, _state: &mut CwndState, _cx: &mut Context<'_>) {
        self.coupling.on_idle_restart(self.paths.own_state());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, Reduction};
    use units::{INFINITE_SSTHRESH, Stream};

    /// Grows by a hundredth of the siblings' windows for each packet; remembers cuts.
    #[derive(Debug)]
    struct Hundredth;

    impl Coupling for Hundredth {
        type PathState = u32;

        fn increase(&mut self, paths: &SubflowGroup<'_, u32>) -> f64 {
            paths.others().filter(|path| path.active).map(|path| path.cwnd).sum::<f64>() / 100.0
        }

        fn on_congestion(&mut self, cuts: &mut u32) {
            *cuts += 1;
        }
    }

    /// A path level whose window and threshold are set by a change of packet size.
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

    fn level() -> Box<dyn PathController> {
        Box::new(Fixed(Decision { cwnd: 1000, ssthresh: INFINITE_SSTHRESH, pacing_rate: None }))
    }

    fn tell(group: &mut Coupled<Hundredth>, path: u16, event: &PathEvent) -> u32 {
        let mut rng = Stream::named(1, "test");
        group.on_event(PathId(path), event, &mut Context { now: Instant::ZERO, rng: &mut rng });
        group.decision(PathId(path)).cwnd
    }

    fn up(rtt: Option<Span>) -> PathEvent {
        let (tick, reduction) = (Span::from_millis(1), Reduction::Proportional);
        PathEvent::PathUp(PathInfo { mss: 1448, initial_window: 20, rtt, tick, cwnd_clamp: 1000, reduction })
    }

    fn ack(acked: u32, window_limited: bool) -> PathEvent {
        let srtt = Span::from_millis(100);
        PathEvent::Ack(AckSample {
            acked,
            srtt,
            cwnd_limited: window_limited,
            may_raise_cwnd: true,
            ..AckSample::default()
        })
    }

    const LOSS: PathEvent = PathEvent::Congestion { cause: Cause::Loss, cut: true, in_flight: 20 };
    const RECOVERED: PathEvent = PathEvent::Recovered { to_ssthresh: true };

    /// Two paths with ten packets each, in congestion avoidance.
    fn two(mut group: Coupled<Hundredth>) -> Coupled<Hundredth> {
        for path in [0, 1] {
            tell(&mut group, path, &up(Some(Span::from_millis(100))));
            tell(&mut group, path, &LOSS);
            assert_eq!(tell(&mut group, path, &RECOVERED), 10);
        }
        group
    }

    #[test]
    fn a_path_sees_its_siblings_until_they_go_down_and_anew_when_they_come_back() {
        let mut group = two(Coupled::new(Hundredth));
        assert_eq!(tell(&mut group, 0, &ack(10, true)), 11, "ten times a tenth");
        tell(&mut group, 1, &PathEvent::PathDown);
        assert_eq!(tell(&mut group, 0, &ack(10, true)), 11, "Reno: one packet for eleven");
        assert_eq!(tell(&mut group, 0, &ack(1, true)), 12);
        tell(&mut group, 1, &up(None));
        assert_eq!(group.subflows[1].state, 0, "its cuts are forgotten");
        assert_eq!(tell(&mut group, 0, &ack(11, true)), 12, "it takes no part before its first RTT");
        tell(&mut group, 1, &ack(0, true));
        assert_eq!(tell(&mut group, 0, &ack(10, true)), 14, "ten times a fifth");
    }

    #[test]
    fn a_sibling_in_recovery_counts_with_its_threshold() {
        let mut group = two(Coupled::new(Hundredth));
        tell(&mut group, 1, &PathEvent::Congestion { cause: Cause::Loss, cut: true, in_flight: 9 });
        assert_eq!((group.states[1].cwnd, group.subflows[1].cwnd), (10, 5.0));
        assert_eq!(tell(&mut group, 0, &ack(20, true)), 11, "twenty times a twentieth");
    }

    #[test]
    fn one_cut_an_episode_and_the_fraction_gained_ends_with_it() {
        let mut group = two(Coupled::new(Hundredth));
        tell(&mut group, 0, &ack(9, true));
        assert!((group.subflows[0].cwnd_fraction - 0.9).abs() < 1e-9);
        tell(&mut group, 0, &LOSS);
        tell(&mut group, 0, &LOSS);
        assert_eq!((group.subflows[0].state, group.subflows[0].cwnd_fraction, group.states[0].ssthresh), (2, 0.0, 5));
    }

    #[test]
    fn in_a_pair_only_the_window_that_limits_grows() {
        let mut group = two(Coupled::new(Hundredth).over(level));
        assert_eq!(tell(&mut group, 0, &ack(10, true)), 11);
        assert_eq!(tell(&mut group, 0, &ack(10, false)), 11, "pacing limits");
        tell(&mut group, 0, &PathEvent::MssChanged { mss: 8 });
        assert_eq!(tell(&mut group, 0, &ack(10, true)), 8, "the path level limits");
        assert_eq!(group.states[0].cwnd, 11);
        tell(&mut group, 0, &PathEvent::ApplicationLimited { cwnd_used: 2 });
        assert_eq!(group.states[0].cwnd, 11, "what pacing leaves unused does not decay");
    }

    #[test]
    fn in_a_pair_slow_start_ends_when_the_path_level_knows_its_path() {
        let mut group = Coupled::new(Hundredth).over(level);
        tell(&mut group, 0, &up(None));
        assert_eq!(tell(&mut group, 0, &ack(20, true)), 40);
        assert_eq!(tell(&mut group, 0, &PathEvent::MssChanged { mss: 30 }), 30);
        assert_eq!((group.states[0].cwnd, group.states[0].ssthresh), (30, 30));
    }
}
