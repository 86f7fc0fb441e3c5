//! The paths of a coupled group.

use super::{CwndState, slow_start};
use crate::CaState;
use units::Span;

/// Minimum window that a coupling leaves, packets: RFC 5681's minimum threshold, below which slow start would begin.
const MIN_WINDOW: u32 = 2;

/// A path of a coupled group after its latest event.
#[derive(Debug, Default)]
pub struct SubflowView<M> {
    /// Whether the path is up.
    pub up: bool,
    /// Whether packets are in flight, or one was sent less than a retransmission timeout ago. False after a timeout,
    /// until an acknowledgement arrives.
    pub in_use: bool,
    /// Whether the path is up and in use, and its RTT is known: only such paths are coupled.
    pub active: bool,
    /// Congestion window, packets; during a reduction, the slow-start threshold (RFC 6356 section 3).
    pub cwnd: f64,
    /// Smoothed RTT, seconds; above zero if the path is active.
    pub srtt: f64,
    /// Minimum RTT; [`Span::MAX`] before the first sample.
    pub min_rtt: Span,
    /// Packets in flight.
    pub in_flight: u32,
    /// The sender's congestion state.
    pub ca_state: CaState,
    /// The algorithm's state of this path.
    pub state: M,
    /// Fraction of a packet by which the window still has to grow or shrink.
    pub(super) cwnd_fraction: f64,
}

impl<M: Default> SubflowView<M> {
    /// An active path with this window in packets and this RTT in seconds.
    #[must_use]
    pub fn established(cwnd: f64, srtt: f64) -> Self {
        Self { up: true, in_use: true, active: true, cwnd, srtt, min_rtt: Span::from_secs_f64(srtt), ..Self::default() }
    }
}

impl<M> SubflowView<M> {
    /// Window over RTT, packets per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.cwnd / self.srtt
    }
}

/// The paths of a group at an event of one of them. Only the state of that path can be changed.
#[derive(Debug)]
pub struct SubflowGroup<'a, M> {
    pub(super) subflows: &'a mut [SubflowView<M>],
    pub(super) own_index: usize,
}

impl<'a, M> SubflowGroup<'a, M> {
    /// The group for an event of the path with index `own_index`.
    pub fn new(subflows: &'a mut [SubflowView<M>], own_index: usize) -> Self {
        Self { subflows, own_index }
    }

    /// The path of the event.
    #[must_use]
    pub fn own_subflow(&self) -> &SubflowView<M> {
        &self.subflows[self.own_index]
    }

    /// The algorithm's state of the own path.
    pub fn own_state(&mut self) -> &mut M {
        &mut self.subflows[self.own_index].state
    }

    /// The active paths in order of their ids, including this path if it is active.
    pub fn active(&self) -> impl Iterator<Item = &SubflowView<M>> + Clone {
        self.subflows.iter().filter(|path| path.active)
    }

    /// The other paths, active or not.
    pub fn others(&self) -> impl Iterator<Item = &SubflowView<M>> {
        self.subflows.iter().enumerate().filter(|&(index, _)| index != self.own_index).map(|(_, path)| path)
    }

    /// Whether this path or all others are inactive, so that there is nothing to couple.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        !self.own_subflow().active || !self.others().any(|path| path.active)
    }

    /// The sum of the active paths' windows, packets.
    #[must_use]
    pub fn total_cwnd(&self) -> f64 {
        self.active().map(|path| path.cwnd).sum()
    }

    /// The sum over the active paths of window over RTT, packets per second.
    #[must_use]
    pub fn total_rate(&self) -> f64 {
        self.active().map(SubflowView::rate).sum()
    }

    /// Slow start, then `increase` packets for each acknowledged packet.
    pub fn cong_avoid(&mut self, state: &mut CwndState, acked: u32, increase: f64) {
        let remaining_acked = if state.in_slow_start() { slow_start(state, acked) } else { acked };
        self.change_cwnd(state, increase * f64::from(remaining_acked));
    }

    /// Changes the own window by whole packets; the fraction is kept until the next congestion.
    fn change_cwnd(&mut self, state: &mut CwndState, packets: f64) {
        let subflow = &mut self.subflows[self.own_index];
        subflow.cwnd_fraction += packets;
        let whole_packets = subflow.cwnd_fraction as i32;
        subflow.cwnd_fraction -= f64::from(whole_packets);
        let min_cwnd = MIN_WINDOW.min(state.cwnd);
        state.cwnd = state.cwnd.saturating_add_signed(whole_packets).clamp(min_cwnd, state.cwnd_clamp.max(min_cwnd));
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Paths that are up, by window in packets and RTT in seconds.
    pub(crate) fn siblings<M: Default>(paths: &[(f64, f64)]) -> Vec<SubflowView<M>> {
        paths.iter().map(|&(cwnd, srtt)| SubflowView::established(cwnd, srtt)).collect()
    }

    /// The results for each path.
    pub(crate) fn for_each_path<M, R>(
        subflows: &mut [SubflowView<M>],
        mut compute: impl FnMut(&mut SubflowGroup<'_, M>) -> R,
    ) -> Vec<R> {
        (0..subflows.len()).map(|own_index| compute(&mut SubflowGroup::new(subflows, own_index))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::siblings;
    use super::*;

    #[test]
    fn the_window_changes_by_whole_packets_up_or_down() {
        let mut subflows = siblings::<()>(&[(10.0, 0.1), (10.0, 0.1)]);
        let mut group = SubflowGroup::new(&mut subflows, 0);
        let mut state = CwndState { cwnd: 10, ssthresh: 2, ..CwndState::default() };
        let mut cwnds = |increase| [(); 4].map(|()| (group.cong_avoid(&mut state, 1, increase), state.cwnd).1);
        assert_eq!(cwnds(0.25), [10, 10, 10, 11]);
        assert_eq!(cwnds(-0.5), [11, 10, 10, 9]);
        assert_eq!(cwnds(-3.5), [6, 2, 2, 2], "never below two packets");
    }

    #[test]
    fn slow_start_is_not_coupled_and_leaves_the_rest_to_the_increase() {
        let mut subflows = siblings::<()>(&[(10.0, 0.1), (10.0, 0.1)]);
        let mut state = CwndState { cwnd: 10, ssthresh: 14, ..CwndState::default() };
        SubflowGroup::new(&mut subflows, 0).cong_avoid(&mut state, 8, 0.25);
        assert_eq!(state.cwnd, 15);
    }

    #[test]
    fn a_path_that_is_not_active_or_has_no_active_sibling_is_alone() {
        let is_alone = |active: [bool; 3]| {
            let mut subflows = siblings::<()>(&[(10.0, 0.1); 3]);
            subflows.iter_mut().zip(active).for_each(|(path, active)| path.active = active);
            SubflowGroup::new(&mut subflows, 0).is_alone()
        };
        let cases = [[true, false, false], [false, true, true], [true, false, true], [true; 3]];
        assert_eq!(cases.map(is_alone), [true, true, false, false]);
    }
}
