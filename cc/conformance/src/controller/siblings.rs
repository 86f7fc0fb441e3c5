//! Siblings that are not in use: RFC 6356 couples only the subflows over which a connection sends.

use super::{Action, sender::Sender};
use crate::Violation;
use control::{AlgorithmEntry, Decision};
use std::collections::BTreeMap;
use units::Span;

/// The history of a sibling before it goes out of use.
struct Past {
    what: String,
    handshake_rtt: Option<Span>,
    actions: Vec<Action>,
}

/// When the first path begins to send, whatever the sibling's history.
const START: Span = Span::from_secs(10);
/// A wait longer than any retransmission timeout here.
const LONG: Action = Action::Wait(5_000);

/// Checks that a path's decisions do not depend on siblings that are backups, idle or stalled.
pub(super) fn unused_siblings(entry: &AlgorithmEntry) -> Result<(), Violation> {
    let alone = decisions(entry, &Past { what: String::new(), handshake_rtt: None, actions: Vec::new() })?.1;
    // In some algorithms a short RTT slows the others down most, in others a large window does.
    for past in [2, 50].into_iter().flat_map(pasts) {
        let (sender, beside) = decisions(entry, &past)?;
        if let Some((found, wanted)) = beside.iter().zip(&alone).find(|(found, wanted)| found != wanted) {
            let message = format!("{} with {}: {found:?} instead of {wanted:?}", entry.name, past.what);
            return Err(sender.violation("a sibling that is not in use changes nothing", message));
        }
    }
    Ok(())
}

/// Histories of a sibling with an RTT of `rtt_ms` milliseconds.
fn pasts(rtt_ms: u64) -> [Past; 3] {
    let past = |what: &str, end: &[Action]| Past {
        what: format!("{what}, with an RTT of {rtt_ms} ms"),
        handshake_rtt: Some(Span::from_millis(rtt_ms)),
        actions: end.to_vec(),
    };
    // Slow start, a loss, and rounds with a queue.
    let used = |end: &[Action]| {
        let grown = rounds(5, rtt_ms, rtt_ms).chain([Action::Send(1000), ack(3, 1, rtt_ms)]);
        grown.chain(rounds(30, rtt_ms, 2 * rtt_ms)).chain(end.iter().copied()).collect::<Vec<_>>()
    };
    [
        past("a backup that never sent", &[LONG]),
        past("a sibling that was used, now idle", &used(&[LONG])),
        past("a sibling that stalled", &used(&[Action::Send(1000), LONG, Action::Timeout, Action::Send(1)])),
    ]
}

/// The decisions for the first path after the second one's history. The first path does slow start, then congestion
/// avoidance with a filled window after each of several faults, without a queue and with one.
fn decisions(entry: &AlgorithmEntry, past: &Past) -> Result<(Sender, Vec<Decision>), Violation> {
    let mut sender = Sender::new(entry, &BTreeMap::new())?;
    sender.bring_up_with(1, past.handshake_rtt)?;
    past.actions.iter().try_for_each(|&action| sender.apply(1, action))?;
    sender.continue_at(START);
    let faults = [ack(3, 1, 50), Action::Mark, Action::Timeout, ack(3, 1, 50)];
    let after_fault =
        |fault| [Action::Send(1000), fault].into_iter().chain(rounds(10, 50, 50)).chain(rounds(20, 50, 53));
    let mut actions = rounds(4, 50, 50).chain(faults.into_iter().flat_map(after_fault));
    let decisions = actions.try_fold(Vec::new(), |mut decisions, action| {
        sender.apply(0, action)?;
        decisions.push(sender.decision(0));
        Ok(decisions)
    })?;
    Ok((sender, decisions))
}

fn ack(acked: u32, lost: u32, rtt_ms: u64) -> Action {
    Action::Ack { acked, lost, rtt_us: 1000 * rtt_ms }
}

/// Rounds that send as much as the window allows and are acknowledged after `wait_ms`. Each has three acknowledgements,
/// because wVegas ignores a round with fewer.
fn rounds(count: usize, wait_ms: u64, rtt_ms: u64) -> impl Iterator<Item = Action> {
    let acks = [2, 2, 1000].map(|acked| ack(acked, 0, rtt_ms));
    let round = [Action::Send(1000), Action::Wait(wait_ms)].into_iter().chain(acks);
    round.cycle().take(5 * count)
}
