//! The frame of coupled window-based algorithms.
//!
//! A [`Coupling`] states its increase and decrease over a view of the siblings. Each path has a window of its own, and
//! every event moves it by the same steps as any single window ([`super::Windowed`]): slow start, one cut a round,
//! proportional rate reduction, undo, and restart after idling are not coupled. A path whose siblings take no part (not
//! up, or without RTT) is Reno.
//!
//! What an event changes is its own path only. A sibling's decision moves with that sibling's next event.

use super::pair::PathLevel;
use super::paths::{Paths, Sibling};
use super::windowed::Step;
use super::{Growth, Window, reno_increase, reno_threshold};
use crate::{Context, Controller, Decision, Event, Feedback, PathController, PathInfo, Phase};
use std::fmt::Debug;
use units::{Instant, PathId, Span};

/// What a coupled window-based algorithm says of itself. Everything else is the frame's. What it remembers of the
/// group, it keeps in itself; what of one path, in that path's memory, which a path that comes up has empty.
pub trait Coupling: Debug + Send {
    /// What is remembered of each path.
    type Memory: Debug + Default + Send;

    /// Packets by which the own window grows for each packet acknowledged, in congestion avoidance among siblings.
    /// It may be negative.
    fn increase(&mut self, paths: &Paths<'_, Self::Memory>) -> f64;

    /// Packets that the own window loses at congestion, among siblings.
    fn decrease(&mut self, paths: &Paths<'_, Self::Memory>, _now: Instant) -> f64 {
        paths.own().window / 2.0
    }

    /// An acknowledgement that may raise the own window; `acked` packets were newly delivered. What is stated here
    /// stands for most: Reno for a path alone; else slow start, and [`Coupling::increase`] with what that leaves.
    fn grow(&mut self, paths: &mut Paths<'_, Self::Memory>, window: &mut Window, acked: u32, _feedback: &Feedback) {
        if paths.alone() {
            return reno_increase(window, acked);
        }
        let increase = self.increase(paths);
        paths.grow(window, acked, increase);
    }

    /// Whether the window may also move while the sender does not fill it.
    fn grows_unfilled(&self) -> bool {
        false
    }

    /// The own path came up; its window stands at the initial one.
    fn start(&mut self, _paths: &mut Paths<'_, Self::Memory>, _window: &mut Window) {}

    /// Every acknowledgement, before anything moves.
    fn measure(&mut self, _memory: &mut Self::Memory, _feedback: &Feedback) {}

    /// The own window is about to be cut: once an episode, alone or not.
    fn congested(&mut self, _memory: &mut Self::Memory) {}

    /// The own sender goes into this phase; every timeout reports [`Phase::Loss`] again.
    fn change_phase(&mut self, _memory: &mut Self::Memory, _next: Phase) {}

    /// The own path stood idle for longer than its retransmission timeout.
    fn restarts(&mut self, _memory: &mut Self::Memory) {}
}

/// A controller made of the frame and one coupling.
#[derive(Debug)]
pub struct Coupled<C: Coupling> {
    coupling: C,
    siblings: Vec<Sibling<C::Memory>>,
    windows: Vec<Window>,
    level: PathLevel,
}

impl<C: Coupling> Coupled<C> {
    /// The coupled windows alone.
    pub fn new(coupling: C) -> Self {
        Self { coupling, siblings: Vec::new(), windows: Vec::new(), level: PathLevel::default() }
    }

    /// The pair: the coupled windows over a controller of each path, which `make` returns. The window is the smaller
    /// of both, the pacing rate the path's; the coupled window grows only where it is what limits.
    #[must_use]
    pub fn over(self, make: fn() -> Box<dyn PathController>) -> Self {
        Self { level: PathLevel::new(make), ..self }
    }

    fn know(&mut self, path: usize) {
        while self.windows.len() <= path {
            self.windows.push(Window::default());
            self.siblings.push(Sibling::default());
            self.level.add();
        }
    }
}

impl<C: Coupling> Controller for Coupled<C> {
    fn on_event(&mut self, path: PathId, event: &Event, cx: &mut Context<'_>) {
        let own = path.index();
        self.know(own);
        let window = &mut self.windows[own];
        let mut linked = Linked {
            coupling: &mut self.coupling,
            paths: Paths { all: &mut self.siblings, own },
            leaves_room: self.level.leaves_room(own, window),
            has_level: !self.level.is_absent(),
        };
        if !(linked.has_level && matches!(event, Event::ApplicationLimited { .. })) {
            Step { window, growth: &mut linked }.on_event(event, cx);
        }
        self.level.on_event(own, event, window, cx);
        self.siblings[own].note(event, window);
    }

    fn decision(&self, path: PathId) -> Decision {
        self.level.decision(path.index(), &self.windows[path.index()])
    }
}

impl<M: Default> Sibling<M> {
    /// As the siblings will see it until its next event.
    fn note(&mut self, event: &Event, window: &Window) {
        self.up &= !matches!(event, Event::PathDown);
        self.active = self.up && self.rtt > 0.0;
        self.window = f64::from(if window.in_reduction() { window.threshold } else { window.size });
        self.phase = window.phase;
    }
}

/// One path's growth, for the time of one event.
#[derive(Debug)]
struct Linked<'a, C: Coupling> {
    coupling: &'a mut C,
    paths: Paths<'a, C::Memory>,
    leaves_room: bool,
    has_level: bool,
}

impl<C: Coupling> Linked<'_, C> {
    fn own(&mut self) -> &mut Sibling<C::Memory> {
        &mut self.paths.all[self.paths.own]
    }

    /// The coupled window is what limits the sender.
    fn binds(&self, feedback: &Feedback) -> bool {
        !self.has_level || self.leaves_room && feedback.window_limited
    }
}

impl<C: Coupling> Growth for Linked<'_, C> {
    fn start(&mut self, window: &mut Window, path: &PathInfo, _cx: &mut Context<'_>) {
        let rtt = path.rtt.map_or(0.0, Span::as_secs_f64);
        *self.own() = Sibling { up: true, rtt, min_rtt: path.rtt.unwrap_or(Span::MAX), ..Sibling::default() };
        self.coupling.start(&mut self.paths, window);
    }

    fn measure(&mut self, window: &mut Window, feedback: &Feedback, _cx: &mut Context<'_>) {
        let own = self.own();
        if feedback.srtt > Span::ZERO {
            own.rtt = feedback.srtt.as_secs_f64();
            own.active = own.up;
        }
        (own.min_rtt, own.in_flight, own.window) = (feedback.min_rtt, feedback.in_flight, f64::from(window.size));
        self.coupling.measure(self.paths.memory(), feedback);
    }

    fn grow(&mut self, window: &mut Window, acked: u32, feedback: &Feedback, _cx: &mut Context<'_>) {
        let most = if self.binds(feedback) { u32::MAX } else { window.size };
        self.coupling.grow(&mut self.paths, window, acked, feedback);
        window.size = window.size.min(most);
    }

    fn threshold(&mut self, window: &Window, cx: &mut Context<'_>) -> u32 {
        self.coupling.congested(self.paths.memory());
        if self.paths.alone() {
            return reno_threshold(window);
        }
        self.own().window = f64::from(window.size);
        let decrease = self.coupling.decrease(&self.paths, cx.now);
        ((f64::from(window.size) - decrease) as u32).max(2)
    }

    fn change_phase(&mut self, _window: &mut Window, next: Phase, _cx: &mut Context<'_>) {
        if next >= Phase::Cwr {
            self.own().fraction = 0.0;
        }
        self.coupling.change_phase(self.paths.memory(), next);
    }

    fn grows_unfilled(&self) -> bool {
        self.coupling.grows_unfilled()
    }

    fn window_restarts(&mut self, _window: &mut Window, _cx: &mut Context<'_>) {
        self.coupling.restarts(self.paths.memory());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cause, NO_THRESHOLD, Reduction};
    use units::Stream;

    /// Grows by a hundredth of the siblings' windows for each packet; remembers cuts.
    #[derive(Debug)]
    struct Hundredth;

    impl Coupling for Hundredth {
        type Memory = u32;

        fn increase(&mut self, paths: &Paths<'_, u32>) -> f64 {
            paths.others().filter(|path| path.active).map(|path| path.window).sum::<f64>() / 100.0
        }

        fn congested(&mut self, cuts: &mut u32) {
            *cuts += 1;
        }
    }

    /// A path level whose window and threshold are set by a change of packet size.
    #[derive(Debug)]
    struct Fixed(Decision);

    impl PathController for Fixed {
        fn on_event(&mut self, event: &Event, _cx: &mut Context<'_>) {
            if let Event::MssChanged { mss } = event {
                (self.0.window, self.0.threshold) = (*mss, *mss);
            }
        }

        fn decision(&self) -> Decision {
            self.0
        }
    }

    fn level() -> Box<dyn PathController> {
        Box::new(Fixed(Decision { window: 1000, threshold: NO_THRESHOLD, pacing: None }))
    }

    fn tell(group: &mut Coupled<Hundredth>, path: u16, event: &Event) -> u32 {
        let mut random = Stream::named(1, "test");
        group.on_event(PathId(path), event, &mut Context { now: Instant::ZERO, random: &mut random });
        group.decision(PathId(path)).window
    }

    fn up(rtt: Option<Span>) -> Event {
        let (tick, reduction) = (Span::from_millis(1), Reduction::Proportional);
        Event::PathUp(PathInfo { mss: 1448, initial_window: 20, rtt, tick, clamp: 1000, reduction })
    }

    fn ack(acked: u32, window_limited: bool) -> Event {
        let srtt = Span::from_millis(100);
        Event::Feedback(Feedback { acked, srtt, window_limited, may_grow: true, ..Feedback::default() })
    }

    const LOSS: Event = Event::Congestion { cause: Cause::Loss, cut: true, in_flight: 20 };
    const RECOVERED: Event = Event::Recovered { settle: true };

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
        tell(&mut group, 1, &Event::PathDown);
        assert_eq!(tell(&mut group, 0, &ack(10, true)), 11, "Reno: one packet for eleven");
        assert_eq!(tell(&mut group, 0, &ack(1, true)), 12);
        tell(&mut group, 1, &up(None));
        assert_eq!(group.siblings[1].memory, 0, "its cuts are forgotten");
        assert_eq!(tell(&mut group, 0, &ack(11, true)), 12, "it takes no part before its first RTT");
        tell(&mut group, 1, &ack(0, true));
        assert_eq!(tell(&mut group, 0, &ack(10, true)), 14, "ten times a fifth");
    }

    #[test]
    fn a_sibling_in_recovery_counts_with_its_threshold() {
        let mut group = two(Coupled::new(Hundredth));
        tell(&mut group, 1, &Event::Congestion { cause: Cause::Loss, cut: true, in_flight: 9 });
        assert_eq!((group.windows[1].size, group.siblings[1].window), (10, 5.0));
        assert_eq!(tell(&mut group, 0, &ack(20, true)), 11, "twenty times a twentieth");
    }

    #[test]
    fn one_cut_an_episode_and_the_fraction_gained_ends_with_it() {
        let mut group = two(Coupled::new(Hundredth));
        tell(&mut group, 0, &ack(9, true));
        assert!((group.siblings[0].fraction - 0.9).abs() < 1e-9);
        tell(&mut group, 0, &LOSS);
        tell(&mut group, 0, &LOSS);
        assert_eq!((group.siblings[0].memory, group.siblings[0].fraction, group.windows[0].threshold), (2, 0.0, 5));
    }

    #[test]
    fn in_a_pair_only_the_window_that_limits_grows() {
        let mut group = two(Coupled::new(Hundredth).over(level));
        assert_eq!(tell(&mut group, 0, &ack(10, true)), 11);
        assert_eq!(tell(&mut group, 0, &ack(10, false)), 11, "pacing limits");
        tell(&mut group, 0, &Event::MssChanged { mss: 8 });
        assert_eq!(tell(&mut group, 0, &ack(10, true)), 8, "the path level limits");
        assert_eq!(group.windows[0].size, 11);
        tell(&mut group, 0, &Event::ApplicationLimited { used: 2 });
        assert_eq!(group.windows[0].size, 11, "what pacing leaves unused does not decay");
    }

    #[test]
    fn in_a_pair_slow_start_ends_when_the_path_level_knows_its_path() {
        let mut group = Coupled::new(Hundredth).over(level);
        tell(&mut group, 0, &up(None));
        assert_eq!(tell(&mut group, 0, &ack(20, true)), 40);
        assert_eq!(tell(&mut group, 0, &Event::MssChanged { mss: 30 }), 30);
        assert_eq!((group.windows[0].size, group.windows[0].threshold), (30, 30));
    }
}
