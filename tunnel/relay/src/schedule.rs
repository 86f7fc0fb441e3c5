//! The order of connections: they take turns by messages, and one that has just begun to send goes first (as the new
//! flows of RFC 8290).

use crate::event::ConnectionId;
use std::collections::VecDeque;

/// The connections that have something to send.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    new: VecDeque<ConnectionId>,
    old: VecDeque<ConnectionId>,
}

impl Schedule {
    /// Adds a connection that is not listed.
    pub(crate) fn add(&mut self, id: ConnectionId) {
        self.new.push_back(id);
    }

    /// Adds a connection again after its turn.
    pub(crate) fn add_again(&mut self, id: ConnectionId) {
        self.old.push_back(id);
    }

    /// Takes the next connection off the list.
    pub(crate) fn next(&mut self) -> Option<ConnectionId> {
        self.new.pop_front().or_else(|| self.old.pop_front())
    }
}
