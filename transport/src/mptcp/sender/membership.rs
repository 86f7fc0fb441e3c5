//! Subflows join and leave.

use super::{Sender, SubflowState};
use crate::tcp;
use units::Instant;

impl Sender {
    pub(super) fn connect(&mut self, now: Instant) {
        if self.connect_time.is_none() {
            self.connect_time = Some(now);
            if !self.config.tcp.handshake {
                self.snd_wnd_end = u64::from(self.config.tcp.initial_window); // what the receiver offers is not known yet
            }
            self.join(now, 0);
            self.membership_deadline = self.next_membership_change();
        }
    }

    fn join(&mut self, now: Instant, index: usize) {
        self.subflows[index].state = SubflowState::Joining;
        self.handle_subflow(now, index, tcp::Input::Connect);
    }

    /// Called after a subflow was polled: its handshake may be complete. That of the first one lets others join.
    pub(super) fn check_established(&mut self, now: Instant, index: usize) {
        let subflow = &mut self.subflows[index];
        if subflow.state == SubflowState::Joining && subflow.sender.is_established() {
            subflow.state = SubflowState::Up;
            self.changed_subflows |= 1 << index;
            self.update_membership(now);
            self.fill(now);
        }
    }

    /// True if the first subflow is or was established.
    fn is_established(&self) -> bool {
        matches!(self.subflows[0].state, SubflowState::Up | SubflowState::Removed)
    }

    /// Joins and removes the subflows whose time to join or leave has come.
    pub(super) fn update_membership(&mut self, now: Instant) {
        let Some(start) = self.connect_time else { return };
        for index in 0..self.subflows.len() {
            let subflow = &self.subflows[index];
            let (state, config) = (subflow.state, subflow.config);
            if config.leave.is_some_and(|leave| now >= start + leave) && state != SubflowState::Removed {
                self.leave(now, index);
            } else if state == SubflowState::Waiting && self.is_established() && now >= start + config.join {
                self.join(now, index);
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
        self.changed_subflows |= 1 << index;
        self.subflows_to_poll &= !(1 << index);
    }

    /// When the next subflow joins or leaves.
    fn next_membership_change(&self) -> Instant {
        let Some(start) = self.connect_time else { return Instant::NEVER };
        let change_time = |subflow: &super::Subflow| match subflow.state {
            SubflowState::Removed => Instant::NEVER,
            SubflowState::Waiting if self.is_established() => start + subflow.config.join,
            _ => subflow.config.leave.map_or(Instant::NEVER, |leave| start + leave),
        };
        self.subflows.iter().map(change_time).min().unwrap_or(Instant::NEVER)
    }
}
