//! `cargo xtask bench`: how much simulation a CPU second buys.
//!
//! Each workload is a scenario that the release build of `ropewalk` runs in a process of its own. Between them runs a
//! calibration loop that no change to Ropewalk can make faster: its speed says how fast the machine was at that moment,
//! and the ratio to it can be compared between machines and between a quiet and a busy hour.

use crate::measure::{Cost, measure};
use crate::shell;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;

/// Name and scenario of each workload.
const WORKLOADS: &[(&str, &str)] =
    &[("w1", "scenarios/bench/w1.toml"), ("w2", "scenarios/bench/w2.toml"), ("w3", "scenarios/bench/w3.toml")];

/// Minimum, median and maximum over the runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    min: f64,
    median: f64,
    max: f64,
}

#[derive(Debug)]
struct Options {
    runs: usize,
    json: bool,
}

/// Measures and prints.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    let options = parse_options(options)?;
    let release = shell::release_folder()?;
    let mut rows: Vec<Vec<Row>> = WORKLOADS.iter().map(|_| Vec::new()).collect();
    for _ in 0..options.runs {
        for ((name, scenario), rows) in WORKLOADS.iter().zip(&mut rows) {
            rows.push(one_run(&release, name, scenario)?);
        }
    }
    let results: Vec<_> = WORKLOADS.iter().zip(&rows).map(|((name, _), rows)| summary(name, rows)).collect();
    if options.json {
        return shell::print(&format!("{:#}\n", json!({ "runs": options.runs, "workloads": results })));
    }
    results.iter().try_for_each(|result| shell::print(&table(result)))
}

fn parse_options(arguments: &[&str]) -> Result<Options, String> {
    let mut options = Options { runs: 5, json: false };
    let mut arguments = arguments.iter();
    while let Some(word) = arguments.next() {
        match *word {
            "--json" => options.json = true,
            "--runs" => {
                let count = arguments.next().and_then(|count| count.parse().ok()).filter(|count| *count > 0);
                options.runs = count.ok_or("--runs needs a number above zero")?;
            }
            option => return Err(format!("bench has no option `{option}`")),
        }
    }
    Ok(options)
}

/// One run of one workload, with the calibration loop right before it.
#[derive(Debug)]
struct Row {
    hops_per_s: f64,
    delivered_per_s: f64,
    /// Data packet-hops in the CPU time of one step of the calibration loop.
    hops_per_step: f64,
    cpu_s: f64,
    peak_bytes: f64,
}

fn one_run(release: &Path, name: &str, scenario: &str) -> Result<Row, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let calibration = measure(&[&program.to_string_lossy(), "calibrate"])?;
    let steps_per_s = CALIBRATION_STEPS as f64 / calibration.cpu_s;
    // A stored run would be reused instead of simulated.
    let out = release.join("bench").join(name);
    let _ = std::fs::remove_dir_all(&out);
    let (ropewalk, out) = (release.join("ropewalk"), out.to_string_lossy().into_owned());
    let command = [&ropewalk.to_string_lossy(), "run", scenario, "--jobs", "1", "--json", "--quiet", "--out", &out];
    row(&measure(&command)?, steps_per_s)
}

fn row(cost: &Cost, steps_per_s: f64) -> Result<Row, String> {
    let result: Value = serde_json::from_str(&cost.stdout).map_err(|error| format!("ropewalk --json: {error}"))?;
    let runs = result["runs"].as_array().ok_or("ropewalk --json: no `runs`")?;
    let total = |key: &str| runs.iter().filter_map(|run| run["work"][key].as_f64()).sum::<f64>();
    let hops_per_s = total("data_packet_hops") / cost.cpu_s;
    Ok(Row {
        hops_per_s,
        delivered_per_s: total("delivered_data_packets") / cost.cpu_s,
        hops_per_step: hops_per_s / steps_per_s,
        cpu_s: cost.cpu_s,
        peak_bytes: cost.peak_bytes as f64,
    })
}

fn summary(name: &str, rows: &[Row]) -> Value {
    let spread_of = |value: fn(&Row) -> f64| {
        let spread = spread(rows.iter().map(value).collect());
        json!({"min": spread.min, "median": spread.median, "max": spread.max})
    };
    json!({
        "workload": name,
        "data_packet_hops_per_cpu_s": spread_of(|row| row.hops_per_s),
        "delivered_data_packets_per_cpu_s": spread_of(|row| row.delivered_per_s),
        "data_packet_hops_per_calibration_step": spread_of(|row| row.hops_per_step),
        "cpu_s": spread_of(|row| row.cpu_s),
        "peak_bytes": spread_of(|row| row.peak_bytes),
    })
}

fn table(result: &Value) -> String {
    let mut lines =
        format!("\n{}{:>44}{:>14}{:>14}\n", result["workload"].as_str().unwrap_or(""), "median", "min", "max");
    let rows = [
        ("data packet-hops per CPU second", "data_packet_hops_per_cpu_s", 1.0, 0),
        ("delivered data packets per CPU second", "delivered_data_packets_per_cpu_s", 1.0, 0),
        ("data packet-hops per calibration step", "data_packet_hops_per_calibration_step", 1.0, 4),
        ("CPU seconds", "cpu_s", 1.0, 3),
        ("peak memory, MiB", "peak_bytes", 1.0 / 1_048_576.0, 1),
    ];
    for (label, key, scale, digits) in rows {
        let [median, min, max] =
            ["median", "min", "max"].map(|statistic| result[key][statistic].as_f64().unwrap_or(f64::NAN) * scale);
        lines += &format!("  {label:<38}{median:>14.digits$}{min:>14.digits$}{max:>14.digits$}\n");
    }
    lines
}

/// The spread of `values`, of which there is at least one.
fn spread(mut values: Vec<f64>) -> Spread {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    Spread { min: values[0], median: (values[(n - 1) / 2] + values[n / 2]) / 2.0, max: values[n - 1] }
}

/// Steps of [`calibrate`].
const CALIBRATION_STEPS: u64 = 5_000_000;

/// A fixed amount of work of the simulator's kind: an event queue of 1024 entries, take one, put one back later.
/// Returns a checksum, so that the compiler keeps the loop.
pub(crate) fn calibrate() -> u64 {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut queue: BinaryHeap<_> = (0..1024).map(|id| Reverse((draw() >> 40, id))).collect();
    let mut checksum = 0_u64;
    for id in 0..CALIBRATION_STEPS {
        let Reverse((time, _)) = queue.pop().expect("one goes in for each that comes out");
        checksum = checksum.rotate_left(1) ^ time;
        queue.push(Reverse((time + (draw() >> 40), id)));
    }
    checksum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middle_two() {
        assert_eq!(spread(vec![4.0, 1.0, 3.0, 2.0]), Spread { min: 1.0, median: 2.5, max: 4.0 });
        assert_eq!(spread(vec![7.0]), Spread { min: 7.0, median: 7.0, max: 7.0 });
    }

    #[test]
    fn work_is_summed_over_runs_and_divided_by_cpu_time() {
        let run = r#"{"work":{"data_packet_hops":600,"delivered_data_packets":200}}"#;
        let cost = Cost { cpu_s: 2.0, peak_bytes: 1, stdout: format!(r#"{{"runs":[{run},{run}]}}"#) };
        let row = row(&cost, 300.0).unwrap();
        assert_eq!((row.hops_per_s, row.delivered_per_s, row.hops_per_step), (600.0, 200.0, 2.0));
    }

    #[test]
    fn options_are_checked() {
        assert_eq!(parse_options(&["--runs", "3", "--json"]).unwrap().runs, 3);
        assert!(parse_options(&["--runs", "0"]).is_err());
        assert!(parse_options(&["--fast"]).is_err());
    }
}
