//! Subflows that join and leave.

use super::{MptcpStack, Sender, SubflowState};
use crate::tcp;
use units::{Instant, Span};

/// RTTs after which a subflow is established even if the answer to the third packet of its join was lost (Linux
/// `schedule_3rdack_retransmission`).
const UNANSWERED_JOIN_RTTS: u64 = 3;

impl Sender {
    pub(super) fn connect(&mut self, now: Instant) {
        if self.connect_time.is_none() {
            self.connect_time = Some(now);
            if !self.config.tcp.handshake {
                self.snd_wnd_end = u64::from(self.config.tcp.initial_window); // the receiver's window is not known yet
            }
            self.join(now, 0);
            self.membership_deadline = self.next_membership_change();
        }
    }

    fn join(&mut self, now: Instant, index: usize) {
        self.subflows[index].state = SubflowState::Joining;
        self.handle_subflow(now, index, tcp::Input::Connect);
    }

    /// Called after a subflow was polled, because its handshake may be complete. Once the first one is established,
    /// others may join.
    #[inline]
    pub(super) fn check_established(&mut self, now: Instant, index: usize) {
        let subflow = &self.subflows[index];
        if subflow.state == SubflowState::Joining && subflow.sender.is_established() {
            self.on_established(now, index);
        }
    }

    fn on_established(&mut self, now: Instant, index: usize) {
        let is_upstream = self.config.stack == MptcpStack::Upstream && self.config.tcp.handshake;
        let subflow = &mut self.subflows[index];
        if subflow.fully_established_at == Instant::NEVER {
            // A join whose third packet has no answer repeats it after two RTTs.
            let rtts = if index == 0 { 1 } else { UNANSWERED_JOIN_RTTS };
            subflow.fully_established_at = now + if is_upstream { subflow.sender.srtt() * rtts } else { Span::ZERO };
            self.on_new_subflow(now, index);
        }
        let subflow = &mut self.subflows[index];
        if index == 0 || subflow.fully_established_at <= now {
            subflow.state = SubflowState::Up;
            self.send_buffer.on_membership_change();
            self.changed_subflows |= 1 << index;
            self.fill(now);
        }
        self.update_membership(now);
    }

    /// Called when an acknowledgement other than a SYN-ACK has arrived on a subflow that joins.
    pub(super) fn on_join_answered(&mut self, now: Instant, index: usize) {
        let subflow = &mut self.subflows[index];
        if subflow.sender.is_established() {
            subflow.fully_established_at = subflow.fully_established_at.min(now);
        }
    }

    /// True if another subflow may join. In upstream Linux the connection is fully established once the peer has
    /// answered the third packet of the handshake, and one subflow joins at a time.
    fn may_join(&self, now: Instant) -> bool {
        let is_joining = |subflow: &super::Subflow| subflow.state == SubflowState::Joining;
        self.subflows[0].fully_established_at <= now
            && (self.config.stack == MptcpStack::OutOfTree || !self.subflows.iter().any(is_joining))
    }

    /// Joins and removes the subflows that are due to join or leave.
    pub(super) fn update_membership(&mut self, now: Instant) {
        let Some(start) = self.connect_time else { return };
        for index in 0..self.subflows.len() {
            let subflow = &self.subflows[index];
            let (state, config) = (subflow.state, subflow.config);
            if config.leave.is_some_and(|leave| now >= start + leave) && state != SubflowState::Removed {
                self.leave(now, index);
            } else if state == SubflowState::Waiting && self.may_join(now) && now >= start + config.join {
                self.join(now, index);
            } else if state == SubflowState::Joining && subflow.fully_established_at <= now {
                self.check_established(now, index);
            }
        }
        self.membership_deadline = self.next_membership_change();
    }

    /// Removes a subflow (RFC 8684 section 3.4.2): its unacknowledged data is reinjected.
    fn leave(&mut self, now: Instant, index: usize) {
        if self.subflows[index].state == SubflowState::Up {
            self.reinject_subflow(index);
            self.subflows[index].sender.close(now, &mut self.controller);
        }
        let subflow = &mut self.subflows[index];
        subflow.state = SubflowState::Removed;
        subflow.deadline = Instant::NEVER;
        self.send_buffer.on_membership_change();
        self.changed_subflows |= 1 << index;
        self.subflows_to_poll &= !(1 << index);
    }

    /// Time at which the next subflow joins or leaves.
    fn next_membership_change(&self) -> Instant {
        let Some(start) = self.connect_time else { return Instant::NEVER };
        let change_time = |subflow: &super::Subflow| match subflow.state {
            SubflowState::Removed => Instant::NEVER,
            SubflowState::Waiting if self.may_join(Instant::NEVER) => {
                self.subflows[0].fully_established_at.max(start + subflow.config.join)
            }
            SubflowState::Joining if subflow.fully_established_at < Instant::NEVER => subflow.fully_established_at,
            _ => subflow.config.leave.map_or(Instant::NEVER, |leave| start + leave),
        };
        self.subflows.iter().map(change_time).min().unwrap_or(Instant::NEVER)
    }
}
