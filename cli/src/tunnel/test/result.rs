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
    /// Without load, just before, of a path alone; once per path.
    pub(super) idle_rtt: Option<Rtt>,
    /// TCP's payload, bit/s.
    pub(super) rate_bps: f64,
    pub(super) rtt: Rtt,
    /// What the path alone has sent, in the direction of this end's data.
    pub(super) packets: Option<Packets>,
}

/// The packets of a path.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Packets {
    pub(super) sent: u64,
    pub(super) lost: u64,
}

impl Packets {
    /// Those since an earlier count.
    pub(super) fn since(self, earlier: Self) -> Self {
        Self { sent: self.sent.saturating_sub(earlier.sent), lost: self.lost.saturating_sub(earlier.lost) }
    }
}

/// Other traffic in the tunnel, bit/s, in each direction as this end sees it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct OtherTraffic {
    pub(super) down_bps: f64,
    pub(super) up_bps: f64,
}

/// One end of the test.
#[derive(Clone, Debug, Serialize)]
pub(super) struct End {
    /// The host's name, if it is known.
    pub(super) host: Option<String>,
    /// The daemon's version, if it is known.
    pub(super) version: Option<String>,
    /// The inner address.
    pub(super) address: String,
}

/// The whole test.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TestResult {
    pub(super) version: u32,
    /// When it began, milliseconds since the Unix epoch.
    pub(super) unix_ms: u64,
    pub(super) interface: String,
    pub(super) address: IpAddr,
    pub(super) ends: [End; 2],
    pub(super) seconds: u64,
    /// The congestion control of the paths, if it is known.
    pub(super) congestion: Option<String>,
    pub(super) idle_rtt: Rtt,
    pub(super) other_traffic: OtherTraffic,
    pub(super) measurements: Vec<Measurement>,
    pub(super) verdict: String,
}

/// Other traffic below this rate, bit/s, does not matter.
const LEAST_TRAFFIC: f64 = 200e3;
/// The share of the sum from which it needs an explanation.
const GREATEST_SHARE: f64 = 1.05;

impl OtherTraffic {
    fn of(&self, direction: &str) -> f64 {
        if direction == "down" { self.down_bps } else { self.up_bps }
    }

    /// The greater rates of two.
    pub(super) fn max(self, other: Self) -> Self {
        Self { down_bps: self.down_bps.max(other.down_bps), up_bps: self.up_bps.max(other.up_bps) }
    }
}

impl TestResult {
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

/// `12.3 ms`, or that nothing was answered.
pub(super) fn milliseconds(ms: Option<f64>) -> String {
    ms.map_or_else(|| "unknown, no answer".into(), |ms| format!("{ms:.1} ms"))
}

/// The results in a sentence.
pub(super) fn verdict(idle: &Rtt, other: &OtherTraffic, measurements: &[Measurement]) -> String {
    let together = measurements.iter().filter(|found| found.path.is_none());
    let rates = together.clone().map(|found| {
        let (rate, traffic) = (mbit(found.rate_bps), other.of(found.direction));
        let sum = TestResult::sum_bps(measurements, found.direction);
        let direction = found.direction;
        match sum.map(|sum| (sum, found.rate_bps / sum)) {
            Some((sum, _)) if traffic > LEAST_TRAFFIC => {
                let (sum, traffic) = (mbit(sum), mbit(traffic));
                format!("{direction}: bonded {rate} Mbit/s, the paths alone {sum}: not comparable, {traffic} Mbit/s of other traffic")
            }
            Some((sum, share)) if share > GREATEST_SHARE => {
                let sum = mbit(sum);
                format!("{direction}: bonded {rate} Mbit/s, the paths alone {sum}: not comparable, a path was slower alone; repeat the test")
            }
            Some((sum, share)) => {
                let share = share.min(1.0) * 100.0;
                format!("{direction}: bonded {rate} of {} Mbit/s ({share:.0} % of the sum)", mbit(sum))
            }
            None if traffic > LEAST_TRAFFIC => {
                format!("{direction}: {rate} Mbit/s next to {} Mbit/s of other traffic", mbit(traffic))
            }
            None => format!("{direction}: {rate} Mbit/s"),
        }
    });
    let mut backups: Vec<&str> =
        measurements.iter().filter(|found| found.backup).filter_map(|found| found.path.as_deref()).collect();
    backups.dedup();
    let loaded = together.clone().filter_map(|found| found.rtt.median_ms).reduce(f64::max);
    let mut parts: Vec<String> = rates.collect();
    parts.push(match (idle.median_ms, loaded) {
        (Some(idle), Some(loaded)) => format!("RTT {idle:.0} ms, under load {:+.0} ms", (loaded - idle).max(0.0)),
        (Some(idle), None) => format!("RTT {idle:.0} ms, under load no answer"),
        (None, _) => "RTT: no answer".into(),
    });
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
        let rtt =
            |median_ms| Rtt { min_ms: None, median_ms: Some(median_ms), p95_ms: Some(median_ms), answered: 1, lost: 0 };
        let quiet = OtherTraffic::default();
        let found = |path: Option<&str>, direction, mbit: f64, median_ms| Measurement {
            path: path.map(str::to_owned),
            backup: false,
            direction,
            order: 1,
            idle_rtt: None,
            rate_bps: mbit * 1e6,
            rtt: rtt(median_ms),
            packets: None,
        };
        let mut measurements = vec![
            found(Some("fibre"), "down", 60.0, 30.0),
            found(Some("lte"), "down", 40.0, 90.0),
            found(None, "down", 92.0, 34.0),
        ];
        let text = verdict(&rtt(20.0), &quiet, &measurements);
        assert_eq!(text, "down: bonded 92 of 100 Mbit/s (92 % of the sum); RTT 20 ms, under load +14 ms");
        measurements.insert(0, Measurement { backup: true, ..found(Some("wwan0"), "down", 20.0, 90.0) });
        let text = verdict(&rtt(20.0), &quiet, &measurements);
        assert!(text.starts_with("down: bonded 92 of 100 Mbit/s (92 % of the sum);"), "{text}");
        assert!(text.ends_with("; not in the sum, as a backup: wwan0"), "{text}");
        measurements.drain(..2);
        assert_eq!(verdict(&rtt(20.0), &quiet, &measurements), "down: 92 Mbit/s; RTT 20 ms, under load +14 ms");
    }

    #[test]
    fn a_share_above_one_is_explained_and_no_latency_is_gained_by_load() {
        let rtt = |median_ms| Rtt { min_ms: None, median_ms, p95_ms: median_ms, answered: 1, lost: 0 };
        let found = |path: Option<&str>, mbit: f64| Measurement {
            path: path.map(str::to_owned),
            backup: false,
            direction: "down",
            order: 1,
            idle_rtt: None,
            rate_bps: mbit * 1e6,
            rtt: rtt(Some(19.0)),
            packets: None,
        };
        let measurements = [found(Some("fibre"), 9.0), found(Some("lte"), 6.0), found(None, 18.0)];
        let text = |other, idle| verdict(&rtt(idle), &other, &measurements);
        let traffic = OtherTraffic { down_bps: 2.3e6, up_bps: 0.0 };
        assert_eq!(
            text(traffic, Some(20.0)),
            "down: bonded 18 Mbit/s, the paths alone 15: not comparable, 2.3 Mbit/s of other traffic; RTT 20 ms, under \
             load +0 ms"
        );
        let quiet = text(OtherTraffic::default(), None);
        assert_eq!(
            quiet,
            "down: bonded 18 Mbit/s, the paths alone 15: not comparable, a path was slower alone; repeat the test; RTT: \
             no answer"
        );
    }
}
