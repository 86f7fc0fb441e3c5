//! Reinjection: data is sent again on another subflow, because its own has failed, was removed, or blocks the window.

use super::{MptcpStack, Sender, SubflowState};
use crate::path::SendLimit;
use control::CaState;
use units::{Instant, Span};

/// Intervals of the connection's retransmission timer without progress after which a subflow is stale (Linux
/// `stale_loss_cnt`).
const STALE_LOSS_COUNT: u32 = 4;
/// Minimum timeout of the connection's timers (`TCP_RTO_MIN`).
const RTO_MIN: Span = Span::from_millis(200);
/// Bytes that Linux retransmits at once: its data fragments fill a page fragment of 32 KiB.
const RETRANSMIT_BYTES: u32 = 32 * 1024;
/// Congestion window up to which a subflow counts as slow, whatever its RTT, packets.
const SMALL_WINDOW: u32 = 4;

impl Sender {
    /// Called after a subflow's timers ran. After a timeout the out-of-tree stack reinjects all data that the subflow
    /// carries.
    pub(super) fn check_subflow_timeout(&mut self, index: usize) {
        let timeouts = self.subflows[index].sender.counters().timeouts;
        if timeouts == std::mem::replace(&mut self.subflows[index].handled_timeouts, timeouts)
            || self.config.stack != MptcpStack::OutOfTree
        {
            return;
        }
        self.mark_failed(index);
        self.reinject_subflow(index);
    }

    fn mark_failed(&mut self, index: usize) {
        let subflow = &mut self.subflows[index];
        subflow.failures += u64::from(!std::mem::replace(&mut subflow.failed, true));
        self.changed_subflows |= 1 << index;
    }

    /// Queues the unacknowledged data of a subflow for reinjection, each segment once. Probes of a window that was shut
    /// from the start carry data that was never sent.
    pub(super) fn reinject_subflow(&mut self, index: usize) {
        let sent = self.queue.snd_una()..self.queue.end();
        for data in self.subflows[index].unacknowledged().filter(|data| sent.contains(data)) {
            if self.queue.sent_data(data).state.insert(index) {
                self.reinjections.push_back(data);
            }
        }
        self.reinjections.make_contiguous().sort_unstable();
    }

    /// Assigns queued data, oldest first, to the fastest subflow that has not carried it, or to the fastest if all
    /// have.
    pub(super) fn reinject(&mut self, now: Instant) {
        while let Some(&data) = self.reinjections.front() {
            if data >= self.queue.snd_una() {
                let subflows = self.queue.sent_data(data).paths;
                let Some(index) = self.fastest(|index| subflows & (1 << index) == 0) else { return };
                self.assign(now, index, data);
                self.counters.reinjected += 1;
            }
            self.reinjections.pop_front();
        }
    }

    /// The subflow with room and the minimum smoothed RTT, among the `preferred` ones if one of them is active.
    fn fastest(&self, preferred: impl Fn(usize) -> bool) -> Option<usize> {
        let regular = self.views.iter().any(|view| view.active && !view.backup);
        let is_active = |index: &usize| self.views[*index].active && self.views[*index].backup != regular;
        let mut active_subflows = (0..self.views.len()).filter(is_active);
        let has_preferred = active_subflows.any(&preferred);
        let candidates = (0..self.views.len()).filter(is_active).filter(|index| self.views[*index].has_room);
        let candidates = candidates.filter(|index| !has_preferred || preferred(*index));
        candidates.min_by_key(|index| self.views[*index].srtt)
    }

    /// Restarts the connection's retransmission timer if anything is outstanding. It expires with the latest
    /// retransmission timer of the subflows that make progress (Linux `mptcp_set_timeout`), so that a stale subflow
    /// does not delay the reinjection of its own data.
    pub(super) fn restart_timer(&mut self, now: Instant) {
        if self.config.stack == MptcpStack::OutOfTree || self.queue.is_empty() && !self.has_unsent_behind_busy_subflow()
        {
            self.retransmit_timer = Instant::NEVER;
            return;
        }
        let progressing = self.subflows.iter().filter(|subflow| subflow.is_active() && subflow.stale_count == 0);
        let timers =
            progressing.map(|subflow| subflow.sender.retransmission_timer(now)).filter(|timer| *timer < Instant::NEVER);
        self.retransmit_timer = timers.max().unwrap_or(now).max(now + RTO_MIN);
    }

    /// True if unsent data waits for a subflow that is not empty. The subflow may be dead and must then be found stale.
    fn has_unsent_behind_busy_subflow(&self) -> bool {
        self.queue.unsent() > 0 && self.subflows.iter().any(|subflow| subflow.is_active() && !subflow.sender.is_empty())
    }

    /// Handles a whole interval without a DATA_ACK (Linux `__mptcp_retrans`): the oldest data is reinjected on an idle
    /// subflow, and the others are checked for progress.
    pub(super) fn on_retransmission_timeout(&mut self, now: Instant) {
        self.refresh_stale();
        if let Some(index) = self.idle_subflow() {
            let (una, end) = (self.queue.snd_una(), self.queue.end());
            let segments = u64::from((RETRANSMIT_BYTES / self.config.tcp.mss).max(1));
            for data in una..end.min(una + segments) {
                if self.queue.sent_data(data).paths == 0 {
                    break;
                }
                self.assign(now, index, data);
                self.counters.reinjected += 1;
            }
        }
        self.restart_timer(now);
    }

    /// Marks a subflow without progress over several intervals as stale if there is another: everything outstanding is
    /// reinjected.
    fn refresh_stale(&mut self) {
        for index in 0..self.subflows.len() {
            let has_other_active = self
                .subflows
                .iter()
                .enumerate()
                .any(|(other_index, subflow)| other_index != index && subflow.is_active());
            let subflow = &mut self.subflows[index];
            if subflow.state != SubflowState::Up || subflow.sender.is_empty() {
                continue;
            }
            let una = subflow.sender.acknowledged();
            if una != std::mem::replace(&mut subflow.stale_una, una) {
                subflow.stale_count = 0;
                continue;
            }
            subflow.stale_count += 1;
            if subflow.stale_count >= STALE_LOSS_COUNT && has_other_active && !subflow.failed {
                self.mark_failed(index);
                self.reinject_all(index);
            }
        }
    }

    /// Queues everything outstanding for reinjection, because a subflow went stale.
    fn reinject_all(&mut self, index: usize) {
        for data in self.queue.snd_una()..self.queue.end() {
            let sent = self.queue.sent_data(data);
            if sent.paths != 0 && sent.state.insert(index) {
                self.reinjections.push_back(data);
            }
        }
        self.reinjections.make_contiguous().sort_unstable();
    }

    /// An active subflow with nothing to send and nothing outstanding; a backup only if the others make no progress.
    fn idle_subflow(&self) -> Option<usize> {
        let find_idle = |backup: bool| {
            let is_idle = |(_, subflow): &(usize, &super::Subflow)| {
                subflow.is_active() && subflow.sender.is_empty() && subflow.config.backup == backup
            };
            self.subflows.iter().enumerate().find(is_idle).map(|(index, _)| index)
        };
        let busy = self.subflows.iter().filter(|subflow| subflow.is_active() && !subflow.sender.is_empty());
        let min_stale_count = busy.map(|subflow| subflow.stale_count).min().unwrap_or(u32::MAX);
        find_idle(false).or_else(|| if min_stale_count > 1 { find_idle(true) } else { None })
    }

    /// Sets the persist timer if nothing is outstanding and the receive window is shut, because the acknowledgement
    /// that opened it may be lost (RFC 9293 section 3.8.6.1).
    pub(super) fn set_persist_timer(&mut self, now: Instant, send_limit: Option<SendLimit>) {
        if send_limit != Some(SendLimit::ReceiveWindow) || !self.queue.is_empty() {
            self.persist_timer = Instant::NEVER;
            self.window_probes = 0;
        } else if self.persist_timer == Instant::NEVER {
            self.persist_timer = now + RTO_MIN * (1 << self.window_probes.min(8));
        }
    }

    /// Sends a zero-window probe: the latest data again, whose acknowledgement carries the window.
    pub(super) fn send_window_probe(&mut self, now: Instant) {
        self.persist_timer = Instant::NEVER;
        self.window_probes += 1;
        self.refresh_views();
        let latest = self.queue.snd_una().saturating_sub(1);
        if let Some(index) = self.fastest(|_| true) {
            self.subflows[index].assign(latest, true);
            self.subflows_to_poll |= 1 << index;
            self.changed_subflows |= 1 << index;
        }
        self.set_persist_timer(now, Some(SendLimit::ReceiveWindow));
    }

    /// Opportunistic retransmission and penalisation (Raiciu et al., NSDI 2012; constants of the out-of-tree stack),
    /// when the receive window or the send buffer is full. The oldest data is reinjected on a subflow much faster than
    /// the one that carries it, and the window of the latter is halved.
    pub(super) fn retransmit_opportunistically(&mut self, now: Instant) {
        if !self.config.opportunistic_retransmission || self.queue.is_empty() {
            return;
        }
        self.refresh_views(); // subflows without data to send have room, too
        let head = self.queue.snd_una();
        let subflows = self.queue.sent_data(head).paths;
        let Some(faster_subflow) = self.fastest(|index| subflows & (1 << index) == 0) else { return };
        let is_carrier = |index: &usize| subflows & (1 << index) != 0;
        let is_slow = |index: usize| {
            self.views[index].cwnd <= SMALL_WINDOW || self.views[faster_subflow].srtt * 4 < self.views[index].srtt
        };
        if is_carrier(&faster_subflow) || !(0..self.subflows.len()).filter(is_carrier).any(is_slow) {
            return;
        }
        self.assign(now, faster_subflow, head);
        self.counters.reinjected += 1;
        self.counters.opportunistic_retransmissions += 1;
        if self.config.penalisation {
            (0..self.subflows.len()).filter(is_carrier).for_each(|index| self.penalise(now, index, faster_subflow));
        }
    }

    /// Halves the window of the slow subflow, at most once per RTT and only in its state Open.
    fn penalise(&mut self, now: Instant, slow_subflow: usize, faster_subflow: usize) {
        let (srtt, faster_srtt) = (self.views[slow_subflow].srtt, self.views[faster_subflow].srtt);
        let subflow = &mut self.subflows[slow_subflow];
        if faster_srtt < srtt && subflow.sender.ca_state() == CaState::Open && now.since(subflow.last_penalised) >= srtt
        {
            subflow.last_penalised = now;
            self.with_subflow(slow_subflow, |sender, controller| sender.penalise(now, controller));
        }
    }
}
