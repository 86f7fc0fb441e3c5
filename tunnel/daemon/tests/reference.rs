//! The reference page has every key that the reader knows, in the section of its table, and no other.

use ropewalk_daemon::config::keys;
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../docs/tunnel-configuration.md");

/// The first cell of each row, in the section whose heading is `[table]` or `[[table]]`.
fn documented(table: &str) -> BTreeSet<String> {
    let headings = [format!("## [{table}]\n"), format!("## [[{table}]]\n")];
    let section = headings.iter().find_map(|heading| PAGE.split_once(heading.as_str())).map(|(_, rest)| rest);
    let section = section.unwrap_or_else(|| panic!("no section for [{table}]")).split("\n## ").next().unwrap();
    section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).map(str::to_owned).collect()
}

#[test]
fn every_key_is_documented_and_nothing_else_is() {
    let tables = keys();
    assert_eq!(tables[0].1, ["interface", "peer", "path", "tunnel", "mpt"]);
    for (table, keys) in &tables[1..] {
        assert_eq!(documented(table), keys.iter().cloned().collect(), "[{table}]");
        assert!(keys.len() > 2, "{keys:?}");
    }
}
