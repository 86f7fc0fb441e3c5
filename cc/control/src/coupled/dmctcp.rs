//! DMCTCP: windows that do not move in step.
//!
//! Where paths share a bottleneck, their losses come together, and all would back off at once. Here,
//! - Decrease: only the path with the largest window halves, and only if one of its RTTs went by since the connection
//!   last backed off. Otherwise the window stays.
//! - Increase, per packet acknowledged: `1 / min(w)` on the path with the smallest window, on any other
//!   `1 / (sum(w) - min(w))`.
//! - Slow start: of the first path. The others wait with two packets until the first congestion on any.
//!
//! Source: Cui, Wang et al., "Desynchronized multipath TCP" (ICCCN 2014), as its kernel module has it; the paper itself
//! was not read.
//! Departures: a path that waits begins slow start also when it is left alone. Of several paths with the smallest window,
//! each counts as the smallest.

use super::{PATH, boxed};
use crate::frame::{Coupling, CwndState, SubflowGroup, additive_increase, reno_increase, slow_start};
use crate::{AckSample, AlgorithmEntry, Constructor};
use units::{INFINITE_SSTHRESH, Instant, Span};

/// The registry's line.
pub const ENTRY: AlgorithmEntry = AlgorithmEntry {
    name: "dmctcp",
    aliases: &["mctcpdesync"],
    title: "desynchronized: only the path with the largest window backs off",
    source: "Cui et al., ICCCN 2014 (from its kernel module)",
    parameters: &[PATH],
    make: Constructor::Group(|settings| boxed(settings, Dmctcp::default())),
};

/// Window and threshold of a path that waits, packets.
const WAITING: u32 = 2;

/// What the connection went through.
#[derive(Debug, Default)]
pub struct Dmctcp {
    /// Some path was congested.
    congested: bool,
    /// When a window last halved among siblings.
    backed_off: Option<Instant>,
}

/// Whether the path waits for its slow start.
#[derive(Debug, Default)]
pub struct Waits(bool);

impl Coupling for Dmctcp {
    type PathState = Waits;

    fn init(&mut self, paths: &mut SubflowGroup<'_, Waits>, state: &mut CwndState) {
        if self.waits(paths) {
            (state.cwnd, state.ssthresh) = (WAITING, WAITING);
            paths.own_state().0 = true;
        }
    }

    fn increase(&mut self, paths: &SubflowGroup<'_, Waits>) -> f64 {
        1.0 / period(paths)
    }

    fn cong_avoid(
        &mut self,
        paths: &mut SubflowGroup<'_, Waits>,
        state: &mut CwndState,
        acked: u32,
        _feedback: &AckSample,
    ) {
        if paths.own().state.0 {
            if self.waits(paths) {
                return;
            }
            state.ssthresh = INFINITE_SSTHRESH;
            paths.own_state().0 = false;
        }
        if paths.alone() {
            return reno_increase(state, acked);
        }
        let left = if state.in_slow_start() { slow_start(state, acked) } else { acked };
        if left > 0 {
            additive_increase(state, period(paths) as u32, left);
        }
    }

    fn on_congestion(&mut self, _memory: &mut Waits) {
        self.congested = true;
    }

    fn decrease(&mut self, paths: &SubflowGroup<'_, Waits>, now: Instant) -> f64 {
        let own = paths.own();
        let largest = paths.active().all(|path| path.cwnd <= own.cwnd);
        let rested = self.backed_off.is_none_or(|at| now.since(at) >= Span::from_secs_f64(own.srtt));
        if !largest || !rested {
            return 0.0;
        }
        self.backed_off = Some(now);
        own.cwnd / 2.0
    }
}

impl Dmctcp {
    /// A path that is not the first waits for the first one's loss.
    fn waits(&self, paths: &SubflowGroup<'_, Waits>) -> bool {
        !self.congested && paths.others().any(|path| path.up)
    }
}

/// Packets to be acknowledged for one more.
fn period(paths: &SubflowGroup<'_, Waits>) -> f64 {
    let least = paths.active().map(|path| path.cwnd).fold(f64::MAX, f64::min);
    if paths.own().cwnd <= least { least } else { paths.total_cwnd() - least }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::paths::testing::{ask, siblings};

    const WINDOWS: [(f64, f64); 3] = [(10.0, 0.1), (30.0, 0.1), (60.0, 0.1)];

    #[test]
    fn the_smallest_window_grows_as_reno_the_others_by_what_is_beside_it() {
        assert_eq!(ask(&mut siblings(&WINDOWS), |paths| period(paths)), [10.0, 90.0, 90.0]);
    }

    #[test]
    fn only_the_largest_window_halves_and_not_twice_in_an_rtt() {
        let mut dmctcp = Dmctcp::default();
        let mut decrease = |own, millis| {
            let mut all = siblings(&WINDOWS);
            dmctcp.decrease(&SubflowGroup::new(&mut all, own), Instant::ZERO + Span::from_millis(millis))
        };
        let (other, largest, again, later) = (decrease(1, 0), decrease(2, 10), decrease(2, 109), decrease(2, 110));
        assert_eq!([other, largest, again, later], [0.0, 30.0, 0.0, 30.0]);
    }
}
