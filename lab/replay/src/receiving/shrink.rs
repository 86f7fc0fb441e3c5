//! Shorter scripts to try. Those that still differ in the same way are shrunk further.

use super::script::Script;
use crate::difference::Difference;

/// Scripts with a part removed: everything after the difference, and sequences of events (from half of them down to single
/// ones). The shortest come first.
#[must_use]
pub fn candidates(script: &Script, difference: &Difference) -> Vec<Script> {
    let last = difference.ack.min(script.events.len());
    let rest = script.end_us - script.events.last().map_or(0, |event| event.at_us);
    let mut cut = script.clone();
    cut.events.truncate(last);
    cut.end_us = (cut.events.last().map_or(script.end_us, |event| event.at_us) + rest).min(script.end_us);
    if last < script.events.len() {
        return vec![cut];
    }
    let lengths = std::iter::successors(Some(last / 2), |length| Some(length / 2)).take_while(|length| *length > 0);
    let starts = lengths.flat_map(|length| (0..last - 1).step_by(length).map(move |start| (start, length)));
    let without = |(start, length): (usize, usize)| {
        let mut shorter = cut.clone();
        shorter.events.drain(start..(start + length).min(last - 1));
        shorter
    };
    starts.map(without).collect()
}
