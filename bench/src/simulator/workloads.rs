//! The workloads, the programs that simulate them, and the cost of one run.

use crate::measure::measure;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A workload: a scenario, and the changes to it.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) name: &'static str,
    pub(super) scenario: &'static str,
    pub(super) settings: &'static [&'static str],
    /// Number of flows, if there are many: memory is divided by it.
    pub(super) flows: Option<u32>,
}

/// All workloads. Other simulators have programs for the first two.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload { name: "w1", scenario: "w1", settings: &[], flows: None },
    Workload { name: "w2", scenario: "w2", settings: &[], flows: None },
    Workload { name: "w3", scenario: "w3", settings: &[], flows: None },
    Workload { name: "tunnel", scenario: "tunnel", settings: &[], flows: None },
    Workload { name: "flows-100", scenario: "flows", settings: &["flow.tcp.count=100"], flows: Some(100) },
    Workload { name: "flows-1000", scenario: "flows", settings: &["flow.tcp.count=1000"], flows: Some(1000) },
    Workload { name: "flows-10000", scenario: "flows", settings: &["flow.tcp.count=10000"], flows: Some(10_000) },
];

impl Workload {
    /// Whether the programs of other simulators have it.
    pub(super) fn is_common(&self) -> bool {
        matches!(self.name, "w1" | "w2")
    }
}

/// A program that simulates workloads.
#[derive(Clone, Debug)]
pub(super) struct System {
    pub(super) name: String,
    pub(super) program: PathBuf,
    /// Ropewalk; or else a program that takes the name of a workload, and whose last line is a JSON object with
    /// `delivered_data_packets`.
    pub(super) is_ropewalk: bool,
}

/// The cost of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    /// Data packets that arrived.
    pub(super) delivered: f64,
    /// Data packets times the links that they crossed; zero if it is not known.
    pub(super) hops: f64,
    /// CPU seconds.
    pub(super) cpu_s: f64,
    /// Maximum resident set, bytes.
    pub(super) peak_bytes: f64,
}

impl System {
    /// Runs a workload once, in a process of its own.
    pub(super) fn run(&self, workload: &Workload, folder: &Path) -> Result<Row, String> {
        let program = self.program.to_string_lossy();
        if !self.is_ropewalk {
            let cost = measure(&[&program, workload.name])?;
            let count = cost.stdout.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
            let delivered = count.as_ref().and_then(|count| count["delivered_data_packets"].as_f64());
            let delivered = delivered
                .ok_or_else(|| format!("`{program} {}` printed no `delivered_data_packets`", workload.name))?;
            return Ok(Row { delivered, hops: 0.0, cpu_s: cost.cpu_s, peak_bytes: cost.peak_bytes as f64 });
        }
        // A stored run would be reused instead of simulated.
        let out = folder.join("bench").join(workload.name);
        let _ = std::fs::remove_dir_all(&out);
        let (scenario, out) = (format!("scenarios/bench/{}.toml", workload.scenario), out.to_string_lossy());
        let mut command = vec![&*program, "run", &scenario, "--jobs", "1", "--json", "--quiet", "--out", &out];
        workload.settings.iter().for_each(|setting| command.extend(["--set", setting]));
        let cost = measure(&command)?;
        let result = serde_json::from_str(&cost.stdout).map_err(|error| format!("{program} --json: {error}"))?;
        Ok(Row {
            delivered: total(&result, "delivered_data_packets")?,
            hops: total(&result, "data_packet_hops")?,
            cpu_s: cost.cpu_s,
            peak_bytes: cost.peak_bytes as f64,
        })
    }
}

/// The sum of a count of work over all runs.
fn total(result: &Value, key: &str) -> Result<f64, String> {
    let runs = result["runs"].as_array().ok_or("ropewalk --json: no `runs`")?;
    Ok(runs.iter().filter_map(|run| run["work"][key].as_f64()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_summed_over_runs() {
        let result =
            serde_json::json!({"runs": [{"work": {"data_packet_hops": 600}}, {"work": {"data_packet_hops": 6}}]});
        assert_eq!(total(&result, "data_packet_hops"), Ok(606.0));
        assert!(total(&Value::Null, "data_packet_hops").is_err());
    }
}
