//! Data sent again on another subflow: because its own failed, went, or holds up the window.

use super::scheduling::Hold;
use super::{MptcpStack, Sender, SubflowState};
use control::CaState;
use units::{Instant, Span};

/// Intervals of the connection's timer without progress after which a subflow is stale (Linux `stale_loss_cnt`).
const STALE: u32 = 4;
/// The connection's timer waits for this long at least (`TCP_RTO_MIN`).
const LEAST_WAIT: Span = Span::from_millis(200);
/// Segments in what Linux sends again at once: a fragment of data fills a page fragment of 32 KiB.
const FRAGMENT: u32 = 32 * 1024;
/// A holder's window that counts as that of a lost cause.
const FEW: u32 = 4;

impl Sender {
    /// A subflow's timer ran out: after a timeout the out-of-tree stack sends all that it carries on others.
    pub(super) fn note_timeouts(&mut self, index: usize) {
        let timeouts = self.subflows[index].sender.counters().timeouts;
        if timeouts == std::mem::replace(&mut self.subflows[index].timeouts, timeouts)
            || self.config.stack != MptcpStack::OutOfTree
        {
            return;
        }
        self.fail(index);
        self.send_again_from(index);
    }

    fn fail(&mut self, index: usize) {
        let subflow = &mut self.subflows[index];
        subflow.failures += u64::from(!std::mem::replace(&mut subflow.failed, true));
        self.touched |= 1 << index;
    }

    /// What a subflow carries and has not been acknowledged is to go on another, each segment once.
    pub(super) fn send_again_from(&mut self, index: usize) {
        let una = self.queue.una();
        for data in self.subflows[index].unacknowledged().filter(|data| *data >= una) {
            let record = self.queue.record(data);
            if record.given_up & (1 << index) == 0 {
                record.given_up |= 1 << index;
                self.again.push_back(data);
            }
        }
        self.again.make_contiguous().sort_unstable();
    }

    /// What waits to be sent again goes out, oldest first, on the fastest subflow that has not carried it; if all have, on
    /// the fastest.
    pub(super) fn give_again(&mut self, now: Instant) {
        while let Some(&data) = self.again.front() {
            if data >= self.queue.una() {
                let carriers = self.queue.record(data).carriers;
                let Some(index) = self.fastest(|index| carriers & (1 << index) == 0) else { return };
                self.give(now, index, data);
                self.counters.reinjected += 1;
            }
            self.again.pop_front();
        }
    }

    /// The open subflow of least smoothed RTT, among those preferred if one of them is active.
    fn fastest(&self, preferred: impl Fn(usize) -> bool) -> Option<usize> {
        let regular = self.views.iter().any(|view| view.active && !view.backup);
        let active = |index: &usize| self.views[*index].active && self.views[*index].backup != regular;
        let mut all = (0..self.views.len()).filter(active);
        let choosy = all.any(&preferred);
        let candidates = (0..self.views.len()).filter(active).filter(|index| self.views[*index].open);
        let candidates = candidates.filter(|index| !choosy || preferred(*index));
        candidates.min_by_key(|index| self.views[*index].srtt)
    }

    /// The connection's timer starts afresh, if anything is outstanding: it waits for as long as the latest of the timers of
    /// subflows that make progress (Linux `mptcp_set_timeout`): one that does not must not put off what rescues its data.
    pub(super) fn restart_timer(&mut self, now: Instant) {
        if self.config.stack == MptcpStack::OutOfTree || self.queue.is_empty() && !self.waits_for_subflow() {
            self.retransmission = Instant::NEVER;
            return;
        }
        let pending = self.subflows.iter().filter(|subflow| subflow.is_active() && subflow.stale == 0);
        let pending = pending.map(|subflow| subflow.sender.retransmission_at()).filter(|at| *at < Instant::NEVER);
        self.retransmission = pending.max().unwrap_or(now).max(now + LEAST_WAIT);
    }

    /// Nothing is outstanding, but a scheduler may hold data back for a subflow that is dead and must be found stale.
    fn waits_for_subflow(&self) -> bool {
        self.queue.unsent() > 0 && self.subflows.iter().any(|it| it.is_active() && !it.sender.is_empty())
    }

    /// No DATA_ACK for a whole interval (Linux `__mptcp_retrans`): the oldest data goes again, on a subflow that stands
    /// empty; subflows that do not are looked at for progress.
    pub(super) fn on_retransmission_timeout(&mut self, now: Instant) {
        self.refresh_stale();
        if let Some(index) = self.idle() {
            let (una, end) = (self.queue.una(), self.queue.end());
            let segments = u64::from((FRAGMENT / self.config.tcp.mss).max(1));
            for data in una..end.min(una + segments) {
                if self.queue.record(data).carriers == 0 {
                    break;
                }
                self.give(now, index, data);
                self.counters.reinjected += 1;
            }
        }
        self.restart_timer(now);
    }

    /// A subflow without progress over several intervals is stale if there is another: everything outstanding goes again.
    fn refresh_stale(&mut self) {
        for index in 0..self.subflows.len() {
            let others = self.subflows.iter().enumerate().any(|(other, it)| other != index && it.is_active());
            let subflow = &mut self.subflows[index];
            if subflow.state != SubflowState::Up || subflow.sender.is_empty() {
                continue;
            }
            let una = subflow.sender.acknowledged();
            if una != std::mem::replace(&mut subflow.stale_una, una) {
                subflow.stale = 0;
                continue;
            }
            subflow.stale += 1;
            if subflow.stale >= STALE && others && !subflow.failed {
                self.fail(index);
                self.send_all_again(index);
            }
        }
    }

    /// Everything outstanding, on account of a subflow that went stale.
    fn send_all_again(&mut self, index: usize) {
        for data in self.queue.una()..self.queue.end() {
            let record = self.queue.record(data);
            if record.carriers != 0 && record.given_up & (1 << index) == 0 {
                record.given_up |= 1 << index;
                self.again.push_back(data);
            }
        }
        self.again.make_contiguous().sort_unstable();
    }

    /// An active subflow with nothing to send or outstanding; a backup only if the others make no progress.
    fn idle(&self) -> Option<usize> {
        let idle = |backup: bool| {
            let found = |(_, it): &(usize, &super::Subflow)| {
                it.is_active() && it.sender.is_empty() && it.config.backup == backup
            };
            self.subflows.iter().enumerate().find(found).map(|(index, _)| index)
        };
        let busy = self.subflows.iter().filter(|it| it.is_active() && !it.sender.is_empty());
        let least_stale = busy.map(|it| it.stale).min().unwrap_or(u32::MAX);
        idle(false).or_else(|| if least_stale > 1 { idle(true) } else { None })
    }

    /// Nothing is outstanding and the window is shut: an acknowledgement that opened it may be lost (RFC 9293 section
    /// 3.8.6.1).
    pub(super) fn watch_window(&mut self, now: Instant, hold: Option<Hold>) {
        if hold != Some(Hold::ReceiveWindow) || !self.queue.is_empty() {
            self.persist = Instant::NEVER;
            self.probes = 0;
        } else if self.persist == Instant::NEVER {
            self.persist = now + LEAST_WAIT * (1 << self.probes.min(8));
        }
    }

    /// The latest data once more: the answer tells the window.
    pub(super) fn probe_window(&mut self, now: Instant) {
        self.persist = Instant::NEVER;
        self.probes += 1;
        self.refresh_views();
        let latest = self.queue.una().saturating_sub(1);
        if let Some(index) = self.fastest(|_| true) {
            self.subflows[index].assign(latest, true);
            self.restless |= 1 << index;
            self.touched |= 1 << index;
        }
        self.watch_window(now, Some(Hold::ReceiveWindow));
    }

    /// The receive window or the send buffer is full: the oldest data goes again on a subflow that is so
    /// much faster than its holder that it may well overtake it, and the holder's window is halved (opportunistic
    /// retransmission and penalisation: Raiciu et al., NSDI 2012; constants of the out-of-tree stack).
    pub(super) fn unblock(&mut self, now: Instant) {
        if !self.config.opportunistic_retransmission || self.queue.is_empty() {
            return;
        }
        self.refresh_views(); // paths that had nothing more to be given are open all the same
        let head = self.queue.una();
        let carriers = self.queue.record(head).carriers;
        let Some(rescuer) = self.fastest(|index| carriers & (1 << index) == 0) else { return };
        let holds = |index: &usize| carriers & (1 << index) != 0;
        let slow =
            |index: usize| self.views[index].cwnd <= FEW || self.views[rescuer].srtt * 4 < self.views[index].srtt;
        if holds(&rescuer) || !(0..self.subflows.len()).filter(holds).any(slow) {
            return;
        }
        self.give(now, rescuer, head);
        self.counters.reinjected += 1;
        self.counters.blocked += 1;
        if self.config.penalisation {
            (0..self.subflows.len()).filter(holds).for_each(|index| self.penalise(now, index, rescuer));
        }
    }

    /// At most once a round trip of the holder, and only while it has no trouble of its own.
    fn penalise(&mut self, now: Instant, holder: usize, rescuer: usize) {
        let (srtt, faster) = (self.views[holder].srtt, self.views[rescuer].srtt);
        let subflow = &mut self.subflows[holder];
        if faster < srtt && subflow.sender.ca_state() == CaState::Open && now.since(subflow.penalised) >= srtt {
            subflow.penalised = now;
            self.act(holder, |sender| sender.penalise(now));
        }
    }
}
