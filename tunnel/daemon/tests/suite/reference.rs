//! `docs/reference/tunnel-configuration.md` describes every key in the section of its table, and its defaults.

use ropewalk_daemon::config::keys;
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../docs/reference/tunnel-configuration.md");

/// The section with the heading `[table]` or `[[table]]`.
fn section(table: &str) -> &'static str {
    let headings = [format!("## [{table}]\n"), format!("## [[{table}]]\n")];
    let section = headings.iter().find_map(|heading| PAGE.split_once(heading.as_str())).map(|(_, section)| section);
    section.unwrap_or_else(|| panic!("no section for [{table}]")).split("\n## ").next().unwrap()
}

/// The keys of the headings of a section: "### `TABLE.KEY`".
fn documented_keys(table: &str) -> BTreeSet<String> {
    let start = format!("### `{table}.");
    section(table).lines().filter_map(|line| line.strip_prefix(&start)?.strip_suffix('`')).map(str::to_owned).collect()
}

#[test]
fn all_keys_are_documented_and_no_others() {
    let tables = keys();
    assert_eq!(tables[0].1, ["interface", "peer", "path", "tunnel", "mpt", "notify", "class"]);
    for (table, keys) in &tables[1..] {
        assert_eq!(documented_keys(table), keys.iter().cloned().collect(), "[{table}]");
        assert!(keys.len() > 2, "{keys:?}");
    }
}

#[test]
fn documented_defaults_are_those_of_the_machine() {
    let default = |key: &str| {
        let (_, rest) =
            section("tunnel").split_once(&format!("### `tunnel.{key}`\n")).unwrap_or_else(|| panic!("no {key}"));
        rest.lines().find(|line| line.starts_with("- Default: ")).unwrap_or_else(|| panic!("no default of {key}"))
    };
    let options = machine::TunnelOptions::default();
    let timeout = format!("\"{}ms\"", options.max_reorder_timeout.as_millis_f64());
    for (key, value) in [
        ("congestion", options.congestion.name.as_str()),
        ("scheduler", options.scheduler.name.as_str()),
        ("max-reorder-timeout", &timeout),
        ("retransmit", if options.retransmit { "true" } else { "false" }),
        ("ack-filter", if options.ack_filter { "true" } else { "false" }),
        ("in-order", if options.in_order { "true" } else { "false" }),
        ("late", if options.deliver_late { "deliver" } else { "drop" }),
    ] {
        assert!(default(key).contains(value), "{key}: {} is not {value}", default(key));
    }
}
