//! The results of a run that are kept.

use crate::World;
use crate::driver::{TEST, is_of};
use record::{Flow, Run, Summary, Video};
use serde::{Deserialize, Serialize};

/// One algorithm in one world.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The world's seed.
    pub seed: u64,
    /// The run's digest.
    pub digest: String,
    /// Packets times links: the work of the run.
    pub packet_hops: u64,
    /// The flows under test, together.
    pub test: Group,
    /// The round-trip times on each of their paths.
    pub rtt: Vec<Rtt>,
    /// The groups of competitors, in the world's order.
    pub rivals: Vec<Group>,
}

/// Identical flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The mean of their rates while they were active, Mbit/s.
    pub rate_mbps: f64,
    /// The least of these rates, Mbit/s.
    pub least_mbps: f64,
    /// Payload delivered by all of them, bytes.
    pub bytes: u64,
    /// Data packets that all of them sent.
    pub sent_packets: u64,
    /// Data packets that were dropped or lost.
    pub dropped_packets: u64,
    /// Requests that were answered in full.
    pub requests: u64,
    /// The mean time to an answer, ms.
    pub response_ms: f64,
    /// UDP: the 95th percentile of the delay, ms.
    pub delay_ms: f64,
    /// Video: the rate of the frames played in time, Mbit/s.
    pub video_mbps: f64,
}

/// Round-trip times over a path: means over the flows under test, ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rtt {
    /// The minimum of all flows.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
}

impl Outcome {
    /// The results of a run in a world.
    #[must_use]
    pub fn of(world: &World, run: &Run) -> Self {
        let flows = |name: &str| run.flows.iter().filter(|flow| is_of(&flow.name, name)).collect::<Vec<_>>();
        let rtt = match run.subflows.is_empty() {
            true => vec![Rtt::of(flows(TEST).iter().map(|flow| flow.rtt_ms))],
            false => world.paths.iter().map(|path| Rtt::of(subflows(run, path))).collect(),
        };
        Self {
            seed: world.seed,
            digest: run.digest.clone(),
            packet_hops: run.work.packet_hops,
            test: Group::of(&flows(TEST), run.duration_s),
            rtt,
            rivals: world.rivals.iter().map(|rival| Group::of(&flows(&rival.name), run.duration_s)).collect(),
        }
    }
}

fn subflows<'a>(run: &'a Run, path: &'a str) -> impl Iterator<Item = Summary> + 'a {
    run.subflows.iter().filter(move |subflow| subflow.path == path).map(|subflow| subflow.rtt_ms)
}

impl Rtt {
    fn of(summaries: impl Iterator<Item = Summary>) -> Self {
        let measured: Vec<Summary> = summaries.filter(|summary| summary.max > 0.0).collect();
        let mean = |value: fn(&Summary) -> f64| mean(measured.iter().map(value));
        let min = measured.iter().map(|summary| summary.min).fold(f64::INFINITY, f64::min);
        let min = if min.is_finite() { min } else { 0.0 };
        Self { min, p50: mean(|summary| summary.p50), p95: mean(|summary| summary.p95) }
    }
}

impl Group {
    fn of(flows: &[&Flow], duration_s: f64) -> Self {
        let rates = || flows.iter().map(|flow| rate(flow));
        let least = rates().fold(f64::INFINITY, f64::min);
        let requests = || flows.iter().filter_map(|flow| flow.requests).filter(|requests| requests.requests > 0);
        let sum = |value: fn(&Flow) -> u64| flows.iter().map(|flow| value(flow)).sum();
        Self {
            rate_mbps: mean(rates()),
            least_mbps: if least.is_finite() { least } else { 0.0 },
            bytes: sum(|flow| flow.delivered_bytes),
            sent_packets: sum(|flow| flow.sent_packets),
            dropped_packets: sum(|flow| flow.dropped_packets),
            requests: requests().map(|requests| requests.requests).sum(),
            response_ms: mean(requests().map(|requests| requests.response_time_ms.mean)),
            delay_ms: mean(flows.iter().filter_map(|flow| flow.one_way_delay_ms).map(|delay| delay.p95)),
            video_mbps: mean(flows.iter().filter_map(|flow| flow.video).map(|video| video_rate(&video, duration_s))),
        }
    }
}

/// The rate until a flow was complete, or while it was active, Mbit/s.
fn rate(flow: &Flow) -> f64 {
    flow.completion_s.map_or(flow.goodput_mbps, |seconds| flow.delivered_bytes as f64 * 8e-6 / seconds.max(1e-6))
}

/// The rate of a video without late frames and without the time of its stalls, Mbit/s.
fn video_rate(video: &Video, duration_s: f64) -> f64 {
    let in_time = 1.0 - video.late_frames as f64 / video.frames.max(1) as f64;
    video.video_mbps * in_time * (1.0 - video.stall_s / duration_s).max(0.0)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u64), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}
