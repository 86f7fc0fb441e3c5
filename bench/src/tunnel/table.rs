//! The rows as text: one table a bench.

use serde_json::Value;
use std::fmt::Write;

/// Heading, key, digits after the point.
type Column = (&'static str, &'static str, usize);

const SPEED: &[Column] = &[
    ("Gbit/s", "gbps", 2),
    ("CPU s/GB", "cpu_s_per_gb", 2),
    ("of raw", "ratio", 3),
    ("retr.", "retransmits", 0),
    ("other cores", "other_cores", 2),
];
const BOND: &[Column] = &[
    ("of the sum", "share", 3),
    ("idle ms", "ping_idle_ms", 1),
    ("p50 ms", "ping_p50_ms", 1),
    ("p95 ms", "ping_p95_ms", 1),
    ("lost", "ping_lost", 3),
    ("CPU s/GB", "cpu_s_per_gb", 2),
    ("other cores", "other_cores", 2),
];
const SMALL: &[Column] = &[
    ("p50 us", "rtt_p50_us", 1),
    ("added us", "added_p50_us", 1),
    ("p95 us", "rtt_p95_us", 1),
    ("a second", "per_second", 0),
    ("lost", "ping_lost", 4),
    ("cores", "cores", 2),
    ("other cores", "other_cores", 2),
];

const HOSTILE: &[Column] = &[
    ("Mbit/s", "mbps", 1),
    ("of before", "goodput_ratio", 3),
    ("idle ms", "ping_idle_ms", 2),
    ("of before", "ping_idle_ratio", 3),
    ("loaded ms", "ping_p50_ms", 2),
    ("of before", "ping_ratio", 3),
    ("lost", "ping_lost", 3),
    ("attack/s", "attack_per_second", 0),
    ("other cores", "other_cores", 2),
];

const PEERS: &[Column] = &[
    ("down Mbit/s", "down_mbps", 1),
    ("up Mbit/s", "up_mbps", 1),
    ("call p50 ms", "call_p50_ms", 0),
    ("call p99 ms", "call_p99_ms", 0),
    ("up: p99 ms", "call_up_p99_ms", 0),
    ("call lost", "call_lost", 4),
    ("call gap ms", "call_gap_ms", 0),
    ("bulk gap ms", "bulk_gap_ms", 0),
    ("CPU s/GB", "cpu_s_per_gb", 1),
];

/// The tables of all benchmarks that ran.
pub(super) fn format_tables(rows: &[Value], accounting: &str) -> String {
    let mut text = format!("CPU time: {accounting}\n");
    for (bench, columns) in [("speed", SPEED), ("bond", BOND), ("small", SMALL), ("hostile", HOSTILE), ("peers", PEERS)]
    {
        let rows: Vec<&Value> = rows.iter().filter(|row| row["bench"] == bench).collect();
        if !rows.is_empty() {
            text += &table(bench, columns, &rows);
        }
    }
    text
}

fn table(bench: &str, columns: &[Column], rows: &[&Value]) -> String {
    let mut text = format!("\n{bench:<9}{:<14}", "");
    for (heading, ..) in columns {
        let _ = write!(text, "{heading:>14}");
    }
    text.push('\n');
    for row in rows {
        let name = |key: &str| row[key].as_str().unwrap_or_default();
        let _ = write!(text, "{:<9}{:<14}", name("testbed"), name("system"));
        match row["skipped"].as_str() {
            Some(reason) => text += &format!("    skipped: {}", reason.lines().next().unwrap_or_default()),
            None => columns.iter().for_each(|(_, key, digits)| text += &cell(&row[key], *digits)),
        }
        text.push('\n');
    }
    text
}

fn cell(value: &Value, digits: usize) -> String {
    value.as_f64().map_or_else(|| format!("{:>14}", "-"), |number| format!("{number:>14.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_has_its_columns_and_the_reason_for_a_skipped_row() {
        let rows = [
            json!({"bench": "speed", "testbed": "1 link", "system": "raw", "gbps": 18.374, "retransmits": 3}),
            json!({"bench": "speed", "testbed": "1 link", "system": "openvpn", "skipped": "openvpn is missing"}),
        ];
        let text = format_tables(&rows, "all");
        assert!(text.contains("18.37") && text.contains("  3") && text.contains("skipped: openvpn is missing"));
        assert!(!text.contains("of the sum"), "benches that did not run have no table");
    }
}
