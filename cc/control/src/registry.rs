//! The table of algorithms. It provides the scenario key, the CLI's list, the parameter help and the tests that run
//! over every entry. A plug-in or a notebook adds algorithms at run time.

use crate::{AlgorithmEntry, RegisterError, coupled, single};
use params::{Entry, Registered};

/// The algorithms that were registered at run time.
static REGISTERED: Registered<AlgorithmEntry> = Registered::new();

/// Every built-in algorithm, in the order of lists.
pub const REGISTRY: &[&AlgorithmEntry] = &[
    &single::reno::ENTRY,
    &single::cubic::ENTRY,
    &single::bic::ENTRY,
    &single::highspeed::ENTRY,
    &single::scalable::ENTRY,
    &single::htcp::ENTRY,
    &single::vegas::ENTRY,
    &single::illinois::ENTRY,
    &single::veno::ENTRY,
    &single::westwood::ENTRY,
    &single::hybla::ENTRY,
    &single::yeah::ENTRY,
    &single::compound::ENTRY,
    &single::elastic::ENTRY,
    &single::nv::ENTRY,
    &single::lp::ENTRY,
    &single::ledbat::ENTRY,
    &single::cdg::ENTRY,
    &single::copa::ENTRY,
    &single::dctcp::ENTRY,
    &single::prague::ENTRY,
    &single::bbr::ENTRY,
    &single::bbr3::ENTRY,
    &single::bbr3_draft::ENTRY,
    &single::bbr_path::ENTRY,
    &coupled::lia::ENTRY,
    &coupled::olia::ENTRY,
    &coupled::balia::ENTRY,
    &coupled::wvegas::ENTRY,
    &coupled::dmctcp::ENTRY,
    &coupled::ewtcp::ENTRY,
    &coupled::semicoupled::ENTRY,
    &coupled::fully_coupled::ENTRY,
    &coupled::coupled_bbr::ENTRY,
    &coupled::cmpbbr::ENTRY,
    &coupled::discern::ENTRY,
];

/// Every algorithm: the built-in ones, then those that were registered at run time.
#[must_use]
pub fn entries() -> Vec<&'static AlgorithmEntry> {
    REGISTERED.after(REGISTRY)
}

/// The names of all algorithms, including those used in papers.
pub fn names() -> impl Iterator<Item = &'static str> {
    entries().into_iter().flat_map(Entry::names)
}

/// The entry with the name `name`, or with that name in papers.
#[must_use]
pub fn find(name: &str) -> Option<&'static AlgorithmEntry> {
    REGISTERED.find(name, REGISTRY)
}

/// Adds an algorithm at run time, or replaces one of the same name that was added before.
///
/// # Errors
/// The name is built in, taken or not allowed, a parameter is wrong, or the [code
/// version](crate::Properties::code_version) is missing.
pub fn register(entry: AlgorithmEntry) -> Result<&'static AlgorithmEntry, RegisterError> {
    REGISTERED.register(entry, REGISTRY)
}
