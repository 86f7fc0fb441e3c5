//! One iperf3 TCP stream from the client to the server.

use super::cpu_accounting::{Cost, CpuAccounting};
use super::running::RunningSystem;
use super::testbed::{CLIENT, SERVER, Testbed};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;

/// Seconds between two counts of bytes.
const INTERVAL_S: f64 = 0.1;

/// The sending end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The client.
    Up,
    /// The server.
    Down,
}

/// One iperf3 transfer.
#[derive(Debug)]
pub(super) struct BulkTransfer {
    /// Goodput after the warm-up, Gbit/s.
    pub(super) gbps: f64,
    retransmits: u64,
    /// Gigabytes received, warm-up included.
    pub(super) gigabytes: f64,
    /// Longest time without a byte, in steps of [`INTERVAL_S`].
    pub(super) longest_gap_ms: f64,
    cost: Cost,
}

impl BulkTransfer {
    /// Runs for `seconds` after a warm-up, from the client to the server; CPU time and bytes include the warm-up.
    pub(super) fn run(
        testbed: &Testbed,
        accounting: &CpuAccounting,
        running: &RunningSystem,
        seconds: u32,
        warm_up: u32,
    ) -> Result<Self, String> {
        Self::run_in(Direction::Up, testbed, accounting, running, seconds, warm_up)
    }

    /// As [`BulkTransfer::run`], in a direction.
    pub(super) fn run_in(
        direction: Direction,
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
            "{wrapper} iperf3 --client {} --congestion cubic --time {seconds} --omit {warm_up} --interval {INTERVAL_S} --json{}",
            running.target,
            if direction == Direction::Down { " --reverse" } else { "" }
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
        let silent = |interval: &&Value| interval["sum"]["bytes"].as_f64() == Some(0.0);
        let longest = intervals.chunk_by(|a, b| silent(&a) == silent(&b)).filter(|run| run.iter().all(|i| silent(&i)));
        let longest_gap_ms = longest.map(<[Value]>::len).max().unwrap_or_default() as f64 * INTERVAL_S * 1e3;
        Ok(Self { gbps, retransmits, gigabytes: bytes / 1e9, longest_gap_ms, cost })
    }

    /// CPU seconds per gigabyte of all processes except the emulated links.
    pub(super) fn cpu_s_per_gb(&self) -> f64 {
        self.cost.group_s / self.gigabytes
    }

    /// Cores that everything else kept busy.
    pub(super) fn other_cores(&self) -> f64 {
        self.cost.other_cores()
    }

    pub(super) fn as_row(&self) -> Value {
        json!({
            "gbps": self.gbps,
            "cpu_s_per_gb": self.cpu_s_per_gb(),
            "retransmits": self.retransmits,
            "cores": self.cost.cores(),
            "other_cores": self.other_cores(),
        })
    }
}
