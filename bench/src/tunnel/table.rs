//! The rows as text: one table per benchmark.

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
    ("other cores", "other_cores", 2),
];

const CLIENTS: &[Column] = &[
    ("kB each", "kb_a_client", 1),
    ("before kB", "configured_kb_a_client", 1),
    ("PSS, MB", "pss_mb", 1),
    ("cores idle", "idle_cores", 4),
    ("calibr./s", "idle_calibrations", 4),
    ("us/s each", "idle_us_a_client", 1),
    ("reload all ms", "reload_all_ms", 0),
    ("all up ms", "all_up_ms", 0),
    ("reload one ms", "reload_one_ms", 0),
    ("its path ms", "one_up_ms", 1),
];

const COST: &[Column] = &[
    ("down Mbit/s", "down_mbps", 1),
    ("calls server", "server_calls", 0),
    ("client", "client_calls", 0),
    ("sleeps server", "server_sleeps", 0),
    ("client", "client_sleeps", 0),
    ("M instr. serv.", "server_minstructions", 0),
    ("client", "client_minstructions", 0),
    ("s/GB server", "server_cpu_s_per_gb", 1),
    ("client", "client_cpu_s_per_gb", 1),
    ("call p50 ms", "call_p50_ms", 1),
    ("call p99 ms", "call_p99_ms", 1),
    ("other cores", "other_cores", 2),
];

/// The tables of all benchmarks that ran.
pub(super) fn format_tables(rows: &[Value], accounting: &str) -> String {
    let mut text = format!("CPU time: {accounting}\n");
    let benches = [
        ("speed", SPEED),
        ("bond", BOND),
        ("small", SMALL),
        ("hostile", HOSTILE),
        ("peers", PEERS),
        ("clients", CLIENTS),
        ("cost", COST),
    ];
    for (bench, columns) in benches {
        let rows: Vec<&Value> = rows.iter().filter(|row| row["bench"] == bench).collect();
        if !rows.is_empty() {
            let medians =
                if ["peers", "cost"].contains(&bench) { medians(&rows) } else { rows.into_iter().cloned().collect() };
            text += &table(bench, columns, &medians);
        }
    }
    text
}

/// One row per system and testbed, with the median of each number over the runs in which it was measured.
fn medians(rows: &[&Value]) -> Vec<Value> {
    let same = |a: &Value, b: &Value| a["testbed"] == b["testbed"] && a["system"] == b["system"];
    let is_first = |(index, row): &(usize, &&Value)| !rows[..*index].iter().any(|other| same(other, row));
    let median = |first: &Value| {
        let runs: Vec<&Value> = rows.iter().copied().filter(|row| same(row, first)).collect();
        let measured = runs.iter().find(|run| run["skipped"].is_null()).copied().unwrap_or(first);
        let mut row = measured.clone();
        for (key, value) in row.as_object_mut().into_iter().flatten().filter(|(_, value)| value.is_number()) {
            let mut numbers: Vec<f64> = runs.iter().filter_map(|run| run[key].as_f64()).collect();
            numbers.sort_by(f64::total_cmp);
            let middle = numbers.len() / 2;
            let lower = if numbers.len().is_multiple_of(2) { numbers[middle - 1] } else { numbers[middle] };
            *value = f64::midpoint(lower, numbers[middle]).into();
        }
        row
    };
    rows.iter().enumerate().filter(is_first).map(|(_, row)| median(row)).collect()
}

fn table(bench: &str, columns: &[Column], rows: &[Value]) -> String {
    let mut text = format!("\n{bench:<16}{:<22}", "");
    for (heading, ..) in columns {
        let _ = write!(text, "{heading:>14}");
    }
    text.push('\n');
    for row in rows {
        let name = |key: &str| row[key].as_str().unwrap_or_default();
        let _ = write!(text, "{:<16}{:<22}", name("testbed"), name("system"));
        match row["skipped"].as_str() {
            Some(reason) => text += &format!("    skipped: {}", reason.lines().next().unwrap_or_default()),
            None => columns.iter().for_each(|(_, key, digits)| text += &cell(&row[key], *digits)),
        }
        text.push('\n');
    }
    text
}

pub(super) fn cell(value: &Value, digits: usize) -> String {
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

    #[test]
    fn runs_of_a_system_are_one_row_of_medians() {
        let run =
            |system: &str, down: f64| json!({"bench": "peers", "testbed": "a", "system": system, "down_mbps": down});
        let skipped = json!({"bench": "peers", "testbed": "a", "system": "x", "skipped": "it crashed"});
        let rows = [run("x", 5.0), run("y", 7.0), skipped, run("y", 9.0), run("x", 1.0), run("x", 4.0)];
        let medians = medians(&rows.iter().collect::<Vec<_>>());
        assert_eq!(medians, [run("x", 4.0), run("y", 8.0)]);
    }
}
