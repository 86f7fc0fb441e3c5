//! A coupling with a controller for each path.
//!
//! The path controller (for example BBR) models its path: it sets the pacing rate and bounds the packets in flight. The
//! coupling bounds the connection's share of the path. Both get every event, and each has its own window:
//!
//! - cwnd = min(coupled window, path controller's window); pacing rate = the path controller's; ssthresh = the
//!   coupling's.
//! - **Growth.** The coupled window grows only while it limits the sender: the sender fills it, and it is not the
//!   larger of the two. Otherwise it would grow, unused, until it no longer limits anything. It may be reduced at any
//!   time.
//! - **Slow start.** Both windows double. When the path controller has found the capacity of its path (it sets a
//!   threshold), the coupling's slow start ends, too: window and threshold come down to that. Otherwise slow start
//!   would overshoot to twice the capacity, and the coupled window would limit nothing until a loss.
//! - **Loss, timeout, undo.** The coupled window is reduced and recovers like that of any algorithm (proportional rate
//!   reduction, one packet after a timeout, the earlier window after undo). The path controller acts as it does alone.
//!   The smaller window always applies.
//! - **ProbeRTT.** The path controller's window is four packets for a while. The coupled window does not change,
//!   because it is not the limit.
//! - **Application-limited.** Pacing, not the application, leaves the window unused, so RFC 2861's decay of an unused
//!   window is left out (as in Linux for BBR). RFC 2861's restart after idling applies.
//!
//! Without losses, the coupled window thus settles where the path controller's own probing just fits (BBR: 1.25
//! bandwidth-delay products). Losses reduce it to the coupling's share, and the path's model follows, because it
//! measures the rate that the window allows. The probing phase of BBR v1's ProbeBW may then last until the window has
//! grown or a packet is lost, because the additional quarter in flight is not reached.

use super::CwndState;
use crate::{Context, Decision, PathController, PathEvent};
use units::INFINITE_SSTHRESH;

/// The controllers of a coupling's paths, if it has any.
#[derive(Debug, Default)]
pub(super) struct PathControllers {
    construct: Option<fn() -> Box<dyn PathController>>,
    paths: Vec<Box<dyn PathController>>,
}

impl PathControllers {
    pub(super) fn new(construct: fn() -> Box<dyn PathController>) -> Self {
        Self { construct: Some(construct), paths: Vec::new() }
    }

    /// Adds the controller of a further path.
    pub(super) fn add(&mut self) {
        self.paths.extend(self.construct.map(|construct| construct()));
    }

    /// Whether the path's controller allows at least the coupled window.
    pub(super) fn allows_more(&self, path: usize, coupled: &CwndState) -> bool {
        self.paths.get(path).is_none_or(|controller| coupled.cwnd <= controller.decision().cwnd)
    }

    /// Whether the paths have no controllers.
    pub(super) fn is_absent(&self) -> bool {
        self.construct.is_none()
    }

    /// Passes the event to the path's controller. When that ends its slow start, the coupled window's slow start ends,
    /// too.
    #[inline]
    pub(super) fn on_event(&mut self, path: usize, event: &PathEvent, coupled: &mut CwndState, cx: &mut Context<'_>) {
        if let Some(construct) = self.construct {
            self.notify(construct, path, event, coupled, cx);
        }
    }

    fn notify(
        &mut self,
        construct: fn() -> Box<dyn PathController>,
        path: usize,
        event: &PathEvent,
        coupled: &mut CwndState,
        cx: &mut Context<'_>,
    ) {
        let controller = &mut self.paths[path];
        if matches!(event, PathEvent::PathUp(_)) {
            *controller = construct();
        }
        let prior_ssthresh = controller.decision().ssthresh;
        controller.on_event(event, cx);
        let ssthresh = controller.decision().ssthresh;
        if prior_ssthresh == INFINITE_SSTHRESH
            && ssthresh < INFINITE_SSTHRESH
            && coupled.in_slow_start()
            && !coupled.in_cwnd_reduction()
        {
            coupled.ssthresh = coupled.ssthresh.min(ssthresh.max(2));
            coupled.cwnd = coupled.cwnd.min(coupled.ssthresh);
        }
    }

    /// The combined decision of coupled window and path controller.
    pub(super) fn decision(&self, path: usize, coupled: &CwndState) -> Decision {
        let controller = self.paths.get(path).map(|controller| controller.decision());
        Decision {
            cwnd: controller.map_or(coupled.cwnd, |controller| controller.cwnd.min(coupled.cwnd)),
            ssthresh: coupled.ssthresh,
            pacing_rate: controller.and_then(|controller| controller.pacing_rate),
        }
    }
}
