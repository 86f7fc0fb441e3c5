//! The pair: a coupling over a controller of each path.
//!
//! The path level (BBR, say) models *its path*: it owns the pacing rate and bounds what the path should hold. The
//! coupling bounds what the *connection* may take there: it moves window between paths. Both hear every event, and
//! each keeps its own window by its own rules:
//!
//! - window = min(coupled window, path's window); pacing rate = the path's; slow-start threshold = the coupling's.
//! - **Growth.** The coupled window grows only where it is what limits: the sender fills the window, and the coupled
//!   one is not the greater of the two. Otherwise it would grow, unseen, to where it bounds nothing. Decreases are not
//!   asked for a reason.
//! - **Slow start.** Both double. When the path level has found what its path carries (it sets a threshold), the
//!   coupling's slow start ends too, at that: window and threshold come down to it. Otherwise the overshoot of slow
//!   start would leave the coupling at twice the path, bounding nothing until a loss.
//! - **Loss, timeout, undo.** The coupling cuts and recovers as any window does (proportional rate reduction, one packet
//!   after a timeout, the old window after undo), the path level as it does alone; the smaller window rules at every
//!   moment.
//! - **RTT probing.** The path's window is four packets for a while; the coupled one stands still, as it does not limit.
//! - **Application-limited.** What pacing leaves of the window is not the application's doing: RFC 2861's decay of an
//!   unused window is left out (Linux leaves it out for BBR). After idling, RFC 2861's restart does apply.
//!
//! Where nothing is lost, the coupled window thus comes to rest where the path level's own probing just fits (BBR: 1.25
//! bandwidth-delay products); losses take it below, to the coupling's share, and the path's model follows: it measures
//! what the window lets through. BBR v1's probing phase may then last until the window has grown or a packet is lost:
//! it asks for a quarter more in flight, and may not have it.

use super::CwndState;
use crate::{Context, Decision, PathController, PathEvent};
use units::INFINITE_SSTHRESH;

/// The controllers of the paths, under a coupling; or none.
#[derive(Debug, Default)]
pub(super) struct PathControllers {
    make: Option<fn() -> Box<dyn PathController>>,
    paths: Vec<Box<dyn PathController>>,
}

impl PathControllers {
    pub(super) fn new(make: fn() -> Box<dyn PathController>) -> Self {
        Self { make: Some(make), paths: Vec::new() }
    }

    /// One path more.
    pub(super) fn add(&mut self) {
        self.paths.extend(self.make.map(|make| make()));
    }

    /// The path's window is not the smaller one: growth is the coupling's to decide.
    pub(super) fn leaves_room(&self, path: usize, coupled: &CwndState) -> bool {
        self.paths.get(path).is_none_or(|level| coupled.cwnd <= level.decision().cwnd)
    }

    /// There is none, so that the window alone limits.
    pub(super) fn is_absent(&self) -> bool {
        self.make.is_none()
    }

    /// The path level hears the event; the coupled window takes over the end of slow start.
    pub(super) fn on_event(&mut self, path: usize, event: &PathEvent, coupled: &mut CwndState, cx: &mut Context<'_>) {
        let Some(make) = self.make else { return };
        let level = &mut self.paths[path];
        if matches!(event, PathEvent::PathUp(_)) {
            *level = make();
        }
        let before = level.decision().ssthresh;
        level.on_event(event, cx);
        let after = level.decision().ssthresh;
        if before == INFINITE_SSTHRESH
            && after < INFINITE_SSTHRESH
            && coupled.in_slow_start()
            && !coupled.in_cwnd_reduction()
        {
            coupled.ssthresh = coupled.ssthresh.min(after.max(2));
            coupled.cwnd = coupled.cwnd.min(coupled.ssthresh);
        }
    }

    /// Both together.
    pub(super) fn decision(&self, path: usize, coupled: &CwndState) -> Decision {
        let level = self.paths.get(path).map(|level| level.decision());
        Decision {
            cwnd: level.map_or(coupled.cwnd, |level| level.cwnd.min(coupled.cwnd)),
            ssthresh: coupled.ssthresh,
            pacing_rate: level.and_then(|level| level.pacing_rate),
        }
    }
}
