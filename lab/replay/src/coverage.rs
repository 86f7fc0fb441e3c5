//! Counts the states and transitions that recordings reached, so that easy situations do not count twice.

use crate::recording::{Recording, State};
use crate::script::{PeerAck, Script};
use std::collections::BTreeMap;
use std::fmt;

/// Counts of transitions: from a congestion state, by a cause, to a congestion state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    transitions: BTreeMap<(u8, &'static str, u8), u64>,
}

impl Coverage {
    /// Adds the transitions in a recording.
    pub fn add(&mut self, script: &Script, recording: &Recording) {
        let mut prior = State::default();
        let mut highest = 0;
        for (ack, [before, after]) in script.acks.iter().zip(&recording.states) {
            if before.ca_state != prior.ca_state {
                self.count(&prior, "timer", before);
            }
            self.count(before, cause(ack, highest, before, after), after);
            highest = highest.max(ack.ack);
            prior = *after;
        }
    }

    /// Adds the counts of another coverage.
    pub fn merge(&mut self, other: &Self) {
        other.transitions.iter().for_each(|(key, count)| *self.transitions.entry(*key).or_default() += count);
    }

    /// Number of different transitions so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.transitions.len()
    }

    /// Whether there are no transitions yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.transitions.is_empty()
    }

    fn count(&mut self, from: &State, cause: &'static str, to: &State) {
        *self.transitions.entry((from.ca_state, cause, to.ca_state)).or_default() += 1;
    }
}

/// The cause of a transition: the content of an acknowledgement.
fn cause(ack: &PeerAck, highest: u64, before: &State, after: &State) -> &'static str {
    let is_dsack = ack.sack.first().is_some_and(|first| {
        first.0 < ack.ack || ack.sack.get(1).is_some_and(|second| first.0 >= second.0 && first.1 <= second.1)
    });
    match () {
        () if ack.ece => "ECN echo",
        () if is_dsack => "D-SACK",
        () if ack.ack < highest => "old acknowledgement",
        () if ack.ack > highest && after.lost > 0 => "partial acknowledgement",
        () if ack.ack > highest => "acknowledgement",
        () if after.lost > before.lost => "loss found",
        () if after.sacked > before.sacked => "SACK or duplicate",
        () if ack.window == 0 => "closed window",
        () => "nothing new",
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |ca_state: u8| State { ca_state, ..State::default() }.ca_name();
        for ((from, cause, to), count) in &self.transitions {
            writeln!(f, "  {:9} {cause:24} {:9} {count:8}", name(*from), name(*to))?;
        }
        Ok(())
    }
}
