//! Subflows join and leave.

use super::{Sender, SubflowState};
use crate::tcp;
use units::Instant;

impl Sender {
    pub(super) fn connect(&mut self, now: Instant) {
        if self.connected.is_none() {
            self.connected = Some(now);
            if !self.config.tcp.handshake {
                self.window_end = u64::from(self.config.tcp.initial_window); // what the receiver offers is not known yet
            }
            self.join(now, 0);
        }
    }

    fn join(&mut self, now: Instant, index: usize) {
        self.subflows[index].state = SubflowState::Joining;
        self.act(index, |sender| sender.handle(now, tcp::Input::Connect));
    }

    /// A subflow has been polled: its handshake may be done. The first one's opens the connection to others.
    pub(super) fn note_open(&mut self, now: Instant, index: usize) {
        let subflow = &mut self.subflows[index];
        if subflow.state == SubflowState::Joining && subflow.sender.is_open() {
            subflow.state = SubflowState::Up;
            self.touched |= 1 << index;
            self.on_life(now);
            self.fill(now);
        }
    }

    /// The connection is open: its first subflow is, or was.
    fn is_open(&self) -> bool {
        matches!(self.subflows[0].state, SubflowState::Up | SubflowState::Gone)
    }

    /// Lets those join and leave for which it is time.
    pub(super) fn on_life(&mut self, now: Instant) {
        let Some(start) = self.connected else { return };
        for index in 0..self.subflows.len() {
            let subflow = &self.subflows[index];
            let (state, config) = (subflow.state, subflow.config);
            if config.leave.is_some_and(|leave| now >= start + leave) && state != SubflowState::Gone {
                self.leave(now, index);
            } else if state == SubflowState::Waiting && self.is_open() && now >= start + config.join {
                self.join(now, index);
            }
        }
    }

    /// Removed (RFC 8684 section 3.4.2): what it has not got acknowledged is sent again on others.
    fn leave(&mut self, now: Instant, index: usize) {
        if self.subflows[index].state == SubflowState::Up {
            self.send_again_from(index);
            self.subflows[index].with(&mut self.steering, |sender| sender.close(now));
        }
        let subflow = &mut self.subflows[index];
        subflow.state = SubflowState::Gone;
        subflow.deadline = Instant::NEVER;
        self.touched |= 1 << index;
        self.restless &= !(1 << index);
    }

    /// When the next one joins or leaves.
    pub(super) fn next_life(&self) -> Instant {
        let Some(start) = self.connected else { return Instant::NEVER };
        let due = |subflow: &super::Subflow| match subflow.state {
            SubflowState::Gone => Instant::NEVER,
            SubflowState::Waiting if self.is_open() => start + subflow.config.join,
            _ => subflow.config.leave.map_or(Instant::NEVER, |leave| start + leave),
        };
        self.subflows.iter().map(due).min().unwrap_or(Instant::NEVER)
    }
}
