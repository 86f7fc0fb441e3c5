//! The handshake, and the opening and abandoning of paths.

use super::{Content, Packet, PathState, Sender};
use units::Instant;

impl Sender {
    pub(super) fn connect(&mut self, now: Instant) {
        if self.connect_time.is_some() {
            return;
        }
        self.connect_time = Some(now);
        if self.config.handshake {
            self.paths[0].open(now);
        } else {
            self.paths[0].start(now, None, &self.config, &mut self.controller);
        }
        self.update_membership(now);
    }

    /// True once the first path has been opened.
    fn is_established(&self) -> bool {
        matches!(self.paths[0].state, PathState::Up | PathState::Removed)
    }

    /// Opens and abandons the paths that are due.
    pub(super) fn update_membership(&mut self, now: Instant) {
        let Some(start) = self.connect_time else { return };
        for index in 0..self.paths.len() {
            let (state, config) = (self.paths[index].state, self.paths[index].config);
            if config.leave.is_some_and(|leave| now >= start + leave) && state != PathState::Removed {
                let chunks = self.paths[index].abandon(now, &mut self.controller);
                chunks.into_iter().for_each(|chunk| self.queue.on_lost(chunk));
            } else if state == PathState::Waiting && self.is_established() && now >= start + config.join {
                self.paths[index].open(now);
            }
        }
    }

    /// Time at which the next path is opened or abandoned.
    pub(super) fn next_membership_change(&self) -> Instant {
        let Some(start) = self.connect_time else { return Instant::NEVER };
        let change_time = |path: &super::Path| match path.state {
            PathState::Removed => Instant::NEVER,
            PathState::Waiting if self.is_established() => start + path.config.join,
            _ => path.config.leave.map_or(Instant::NEVER, |leave| start + leave),
        };
        self.paths.iter().map(change_time).min().unwrap_or(Instant::NEVER)
    }

    /// The Initial packet or PATH_CHALLENGE to send now.
    pub(super) fn next_validation(&mut self, now: Instant) -> Option<Packet> {
        for index in 0..self.paths.len() {
            if let Some(number) = self.paths[index].next_validation(now) {
                let content = if self.is_established() { Content::PathChallenge } else { Content::Initial };
                return Some(self.packet(now, index, number, content));
            }
        }
        None
    }
}
