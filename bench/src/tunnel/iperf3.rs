//! One iperf3 TCP stream from the client to the server.

use super::cpu_accounting::{Cost, CpuAccounting};
use super::running::RunningSystem;
use super::testbed::{CLIENT, SERVER, Testbed};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;

/// One iperf3 transfer.
#[derive(Debug)]
pub(super) struct BulkTransfer {
    /// Goodput after the warm-up, Gbit/s.
    pub(super) gbps: f64,
    retransmits: u64,
    /// Gigabytes received, warm-up included.
    gigabytes: f64,
    cost: Cost,
}

impl BulkTransfer {
    /// Runs for `seconds` after a warm-up; CPU time and bytes include the warm-up.
    pub(super) fn run(
        testbed: &Testbed,
        accounting: &CpuAccounting,
        running: &RunningSystem,
        seconds: u32,
        warm_up: u32,
    ) -> Result<Self, String> {
        let wrapper = running.wrapper;
        let mut server = accounting.in_group(&testbed.command(SERVER, &format!("{wrapper} iperf3 --server --one-off")));
        let mut server = server.stdout(Stdio::null()).spawn().map_err(|error| format!("iperf3: {error}"))?;
        std::thread::sleep(Duration::from_millis(300));
        let line = format!(
            "{wrapper} iperf3 --client {} --congestion cubic --time {seconds} --omit {warm_up} --json",
            running.target
        );
        let measurement = accounting.start();
        let output = accounting
            .in_group(&testbed.command(CLIENT, &line))
            .output()
            .map_err(|error| format!("iperf3: {error}"))?;
        let cost = measurement.stop();
        // A client that never reached its server leaves it waiting.
        let _ = server.kill();
        let _ = server.wait();
        let report: Value =
            serde_json::from_slice(&output.stdout).map_err(|_| "iperf3 printed no report".to_owned())?;
        if let Some(message) = report["error"].as_str() {
            return Err(format!("iperf3: {message}"));
        }
        let sum = &report["end"]["sum_received"];
        let gbps = sum["bits_per_second"].as_f64().unwrap_or_default() / 1e9;
        let retransmits = report["end"]["sum_sent"]["retransmits"].as_u64().unwrap_or_default();
        let intervals = report["intervals"].as_array().map_or(&[][..], Vec::as_slice);
        let bytes: f64 = intervals.iter().filter_map(|interval| interval["sum"]["bytes"].as_f64()).sum();
        Ok(Self { gbps, retransmits, gigabytes: bytes / 1e9, cost })
    }

    pub(super) fn as_row(&self) -> Value {
        json!({
            "gbps": self.gbps,
            "cpu_s_per_gb": self.cost.group_s / self.gigabytes,
            "retransmits": self.retransmits,
            "cores": self.cost.cores(),
            "other_cores": self.cost.other_cores(),
        })
    }
}
