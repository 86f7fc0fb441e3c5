//! The table of algorithms. One line an algorithm: from it come the scenario key, the CLI's list, parameter help and
//! the suites that run over every entry.

use crate::{Entry, single};

/// Every algorithm, in the order in which lists show them.
pub const REGISTRY: &[&Entry] = &[
    &single::reno::ENTRY,
    &single::cubic::ENTRY,
    &single::bic::ENTRY,
    &single::highspeed::ENTRY,
    &single::scalable::ENTRY,
    &single::vegas::ENTRY,
    &single::bbr::ENTRY,
];

/// The entry called `name`, or known under it in papers.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().copied().find(|entry| entry.name == name || entry.aliases.contains(&name))
}
