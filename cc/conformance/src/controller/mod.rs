//! Rules of congestion controllers.

mod checked;
mod episodes;
mod random;
mod sender;
mod siblings;

pub use episodes::{check_episodes, single_path_decisions};
pub use random::check_actions;
pub use sender::Action;

use crate::Violation;
use control::AlgorithmEntry;

/// Checks every rule: [`check_description`], [`check_episodes`], and [`check_actions`] for random actions. A sequence
/// of actions that breaks a rule is shortened. There is at most one violation per rule.
#[must_use]
pub fn check(entry: &AlgorithmEntry) -> Vec<Violation> {
    let mut violations = check_description(entry);
    violations.extend(check_episodes(entry));
    violations.extend(random::check(entry).err());
    let mut rules = Vec::new();
    violations.retain(|violation| !rules.contains(&violation.rule) && (rules.push(violation.rule), true).1);
    violations
}

/// Checks that the title, the source and the description of each parameter exist.
#[must_use]
pub fn check_description(entry: &AlgorithmEntry) -> Vec<Violation> {
    let texts = [("title", entry.title), ("source", entry.source)];
    let parameters = entry.parameters.iter().map(|parameter| (parameter.name, parameter.description));
    let missing = texts.into_iter().chain(parameters).filter(|(_, text)| text.trim().is_empty());
    let violation = |(what, _): (&str, &str)| Violation {
        rule: "title, source and parameters are described",
        message: format!("`{what}` of {} is empty", entry.name),
        steps: Vec::new(),
    };
    missing.map(violation).collect()
}
