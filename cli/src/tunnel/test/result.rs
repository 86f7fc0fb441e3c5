//! The results of a test, and its verdict.

use super::measure::Rtt;
use serde::Serialize;
use std::net::IpAddr;

/// The rate of one path alone, or of all together, in one direction.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measurement {
    /// The path; `None`: all together.
    pub(super) path: Option<String>,
    /// Whether it is a backup, which carries nothing while the others work.
    pub(super) backup: bool,
    pub(super) direction: &'static str,
    /// Its place in the random order of measurements, from 1.
    pub(super) order: usize,
    /// TCP's payload, bit/s.
    pub(super) rate_bps: f64,
    pub(super) rtt: Rtt,
}

/// The whole test.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TestResult {
    version: u32,
    pub(super) interface: String,
    pub(super) address: IpAddr,
    pub(super) seconds: u64,
    pub(super) idle_rtt: Rtt,
    pub(super) measurements: Vec<Measurement>,
    pub(super) verdict: String,
}

impl TestResult {
    pub(super) fn new(name: &str, address: IpAddr, seconds: u64, idle: Rtt, measurements: Vec<Measurement>) -> Self {
        let verdict = verdict(&idle, &measurements);
        Self { version: 1, interface: name.to_owned(), address, seconds, idle_rtt: idle, measurements, verdict }
    }

    /// The sum of the rates of the single paths without backups, bit/s; `None` if fewer than two were measured.
    pub(super) fn sum_bps(measurements: &[Measurement], direction: &str) -> Option<f64> {
        let alone = measurements.iter().filter(|found| found.direction == direction && found.path.is_some());
        let alone = alone.filter(|found| !found.backup);
        (alone.clone().count() > 1).then(|| alone.map(|found| found.rate_bps).sum())
    }
}

/// A rate in Mbit/s, with one decimal if it is small.
pub(super) fn mbit(bps: f64) -> String {
    let mbit = bps / 1e6;
    if mbit < 10.0 { format!("{mbit:.1}") } else { format!("{mbit:.0}") }
}

fn verdict(idle: &Rtt, measurements: &[Measurement]) -> String {
    let together = measurements.iter().filter(|found| found.path.is_none());
    let rates = together.clone().map(|found| {
        let rate = mbit(found.rate_bps);
        match TestResult::sum_bps(measurements, found.direction) {
            Some(sum) => {
                let share = found.rate_bps / sum * 100.0;
                format!("{}: bonded {rate} of {} Mbit/s ({share:.0} % of the sum)", found.direction, mbit(sum))
            }
            None => format!("{}: {rate} Mbit/s", found.direction),
        }
    });
    let mut backups: Vec<&str> =
        measurements.iter().filter(|found| found.backup).filter_map(|found| found.path.as_deref()).collect();
    backups.dedup();
    let loaded = together.clone().map(|found| found.rtt.median_ms).fold(0.0, f64::max);
    let mut parts: Vec<String> = rates.collect();
    parts.push(format!("RTT {:.0} ms, under load {:+.0} ms", idle.median_ms, loaded - idle.median_ms));
    if !backups.is_empty() {
        parts.push(format!("not in the sum, as a backup: {}", backups.join(", ")));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_compares_all_together_with_the_sum_of_the_paths() {
        let rtt = |median_ms| Rtt { median_ms, p95_ms: median_ms, answered: 1, lost: 0 };
        let found = |path: Option<&str>, direction, mbit: f64, median_ms| Measurement {
            path: path.map(str::to_owned),
            backup: false,
            direction,
            order: 1,
            rate_bps: mbit * 1e6,
            rtt: rtt(median_ms),
        };
        let mut measurements = vec![
            found(Some("fibre"), "down", 60.0, 30.0),
            found(Some("lte"), "down", 40.0, 90.0),
            found(None, "down", 92.0, 34.0),
        ];
        let text = verdict(&rtt(20.0), &measurements);
        assert_eq!(text, "down: bonded 92 of 100 Mbit/s (92 % of the sum); RTT 20 ms, under load +14 ms");
        measurements.insert(0, Measurement { backup: true, ..found(Some("wwan0"), "down", 20.0, 90.0) });
        let text = verdict(&rtt(20.0), &measurements);
        assert!(text.starts_with("down: bonded 92 of 100 Mbit/s (92 % of the sum);"), "{text}");
        assert!(text.ends_with("; not in the sum, as a backup: wwan0"), "{text}");
        measurements.drain(..2);
        assert_eq!(verdict(&rtt(20.0), &measurements), "down: 92 Mbit/s; RTT 20 ms, under load +14 ms");
    }
}
