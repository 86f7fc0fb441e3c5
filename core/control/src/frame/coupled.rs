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
