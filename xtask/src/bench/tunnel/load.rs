//! One iperf3 TCP stream from left to right.

use super::account::{Account, Cost};
use super::bed::{Bed, LEFT, RIGHT};
use super::subject::Carrier;
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::Duration;

/// What the stream did.
#[derive(Debug)]
pub(super) struct Load {
    /// Received, after the warm-up.
    pub(super) gbps: f64,
    retransmits: u64,
    /// Gigabytes received, warm-up included.
    gigabytes: f64,
    cost: Cost,
}

impl Load {
    /// Runs for `seconds` after a warm-up; all of it is paid for, all of it is counted.
    pub(super) fn run(
        bed: &Bed,
        account: &Account,
        carrier: &Carrier,
        seconds: u32,
        warm_up: u32,
    ) -> Result<Self, String> {
        let wrap = carrier.wrapper;
        let mut server = account.charge(&bed.command(RIGHT, &format!("{wrap} iperf3 --server --one-off")));
        let mut server = server.stdout(Stdio::null()).spawn().map_err(|why| format!("iperf3: {why}"))?;
        std::thread::sleep(Duration::from_millis(300));
        let line = format!(
            "{wrap} iperf3 --client {} --congestion cubic --time {seconds} --omit {warm_up} --json",
            carrier.target
        );
        let running = account.start();
        let output = account.charge(&bed.command(LEFT, &line)).output().map_err(|why| format!("iperf3: {why}"))?;
        let cost = running.stop();
        // A client that never reached its server leaves it waiting.
        let _ = server.kill();
        let _ = server.wait();
        let said: Value = serde_json::from_slice(&output.stdout).map_err(|_| "iperf3 said nothing".to_owned())?;
        if let Some(why) = said["error"].as_str() {
            return Err(format!("iperf3: {why}"));
        }
        let sum = &said["end"]["sum_received"];
        let gbps = sum["bits_per_second"].as_f64().unwrap_or_default() / 1e9;
        let retransmits = said["end"]["sum_sent"]["retransmits"].as_u64().unwrap_or_default();
        let intervals = said["intervals"].as_array().map_or(&[][..], Vec::as_slice);
        let bytes: f64 = intervals.iter().filter_map(|interval| interval["sum"]["bytes"].as_f64()).sum();
        Ok(Self { gbps, retransmits, gigabytes: bytes / 1e9, cost })
    }

    pub(super) fn as_row(&self) -> Value {
        json!({
            "gbps": self.gbps,
            "cpu_s_per_gb": self.cost.ours_s / self.gigabytes,
            "retransmits": self.retransmits,
            "cores": self.cost.cores(),
            "foreign_cores": self.cost.foreign_cores(),
        })
    }
}
