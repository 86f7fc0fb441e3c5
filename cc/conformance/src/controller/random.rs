//! Random actions, for any algorithm.

use super::{Action, sender::Sender};
use crate::Violation;
use control::{AlgorithmEntry, Decision, ParamKind, ParamValue};
use std::collections::BTreeMap;
use units::RngStream;

/// Number of sequences that [`check`] draws, and the length of the longest.
const SEQUENCES: u64 = 48;
const MAX_ACTIONS: u64 = 300;
/// Maximum number of attempts to shorten a sequence that breaks a rule.
const MAX_SHORTENINGS: usize = 600;

type Actions = Vec<(usize, Action)>;
type ParamMap = BTreeMap<String, ParamValue>;

/// Checks the invariants and the determinism of an algorithm under these actions, with its defaults and with each
/// choice of the parameters `path` and `steps`.
///
/// # Errors
/// The first violation.
pub fn check_actions(entry: &AlgorithmEntry, actions: &[(usize, Action)]) -> Result<(), Violation> {
    variants(entry).iter().try_for_each(|given| check_variant(entry, given, actions))
}

/// Checks random sequences of actions; the one that breaks a rule is shortened.
pub(super) fn check(entry: &AlgorithmEntry) -> Result<(), Violation> {
    let mut rng = RngStream::named(1, "conformance");
    for _ in 0..SEQUENCES {
        let actions: Actions = (0..1 + rng.below(MAX_ACTIONS)).map(|_| random(&mut rng)).collect();
        for given in variants(entry) {
            if let Err(violation) = check_variant(entry, &given, &actions) {
                return Err(shortened(actions, violation, |actions| check_variant(entry, &given, actions).err()));
            }
        }
    }
    Ok(())
}

fn check_variant(entry: &AlgorithmEntry, given: &ParamMap, actions: &[(usize, Action)]) -> Result<(), Violation> {
    let (decisions, again) = (run(entry, given, actions)?, run(entry, given, actions)?);
    let Some(index) = decisions.iter().zip(&again).position(|(first, second)| first != second) else { return Ok(()) };
    Err(Violation {
        rule: "it is deterministic",
        message: format!("{} {given:?}: {:?}, then {:?} in a second run", entry.name, decisions[index], again[index]),
        steps: actions[..=index].iter().map(|(path, action)| format!("path {path}: {action}")).collect(),
    })
}

/// Returns the decisions after each action; [`Sender`] checks the invariants.
fn run(entry: &AlgorithmEntry, given: &ParamMap, actions: &[(usize, Action)]) -> Result<Vec<Decision>, Violation> {
    let mut sender = Sender::new(entry, given)?;
    actions.iter().map(|&(path, action)| sender.apply(path, action).map(|()| sender.decision(path))).collect()
}

/// The default parameters, and each choice of `path` and `steps`.
fn variants(entry: &AlgorithmEntry) -> Vec<ParamMap> {
    let parameters = entry.parameters.iter().filter(|parameter| ["path", "steps"].contains(&parameter.name));
    let choices = parameters.filter_map(|parameter| match parameter.kind {
        ParamKind::Choice(choices) => Some((parameter.name, choices)),
        ParamKind::Number { .. } | ParamKind::File => None,
    });
    let set = |name: &str, choice: &str| ParamMap::from([(name.to_owned(), ParamValue::Choice(choice.to_owned()))]);
    let variants = choices.flat_map(|(name, choices)| choices[1..].iter().map(move |choice| set(name, choice)));
    std::iter::once(ParamMap::new()).chain(variants).collect()
}

/// Leaves out actions while the same rule remains broken.
fn shortened(
    mut actions: Actions,
    mut violation: Violation,
    broken: impl Fn(&Actions) -> Option<Violation>,
) -> Violation {
    let mut tries = 0;
    let mut length = actions.len().div_ceil(2);
    while length > 0 && tries < MAX_SHORTENINGS {
        let mut start = 0;
        while start < actions.len() && tries < MAX_SHORTENINGS {
            let mut fewer = actions.clone();
            fewer.drain(start..(start + length).min(actions.len()));
            tries += 1;
            match broken(&fewer).filter(|other| other.rule == violation.rule) {
                Some(other) => (actions, violation) = (fewer, other),
                None => start += length,
            }
        }
        length /= 2;
    }
    violation
}

fn random(rng: &mut RngStream) -> (usize, Action) {
    let mut below = |n: u64| rng.below(n);
    let path = below(3) as usize;
    let action = match below(37) {
        0..12 => Action::Send(1 + below(99) as u32),
        12..24 => {
            let lost = if below(9) == 0 { 1 + below(19) as u32 } else { 0 };
            Action::Ack { acked: below(40) as u32, lost, rtt_us: 1 + below(399_999) }
        }
        24..28 => Action::Wait(below(300)),
        28 => Action::Mark,
        29 => Action::LocalDrop,
        30 => Action::Timeout,
        31 => Action::SpuriousLoss,
        32 => Action::TlpRecovery,
        33 => Action::ApplicationLimited(below(200) as u32),
        34 => Action::Mss(500 + below(8_500) as u32),
        35 => Action::Wait(5_000 + below(15_000)),
        _ => Action::Toggle,
    };
    (path, action)
}
