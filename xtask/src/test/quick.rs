//! The tests of the quick tier: the default features, the pure crates and their suites with fewer seeds, the saved inputs of
//! fuzzing without mutations, good and bad inputs, one tunnel in namespaces, one cell of the lab.

use super::binaries::Binary;
use std::path::Path;

/// The packages that are built and tested. The program has its feature `lab`, with the tunnel in it.
const PACKAGES: &[&str] = &[
    "ropewalk",
    "ropewalk-bridge",
    "ropewalk-control",
    "ropewalk-fuzz",
    "ropewalk-link",
    "ropewalk-machine",
    "ropewalk-mpt",
    "ropewalk-node",
    "ropewalk-parse",
    "ropewalk-record",
    "ropewalk-relay",
    "ropewalk-report",
    "ropewalk-runner",
    "ropewalk-scenario",
    "ropewalk-schedule",
    "ropewalk-seal",
    "ropewalk-sender",
    "ropewalk-sim",
    "ropewalk-store",
    "ropewalk-testnet",
    "ropewalk-transport",
    "ropewalk-units",
    "ropewalk-wire",
    "ropewalk-world",
    "ropewalk-worlds",
];

/// Test programs of which a part is run: the tests whose names contain one of these; with `--skip`, all others.
const FILTERS: &[(&str, &[&str])] = &[
    ("ropewalk::lab", &["netns::mptcp_uses_two_paths_and_delivers_all"]),
    (
        "ropewalk::study",
        &[
            "--skip=evaluate::paths_of_a_tunnel_under_lia",
            "--skip=evaluate::the_verdicts",
            "--skip=names::the_program_carries",
        ],
    ),
    ("ropewalk::suite", &["bad_input::", "good_input::"]),
    ("ropewalk::tunnel", &["failures::a_path_that_fails_is_replaced_by_the_other"]),
    ("ropewalk-control::suite", &["--skip=group::"]),
    ("ropewalk-fuzz", &["--skip=mutations"]),
    ("ropewalk-node::many", &["--skip=a_thousand_clients"]),
    ("ropewalk-seal", &["--skip=exhaustive::"]),
    ("ropewalk-scenario::suite", &["--skip=effective::the_shipped_scenarios"]),
    (
        "ropewalk-sim::suite",
        &[
            "--skip=goals::",
            "--skip=kernel::",
            "--skip=ns2::",
            "--skip=relay::",
            "--skip=through_a_relay_delay",
            "--skip=end_to_end_delay",
        ],
    ),
    ("ropewalk-store::suite", &["--skip=kill::"]),
];

/// Maximum number of seeds per campaign (`testing::SEEDS`), and random inputs of each property (proptest has 256).
const FEWER: [(&str, &str); 2] = [("ROPEWALK_SEEDS", "20"), ("PROPTEST_CASES", "64")];

/// The line of cargo's that builds the tests.
pub(super) fn build_line() -> String {
    format!("cargo test --locked --tests {}", selection())
}

/// The packages and features, as options of cargo's.
pub(super) fn selection() -> String {
    let packages: String = PACKAGES.iter().map(|package| format!(" -p {package}")).collect();
    format!("--features ropewalk/lab{packages}")
}

/// Test programs that are left to the full tier.
const LEFT_OUT: &[&str] = &["ropewalk::boot", "ropewalk::kernel"];

fn is_selected(binary: &str) -> bool {
    let package = binary.split("::").next().unwrap_or(binary);
    PACKAGES.contains(&package) && !LEFT_OUT.contains(&binary)
}

/// The programs with their filters.
pub(super) fn selected(binaries: &[Binary]) -> impl Iterator<Item = (&Binary, &'static [&'static str])> {
    let filters = |binary: &Binary| FILTERS.iter().find(|(name, _)| *name == binary.name).map_or(&[][..], |(_, f)| f);
    let selected = binaries.iter().filter(|binary| is_selected(&binary.name));
    selected.map(move |binary| (binary, filters(binary)))
}

/// `variables`, and those for fewer seeds unless they are set.
pub(super) fn variables<'v>(variables: &[(&'v str, &'v Path)]) -> Vec<(&'v str, &'v Path)> {
    let fewer = FEWER.into_iter().filter(|(name, _)| std::env::var_os(name).is_none());
    variables.iter().copied().chain(fewer.map(|(name, value)| (name, Path::new(value)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell;

    #[test]
    fn programs_of_other_packages_and_of_other_features_are_left_to_the_full_tier() {
        assert!(["ropewalk", "ropewalk::suite", "ropewalk-sim::suite"].into_iter().all(is_selected));
        assert!(!["ropewalk::boot", "ropewalk::kernel", "ropewalk-lab", "xtask"].into_iter().any(is_selected));
    }

    /// A renamed test would be left out, or run, without notice.
    #[test]
    fn every_filter_names_tests_that_exist() {
        let sources = shell::output("git grep -h -E ^(mod|fn) -- *.rs").unwrap();
        for filter in FILTERS.iter().flat_map(|(_, filters)| *filters) {
            let path = filter.trim_start_matches("--skip=").split("::").filter(|part| !part.is_empty());
            for part in path {
                let known = [format!("mod {part};"), format!("fn {part}")];
                assert!(known.iter().any(|known| sources.contains(known)), "{filter}: no `{part}`");
            }
        }
    }
}
