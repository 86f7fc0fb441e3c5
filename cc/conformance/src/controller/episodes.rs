//! Episodes of congestion whose outcome is known.

use super::{Action, sender::Sender, siblings::unused_siblings};
use crate::Violation;
use control::{AlgorithmEntry, Decision, Deviation, registry};
use params::ParamValue;
use std::collections::BTreeMap;
use units::INFINITE_SSTHRESH;

type ParamMap = BTreeMap<String, ParamValue>;
type Check = fn(&AlgorithmEntry) -> Result<(), Violation>;

/// Checks the reaction of an algorithm to worked episodes: losses, marks, timeouts, undo, and a path that comes up
/// again. They include a coupled algorithm with a single path, and siblings that are not in use.
#[must_use]
pub fn check_episodes(entry: &AlgorithmEntry) -> Vec<Violation> {
    let checks: [Check; 8] = [
        no_threshold_at_first,
        undo,
        marks_are_not_undone,
        one_reduction,
        timeout_in_recovery,
        up_again,
        single_path,
        unused_siblings,
    ];
    checks.iter().filter_map(|check| check(entry).err()).collect()
}

fn ack(acked: u32, lost: u32) -> Action {
    Action::Ack { acked, lost, rtt_us: 50_000 }
}

/// A flow with a window of at least 60 packets in flight, and a sibling with a smaller one.
fn flow(entry: &AlgorithmEntry) -> Result<Sender, Violation> {
    let mut sender = Sender::new(entry, &ParamMap::new())?;
    for round in 0..40 {
        if sender.decision(0).cwnd < 60 {
            (0..2).try_for_each(|path| sender.apply(path, Action::Send(1000)))?;
            sender.apply(0, Action::Wait(50))?;
            sender.apply(0, ack(1000, 0))?;
            if round % 2 == 1 {
                sender.apply(1, ack(1000, 0))?;
            }
        }
    }
    sender.apply(0, Action::Send(1000))?;
    let message = format!("{} has a cwnd of {} packets after 40 round trips", entry.name, sender.decision(0).cwnd);
    expect(&sender, sender.decision(0).cwnd >= 60, "cwnd reaches 60 packets without congestion", message)?;
    Ok(sender)
}

fn expect(sender: &Sender, holds: bool, rule: &'static str, message: String) -> Result<(), Violation> {
    if holds { Ok(()) } else { Err(sender.violation(rule, message)) }
}

fn no_threshold_at_first(entry: &AlgorithmEntry) -> Result<(), Violation> {
    let sender = Sender::new(entry, &ParamMap::new())?;
    let decision = sender.decision(0);
    let holds = decision.ssthresh == INFINITE_SSTHRESH;
    expect(&sender, holds, "there is no ssthresh before the first congestion", format!("{}: {decision:?}", entry.name))
}

fn undo(entry: &AlgorithmEntry) -> Result<(), Violation> {
    if entry.deviates(Deviation::KeepsCwndOnUndo) || entry.deviates(Deviation::SetsCwndOnRecovered) {
        return Ok(());
    }
    let mut sender = flow(entry)?;
    let prior = sender.decision(0);
    sender.apply(0, ack(3, 1))?;
    let reduced = sender.decision(0);
    let describe = |decision| format!("{}: {prior:?}, {reduced:?} on a loss, then {decision:?}", entry.name);
    expect(&sender, reduced.ssthresh < prior.cwnd, "a loss reduces ssthresh", describe(reduced))?;
    sender.apply(0, Action::SpuriousLoss)?;
    let restored = sender.decision(0);
    let holds = restored.cwnd == prior.cwnd && restored.ssthresh == prior.ssthresh.max(reduced.ssthresh);
    expect(&sender, holds, "undo restores cwnd and ssthresh", describe(restored))
}

fn marks_are_not_undone(entry: &AlgorithmEntry) -> Result<(), Violation> {
    if entry.deviates(Deviation::SetsCwndOnRecovered) {
        return Ok(());
    }
    let mut sender = flow(entry)?;
    sender.apply(0, Action::Mark)?;
    sender.apply(0, ack(3, 1))?;
    let reduced = sender.decision(0);
    sender.apply(0, Action::SpuriousLoss)?;
    let later = sender.decision(0);
    let message = format!("{}: {reduced:?} became {later:?}", entry.name);
    expect(&sender, later.ssthresh == reduced.ssthresh, "a mark is never undone", message)
}

fn one_reduction(entry: &AlgorithmEntry) -> Result<(), Violation> {
    if entry.deviates(Deviation::ReducesOnLossAfterMark) {
        return Ok(());
    }
    let mut sender = flow(entry)?;
    sender.apply(0, Action::Mark)?;
    let reduced = sender.decision(0).ssthresh;
    for cause in [Action::Mark, Action::LocalDrop, ack(3, 1), ack(3, 2), Action::Mark] {
        sender.apply(0, cause)?;
        let ssthresh = sender.decision(0).ssthresh;
        let message = format!("{}: {reduced} became {ssthresh} on {cause:?}", entry.name);
        expect(&sender, ssthresh == reduced, "ssthresh is reduced once in a window", message)?;
    }
    Ok(())
}

fn timeout_in_recovery(entry: &AlgorithmEntry) -> Result<(), Violation> {
    let mut sender = flow(entry)?;
    sender.apply(0, ack(3, 1))?;
    let reduced = sender.decision(0).ssthresh;
    sender.apply(0, Action::Timeout)?;
    let decision = sender.decision(0);
    let message = format!("{}: ssthresh {reduced}, then {decision:?}", entry.name);
    let holds = (decision.cwnd, decision.ssthresh) == (1, reduced);
    expect(&sender, holds, "a timeout in recovery leaves one packet, and ssthresh as it is", message)
}

fn up_again(entry: &AlgorithmEntry) -> Result<(), Violation> {
    let run = |sender: &mut Sender| -> Result<Vec<Decision>, Violation> {
        let start = [Action::Send(1000), Action::Wait(50), ack(5, 1), Action::Wait(5), ack(3, 0), Action::Timeout];
        let after_timeout = [Action::Send(1000), Action::Wait(50), ack(1000, 0)];
        let actions = start.iter().chain(&after_timeout).cycle().take(60);
        actions.map(|&action| sender.apply(0, action).map(|()| sender.decision(0))).collect()
    };
    let mut sender = Sender::new(entry, &ParamMap::new())?;
    let decisions = run(&mut sender)?;
    sender.bring_up(0)?;
    let again = run(&mut sender)?;
    let Some((first, second)) = decisions.iter().zip(&again).find(|(first, second)| first != second) else {
        return Ok(());
    };
    let message = format!("{}: {second:?} instead of {first:?} after the path came up a second time", entry.name);
    Err(sender.violation("a path that comes up again is a new one", message))
}

fn single_path(entry: &AlgorithmEntry) -> Result<(), Violation> {
    let Some(single) = entry.properties.single_path.filter(|_| entry.is_coupled()) else { return Ok(()) };
    let rule = "on a single path a coupled algorithm is the one that it names";
    let violation = |message| Violation { rule, message, steps: Vec::new() };
    let single_entry = registry::find(single).ok_or_else(|| violation(format!("there is no `{single}`")))?;
    let expected = single_path_decisions(single_entry, &ParamMap::new(), true)?;
    for (others_up, siblings) in [(true, "without RTT"), (false, "that are down")] {
        let decisions = single_path_decisions(entry, &ParamMap::new(), others_up)?;
        if let Some((found, wanted)) = decisions.iter().zip(&expected).find(|(found, wanted)| found != wanted) {
            let name = entry.name;
            return Err(violation(format!("{name} with paths {siblings}: {found:?}; {single}: {wanted:?}")));
        }
    }
    Ok(())
}

/// The decisions for the first of three paths in a worked sequence. The other paths are up without an RTT if
/// `others_up`, and down otherwise.
///
/// # Errors
/// An invariant does not hold.
pub fn single_path_decisions(
    entry: &AlgorithmEntry,
    given: &ParamMap,
    others_up: bool,
) -> Result<Vec<Decision>, Violation> {
    let mut sender = Sender::new(entry, given)?;
    if !others_up {
        (1..3).try_for_each(|path| sender.apply(path, Action::Toggle))?;
    }
    let rounds = [Action::Send(1000), Action::Wait(50), ack(30, 0), ack(1000, 0)];
    let faults = [
        ack(3, 1),
        Action::Timeout,
        Action::Mark,
        Action::Wait(2000),
        ack(2, 2),
        Action::SpuriousLoss,
        Action::TlpRecovery,
    ];
    let actions = faults.iter().flat_map(|&fault| rounds.iter().copied().cycle().take(62).chain([fault]));
    actions.map(|action| sender.apply(0, action).map(|()| sender.decision(0))).collect()
}
