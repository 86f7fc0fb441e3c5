//! Observables: the numbers of a measurement in which a simulated measurement must agree with it.

use measured::{BulkCall, IdleRtt, MeasuredPath, Parallel, Summary, TcpFlow, UdpStream};
use serde::Serialize;
use std::collections::BTreeMap;

/// The most by which one observable counts, as a natural logarithm.
pub(crate) const MAX_ERROR: f64 = 1.5;

/// An observable's name, such as `tcp.bbr.down.goodput`, and the smallest difference in its value that counts.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub(crate) struct Kind {
    /// Its unit.
    unit: &'static str,
    /// What is added to both values before their ratio is taken.
    floor: f64,
}

/// The values of the observables of a path, one per repetition.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Observables(BTreeMap<String, (Kind, Vec<f64>)>);

const MBPS: Kind = Kind { unit: "Mbit/s", floor: 0.1 };
const RTT: Kind = Kind { unit: "ms", floor: 1.0 };
const TAIL: Kind = Kind { unit: "ms", floor: 2.0 };
const VARIATION: Kind = Kind { unit: "ms", floor: 0.5 };
const PERCENT: Kind = Kind { unit: "%", floor: 0.1 };

impl Observables {
    /// The observables of a path's measurement.
    pub(crate) fn of(path: &MeasuredPath) -> Self {
        let mut all = Self::default();
        path.idle_rtt.iter().for_each(|idle| all.idle(idle));
        path.udp.iter().for_each(|stream| all.udp(stream));
        path.tcp.iter().for_each(|flow| all.tcp(flow));
        path.parallel.iter().for_each(|parallel| all.parallel(parallel));
        path.calls.iter().for_each(|call| all.call(call));
        all
    }

    fn add(&mut self, name: String, kind: &Kind, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.0.entry(name).or_insert_with(|| (kind.clone(), Vec::new())).1.push(value);
        }
    }

    fn idle(&mut self, idle: &IdleRtt) {
        let own = Summary::of(idle.samples.iter().map(|sample| sample.rtt_ms));
        let Some(rtt) = own.or(idle.rtt_ms) else { return };
        self.add("idle.rtt min".to_owned(), &RTT, rtt.min);
        self.add("idle.rtt median".to_owned(), &RTT, rtt.p50.or(rtt.mean));
        self.add("idle.rtt p95".to_owned(), &TAIL, rtt.p95);
    }

    fn udp(&mut self, stream: &UdpStream) {
        let name = |what: &str| format!("udp.{}.{what}", stream.direction.name());
        let share = |lost: u64, sent: u64| 100.0 * lost as f64 / sent.max(1) as f64;
        self.add(name("loss"), &PERCENT, stream.lost.zip(stream.sent).map(|(lost, sent)| share(lost, sent)));
        let variation = stream.delay_variation_ms.unwrap_or_default();
        self.add(name("delay above min, mean"), &VARIATION, variation.mean);
        self.add(name("delay above min, p95"), &VARIATION, variation.p95);
    }

    /// What fills the queue: what comes through, and how long it waits.
    fn parallel(&mut self, parallel: &Parallel) {
        let flow = &parallel.flow;
        let name = |what: &str| {
            format!("parallel.{}.{}.{what}", flow.congestion.as_deref().unwrap_or("cubic"), flow.direction.name())
        };
        self.add(name("goodput"), &MBPS, flow.goodput_mbps);
        let own = Summary::of(flow.rtt_samples.iter().map(|sample| sample.rtt_ms));
        let rtt = own.or(flow.rtt_ms).unwrap_or_default();
        self.add(name("rtt mean"), &TAIL, rtt.mean);
        self.add(name("rtt p95"), &TAIL, rtt.p95);
    }

    fn tcp(&mut self, flow: &TcpFlow) {
        let name = |what: &str| {
            format!("tcp.{}.{}.{what}", flow.congestion.as_deref().unwrap_or("cubic"), flow.direction.name())
        };
        self.add(name("goodput"), &MBPS, flow.goodput_mbps);
        let rates = Summary::of(flow.goodput_intervals_mbps.iter().copied()).filter(|rates| rates.count >= Some(4));
        let rates = rates.unwrap_or_default();
        self.add(name("goodput max"), &MBPS, rates.max);
        self.add(name("goodput median"), &MBPS, rates.p50);
        let own = Summary::of(flow.rtt_samples.iter().map(|sample| sample.rtt_ms));
        let rtt = own.or(flow.rtt_ms).unwrap_or_default();
        self.add(name("rtt mean"), &TAIL, rtt.mean);
        self.add(name("rtt p95"), &TAIL, rtt.p95);
        let share = flow.retransmitted_segments.zip(flow.sent_segments.filter(|sent| *sent > 0));
        self.add(name("retransmitted"), &PERCENT, share.map(|(again, sent)| 100.0 * again as f64 / sent as f64));
    }

    fn call(&mut self, call: &BulkCall) {
        let name = |what: &str| {
            format!("call.{}.{}.{what}", call.congestion.as_deref().unwrap_or("cubic"), call.direction.name())
        };
        let own = Summary::of(call.rtt_samples.iter().map(|sample| sample.rtt_ms));
        let rtt = own.or(call.rtt_ms).unwrap_or_default();
        self.add(name("rtt median"), &TAIL, rtt.p50);
        self.add(name("rtt p99"), &TAIL, rtt.p99);
        self.add(name("goodput"), &MBPS, call.goodput_mbps);
    }

    /// The names of the observables.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The number of values of the observable that has most.
    pub(crate) fn repeats(&self) -> usize {
        self.0.values().map(|(_, values)| values.len()).max().unwrap_or(0)
    }

    /// The mean of an observable, if it was measured.
    pub(crate) fn mean(&self, name: &str) -> Option<f64> {
        self.0.get(name).map(|(_, values)| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The unit of an observable.
    pub(crate) fn unit(&self, name: &str) -> &'static str {
        self.0.get(name).map_or("", |(kind, _)| kind.unit)
    }

    /// The mean of each observable as a logarithm above its floor.
    pub(crate) fn logs(&self) -> Logs {
        let log = |(kind, values): &(Kind, Vec<f64>)| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            libm::log(mean.max(0.0) + kind.floor)
        };
        Logs(self.0.iter().map(|(name, entry)| (name.clone(), log(entry))).collect())
    }

    /// The variance of one value of each observable, as a logarithm, and its degrees of freedom.
    pub(crate) fn variances(&self) -> BTreeMap<String, (f64, f64)> {
        let variance = |(kind, values): &(Kind, Vec<f64>)| {
            let logs: Vec<f64> = values.iter().map(|value| libm::log(value.max(0.0) + kind.floor)).collect();
            let mean = logs.iter().sum::<f64>() / logs.len() as f64;
            let freedom = logs.len() as f64 - 1.0;
            (logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / freedom.max(1.0), freedom)
        };
        self.0.iter().map(|(name, entry)| (name.clone(), variance(entry))).collect()
    }
}

/// The logarithm of each observable.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Logs(pub(crate) BTreeMap<String, f64>);

/// The weight of each observable in a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Weights(pub(crate) BTreeMap<String, f64>);

impl Logs {
    /// The weighted root mean square of the differences; infinite if nothing is in both.
    pub(crate) fn cost(&self, target: &Self, weights: &Weights) -> f64 {
        let (mut sum, mut total) = (0.0, 0.0);
        for (name, weight) in &weights.0 {
            if let Some(target) = target.0.get(name) {
                // What the simulation lacks, such as an RTT of a flow that has none, counts as the greatest error.
                let error = self.0.get(name).map_or(MAX_ERROR, |value| (value - target).clamp(-MAX_ERROR, MAX_ERROR));
                sum += weight * error * error;
                total += weight;
            }
        }
        if total > 0.0 { (sum / total).sqrt() } else { f64::INFINITY }
    }
}

/// How far two sets of observables are apart: the root mean square of the logarithms of their ratios, 0.1 for 10 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, serde::Deserialize)]
pub struct Distance {
    /// Of the observables that were fitted.
    pub fitted: f64,
    /// Of those that were held out; none if there are none.
    pub held_out: Option<f64>,
}

/// Whether an observable is held out: whether its name begins with one of `patterns`, in which `*` stands for a part.
pub(crate) fn is_held(name: &str, patterns: &[String]) -> bool {
    patterns.iter().any(|pattern| {
        let (mut pattern, mut name) = (pattern.split('.'), name.split('.'));
        pattern.all(|part| name.next().is_some_and(|found| part == "*" || part == found))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_holds_out_what_begins_with_its_parts() {
        let held = |pattern: &str| is_held("tcp.bbr.down.rtt p95", &[pattern.to_owned()]);
        assert!(held("tcp.bbr") && held("*.*.*.rtt p95") && held("tcp"));
        assert!(!held("tcp.cubic") && !held("bbr") && !held("tcp.bbr.down.rtt p95.more"));
    }

    #[test]
    fn the_cost_is_the_weighted_root_mean_square_of_log_ratios() {
        let logs = |a: f64, b: f64| Logs([("a".to_owned(), a), ("b".to_owned(), b)].into());
        let weights = Weights([("a".to_owned(), 3.0), ("b".to_owned(), 1.0)].into());
        assert_eq!(logs(0.1, 0.3).cost(&logs(0.0, 0.0), &weights), ((3.0 * 0.01 + 0.09) / 4.0_f64).sqrt());
        assert_eq!(logs(9.0, 0.0).cost(&logs(0.0, 0.0), &weights), (3.0 * MAX_ERROR * MAX_ERROR / 4.0_f64).sqrt());
    }
}
