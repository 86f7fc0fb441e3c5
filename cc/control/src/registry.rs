//! The table of algorithms: from it come the scenario key, the CLI's list, parameter help and the tests that run over
//! every entry.

use crate::{AlgorithmEntry, coupled, single};

/// Every algorithm, in the order in which lists show them.
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
    &single::cdg::ENTRY,
    &single::copa::ENTRY,
    &single::dctcp::ENTRY,
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
];

/// The entry called `name`, or known under it in papers.
#[must_use]
pub fn find(name: &str) -> Option<&'static AlgorithmEntry> {
    REGISTRY.iter().copied().find(|entry| entry.name == name || entry.aliases.contains(&name))
}
