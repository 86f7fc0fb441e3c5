//! The results of a run as its record.
//!
//! Differences from the simulator's record: `rtt_ms` is the distribution of the smoothed RTT at the samples
//! (its `min` is the kernel's own minimum RTT); a path's `queue_delay_ms` is estimated from it; the path has no series,
//! and a flow's `dropped_packets` are known only at the end.

use crate::fairness::{active_time, fairness};
use crate::network::Network;
use crate::packet_size::packet;
use crate::protocol::{self, FlowResults, RunResults, Sample, TcpInfo};
use crate::series::series;
use crate::{Error, mptcp, tunnel};
use record::distribution::summary_of;
use record::{Cpu, Digest, Flow, Path, Protocol, Requests, Run, Series, Subflow, Summary, Work};
use scenario::model::{Application, Directions, Experiment, FlowKind, Route};
use serde_json::Value;
use units::{Instant, Rate, Span};

/// The record of a run whose flows began at `starts`.
pub(crate) fn summarise(
    experiment: &Experiment,
    network: &Network<'_>,
    seed: u64,
    starts: &[Instant],
    results: &RunResults,
) -> Result<Run, Error> {
    let links = DeviceCounters::read(network, results)?;
    let (mut flows, mut subflows) = (Vec::new(), Vec::new());
    for (k, (flow, flow_results)) in experiment.flows.iter().zip(&results.flows).enumerate() {
        mptcp::check(experiment, flow, flow_results, starts[k])?;
        let mut flow_record = summary(experiment, flow, starts[k], flow_results)?;
        if !network.has_host_counters(k) {
            (flow_record.recoveries, flow_record.spurious_recoveries, flow_record.timeouts) = (0, 0, 0);
        }
        if matches!(flow.kind, FlowKind::Tcp { .. }) {
            // Which flow a tunnel's packets carry is unknown.
            flow_record.dropped_packets = if flow.route == Route::Tunnel { 0 } else { links.lost_of(network.pair(k)) };
        }
        flows.push(flow_record);
        subflows.extend(self::subflows(experiment, flow, flow_results, (starts[k], network.pair(k)), &links));
    }
    let fairness = fairness(experiment, starts, &results.flows);
    for (index, share) in fairness.iter().flat_map(|(flows, fairness)| flows.iter().zip(&fairness.shares)) {
        flows[*index].share = Some(*share);
    }
    let fairness = fairness.map(|(_, fairness)| fairness);
    let tunnel = experiment.tunnel.as_ref().map(|_| tunnel::summary(&results.tunnel_statuses)).transpose()?;
    let controller_failures = tunnel::controller_failures(&results.tunnel_statuses)?;
    let paths = paths(experiment, network, results, &links)?;
    let flows_with_results = || experiment.flows.iter().zip(&results.flows);
    let series = experiment.sample.map_or(Vec::new(), |interval| {
        flows_with_results()
            .flat_map(|(flow, flow_results)| all_series(experiment, flow, flow_results, interval))
            .collect()
    });
    Ok(Run {
        parameters: std::collections::BTreeMap::new(),
        seed,
        digest: digest(&flows, &paths),
        duration_s: experiment.duration.as_secs_f64(),
        controller_failures: controller_failures.len() as u64,
        controller_failure: controller_failures.into_iter().next().unwrap_or_default(),
        flows,
        subflows,
        jain: fairness.as_ref().map(|fairness| fairness.jain),
        convergence_s: fairness.and_then(|fairness| fairness.convergence_s),
        capacity_mbps: experiment.capacity_mbps(),
        steal_s: Some(results.steal.as_secs_f64()),
        cpu: cpu(&results.cpu),
        paths,
        tunnel,
        histograms: Vec::new(),
        series,
        work: Work::default(),
    })
}

/// The machine's CPU time, then that of each process.
fn cpu(cpu: &protocol::Cpu) -> Vec<Cpu> {
    let [user, system, interrupt] = cpu.machine.map(Span::as_secs_f64);
    let machine = (Cpu::MACHINE, [user, system], Some(interrupt));
    let processes = cpu.processes.iter().map(|(name, used)| (name.as_str(), used.map(Span::as_secs_f64), None));
    let entry = |(name, [user_s, system_s], interrupt_s): (&str, [f64; 2], Option<f64>)| Cpu {
        name: name.to_owned(),
        user_s,
        system_s,
        interrupt_s,
    };
    std::iter::once(machine).chain(processes).map(entry).collect()
}

/// The series of a flow, and of each of its subflows.
fn all_series(
    experiment: &Experiment,
    flow: &scenario::model::Flow,
    flow_results: &FlowResults,
    interval: Span,
) -> Vec<Series> {
    let packet = u64::from(packet(experiment, flow));
    let mut list = vec![series(&format!("flow {}", flow.name), &flow_results.samples, packet, interval)];
    for (subflow, samples) in flow.kind.subflows().iter().zip(&flow_results.subflows) {
        let subject = format!("subflow {}/{}", flow.name, experiment.paths[subflow.path].name);
        let mut subflow_series = series(&subject, samples, packet, interval);
        subflow_series.values[0].fill(f64::NAN); // the goodput: the application reads from the connection
        list.push(subflow_series);
    }
    list
}

/// Packets sent by a pair's source and received by its sink on each path, as their devices count.
struct DeviceCounters(Vec<((usize, usize), [u64; 2])>);

impl DeviceCounters {
    fn read(network: &Network<'_>, results: &RunResults) -> Result<Self, Error> {
        let count = |index: usize, side: &str| -> Result<u64, Error> {
            let devices = parsed(results.device_counters.get(index))?;
            Ok(devices.first().and_then(|device| device["stats64"][side]["packets"].as_u64()).unwrap_or(0))
        };
        let read_pair = |(n, pair_and_path)| Ok((pair_and_path, [count(2 * n, "tx")?, count(2 * n + 1, "rx")?]));
        Ok(Self(network.host_paths().into_iter().enumerate().map(read_pair).collect::<Result<_, Error>>()?))
    }

    /// Sent and received packets of a pair on a path.
    fn of_pair(&self, pair: usize, path: usize) -> [u64; 2] {
        self.0.iter().find(|(key, _)| *key == (pair, path)).map_or([0, 0], |(_, counts)| *counts)
    }

    /// Packets that the pair's source sent and its sink did not receive.
    fn lost_of(&self, pair: usize) -> u64 {
        self.0.iter().filter(|(key, _)| key.0 == pair).map(|(_, [sent, received])| sent.saturating_sub(*received)).sum()
    }

    /// Sent and received packets of all pairs on a path.
    fn of_path(&self, path: usize) -> [u64; 2] {
        let entries = self.0.iter().filter(|(key, _)| key.1 == path);
        entries.fold([0, 0], |[sent, received], (_, [s, r])| [sent + s, received + r])
    }
}

fn subflows(
    experiment: &Experiment,
    flow: &scenario::model::Flow,
    flow_results: &FlowResults,
    (start, pair): (Instant, usize),
    links: &DeviceCounters,
) -> Vec<Subflow> {
    let active_time = active_time(experiment, flow, start);
    let active = flow_results.completion.map_or(active_time, |completion| completion.min(active_time));
    let packet = u64::from(packet(experiment, flow));
    let subflow_record = |(subflow, samples): (&scenario::model::Subflow, &Vec<Sample>)| {
        let tcp = last(samples).unwrap_or_default();
        let [sent, received] = links.of_pair(pair, subflow.path);
        let dropped = sent.saturating_sub(received);
        let rtt = rtt(samples, f64::from(tcp.min_rtt) / 1e3);
        Subflow {
            flow: flow.name.clone(),
            path: experiment.paths[subflow.path].name.clone(),
            throughput_mbps: Rate::of(u64::from(arrived(samples)) * packet, active).as_mbps(),
            sent_packets: tcp.sent.into(),
            retransmitted_packets: Some(tcp.retransmitted.into()),
            dropped_packets: dropped,
            drops_per_s: Subflow::per_second(dropped, active),
            rtt_ms: rtt,
            srtt_ms: rtt,
            ..Subflow::default()
        }
    };
    flow.kind.subflows().iter().zip(&flow_results.subflows).map(subflow_record).collect()
}

fn last(samples: &[Sample]) -> Option<TcpInfo> {
    samples.iter().rev().find_map(|sample| sample.tcp)
}

fn arrived(samples: &[Sample]) -> u32 {
    samples.iter().map(|sample| sample.arrived).max().unwrap_or(0)
}

fn summary(
    experiment: &Experiment,
    flow: &scenario::model::Flow,
    start: Instant,
    flow_results: &FlowResults,
) -> Result<Flow, Error> {
    let active = active_time(experiment, flow, start);
    let FlowKind::Tcp { congestion, application, .. } = &flow.kind else {
        return Ok(datagrams(experiment, flow, flow_results, active));
    };
    let protocol = if flow.kind.subflows().is_empty() { Protocol::Tcp } else { Protocol::Mptcp };
    let (name, congestion_control) = (flow.name.clone(), congestion.name.clone());
    if active == Span::ZERO {
        // It begins after the end.
        return Ok(Flow { name, protocol, congestion_control, ..Flow::default() });
    }
    let never_connected = || Error::failed(format!("flow {} never connected", flow.name));
    let delivered = flow_results.samples.last().ok_or_else(never_connected)?.delivered;
    // A flow of a given size ends when it is complete.
    let (delivered, duration) = match flow_results.completion {
        Some(completion) if completion <= active => (flow_results.delivered, completion),
        _ => (delivered, active),
    };
    let single = [&flow_results.samples];
    let series: Vec<&Vec<Sample>> =
        if flow_results.subflows.is_empty() { single.to_vec() } else { flow_results.subflows.iter().collect() };
    let tcp: Vec<TcpInfo> = series.iter().filter_map(|samples| last(samples)).collect();
    let sum = |of: fn(&TcpInfo) -> u32| tcp.iter().map(|tcp| u64::from(of(tcp))).sum();
    let main = *tcp.first().ok_or_else(never_connected)?;
    let arrived_packets: u64 = series.iter().map(|samples| u64::from(arrived(samples))).sum();
    let has_requests = matches!(application, Application::Requests(_));
    Ok(Flow {
        name,
        protocol,
        congestion_control,
        goodput_mbps: Rate::of(delivered, duration).as_mbps(),
        delivered_bytes: delivered,
        throughput_mbps: Rate::of(arrived_packets * u64::from(packet(experiment, flow)), duration).as_mbps(),
        sent_packets: sum(|tcp| tcp.sent),
        retransmitted_packets: sum(|tcp| tcp.retransmitted),
        recoveries: flow_results.tcp_ext.recoveries,
        spurious_recoveries: flow_results.tcp_ext.undone,
        timeouts: flow_results.tcp_ext.timeouts,
        receive_window_limited_s: main.rwnd_limited as f64 / 1e6,
        send_buffer_limited_s: main.sndbuf_limited as f64 / 1e6,
        duplicate_bytes: duplicates(flow_results, delivered),
        completion_s: flow_results.completion.filter(|completion| *completion <= active).map(Span::as_secs_f64),
        peak_mbps: peak(flow_results, experiment.sample),
        requests: has_requests
            .then_some(Requests { requests: flow_results.times.count, response_time_ms: flow_results.times.summary }),
        rtt_ms: rtt(
            &series.iter().flat_map(|samples| samples.iter().copied()).collect::<Vec<_>>(),
            f64::from(main.min_rtt) / 1e3,
        ),
        ..Flow::default()
    })
}

/// The record of a UDP flow that was active for this long.
fn datagrams(
    experiment: &Experiment,
    flow: &scenario::model::Flow,
    flow_results: &FlowResults,
    duration: Span,
) -> Flow {
    let delivered_bytes = flow_results.times.count * u64::from(packet(experiment, flow));
    let rate = Rate::of(delivered_bytes, duration).as_mbps();
    Flow {
        name: flow.name.clone(),
        protocol: Protocol::Udp,
        goodput_mbps: rate,
        delivered_bytes,
        throughput_mbps: rate,
        sent_packets: flow_results.sent,
        dropped_packets: flow_results.lost,
        one_way_delay_ms: Some(flow_results.times.summary),
        ..Flow::default()
    }
}

/// Duplicate bytes of an MPTCP flow: received on the subflows beyond what the application has read. Known only when the flow
/// is complete: before that, some of them may wait for reassembly.
fn duplicates(flow_results: &FlowResults, delivered: u64) -> Option<u64> {
    let received = |samples: &Vec<Sample>| samples.iter().map(|sample| sample.received).max().unwrap_or(0);
    let total: u64 = flow_results.subflows.iter().map(received).sum();
    let is_complete = !flow_results.subflows.is_empty() && flow_results.completion.is_some();
    is_complete.then(|| total.saturating_sub(delivered))
}

/// The maximum goodput over half a second, if samples are that close.
fn peak(flow_results: &FlowResults, interval: Option<Span>) -> Option<f64> {
    let window_length = Span::from_millis(500);
    let interval =
        interval.filter(|interval| *interval <= window_length && window_length.0.is_multiple_of(interval.0))?;
    let delivered: Vec<u64> =
        std::iter::once(0).chain(flow_results.samples.iter().map(|sample| sample.delivered)).collect();
    let steps = (window_length.0 / interval.0) as usize;
    // A program's own count, at its end, may be less than the kernel's earlier count.
    let max = delivered.windows(steps + 1).map(|window| window[steps].saturating_sub(window[0])).max().unwrap_or(0);
    Some(Rate::of(max, window_length).as_mbps())
}

/// The distribution of the smoothed RTT.
fn rtt(samples: &[Sample], min: f64) -> Summary {
    let rtts = samples
        .iter()
        .filter_map(|sample| sample.tcp)
        .filter(TcpInfo::is_established)
        .map(|tcp| f64::from(tcp.rtt) / 1e3);
    let summary = summary_of(rtts.collect());
    if summary.max > 0.0 { Summary { min, ..summary } } else { summary }
}

/// The paths, from the counters of their links' queues and netem, and of the hosts. Packets are counted after the
/// drain, the utilisation at the end of the run.
fn paths(
    experiment: &Experiment,
    network: &Network<'_>,
    results: &RunResults,
    links: &DeviceCounters,
) -> Result<Vec<Path>, Error> {
    let (mut counters, mut final_counters) = (results.link_counters.iter(), results.final_link_counters.iter());
    let mut paths = Vec::new();
    for (p, path) in experiment.paths.iter().enumerate() {
        let (mut dropped, mut lost, mut utilisation) = (0, 0, 0.0f64);
        for &i in path.links.iter().filter(|i| network.is_used(**i)) {
            let [queue, _wire] = [parsed(counters.next())?, parsed(counters.next())?];
            let [last_queue, last_wire] = [parsed(final_counters.next())?, parsed(final_counters.next())?];
            let policed = [&last_queue, &last_wire].map(|device| count(device, "clsact", "drops"));
            dropped += count(&last_queue, "tbf", "drops") + policed[0].max(policed[1]);
            lost += count(&last_wire, "netem", "drops");
            if let Some(capacity) = capacity(experiment, i) {
                utilisation = utilisation.max(count(&queue, "tbf", "bytes") as f64 / capacity);
            }
        }
        let [sent, delivered] = links.of_path(p);
        // An emulated link has no counters: packets that did not arrive were lost.
        let lost = lost.max(sent.saturating_sub(delivered).saturating_sub(dropped));
        paths.push(Path {
            name: path.name.clone(),
            sent_packets: delivered + lost + dropped,
            delivered_packets: delivered,
            dropped_packets: dropped,
            lost_packets: lost,
            utilisation,
            queue_delay_ms: queue_delay(experiment, results, p),
            ..Path::default()
        });
    }
    Ok(paths)
}

fn count(qdiscs: &[Value], kind: &str, key: &str) -> u64 {
    qdiscs.iter().find(|qdisc| qdisc["kind"] == kind).and_then(|qdisc| qdisc[key].as_u64()).unwrap_or(0)
}

/// Parses the output of `tc -j` or `ip -j`.
pub(crate) fn parsed(text: Option<&String>) -> Result<Vec<Value>, Error> {
    let text = text.map_or("[]", String::as_str);
    serde_json::from_str(text).map_err(|error| Error::failed(format!("the guest's counters are not JSON: {error}")))
}

/// Capacity of link `i` in the data direction over the run, bytes; events may change its rate.
fn capacity(experiment: &Experiment, i: usize) -> Option<f64> {
    let mut rate = experiment.links[i].forward.rate?;
    let (mut bytes, mut latest_change) = (0, Instant::ZERO);
    let end = Instant::ZERO + experiment.duration;
    let changes = experiment.events.iter().filter(|event| event.link == i && event.directions != Directions::Reverse);
    for (time, new_rate) in changes.filter_map(|event| Some((event.at.min(end), event.rate?))) {
        bytes += rate.bytes_in(time.since(latest_change));
        (rate, latest_change) = (new_rate, time);
    }
    Some((bytes + rate.bytes_in(end.since(latest_change))) as f64)
}

/// Mean excess of the smoothed RTT over its minimum, over all samples of the path's flows, milliseconds. Flows in a
/// tunnel are left out, because their RTT includes the tunnel's own queue.
fn queue_delay(experiment: &Experiment, results: &RunResults, p: usize) -> f64 {
    let mut tcp_infos: Vec<TcpInfo> = Vec::new();
    for (flow, flow_results) in experiment.flows.iter().zip(&results.flows) {
        match flow.route {
            Route::Path(path) if path == p => {
                tcp_infos.extend(
                    flow_results.samples.iter().filter_map(|sample| sample.tcp).filter(TcpInfo::is_established),
                );
            }
            Route::Subflows => {
                let own =
                    flow.kind.subflows().iter().zip(&flow_results.subflows).filter(|(subflow, _)| subflow.path == p);
                tcp_infos.extend(own.flat_map(|(_, samples)| samples).filter_map(|sample| sample.tcp));
            }
            Route::Path(_) | Route::Tunnel => {}
        }
    }
    let min_rtt = tcp_infos.iter().map(|tcp| tcp.min_rtt).min().unwrap_or(0);
    let sum: f64 = tcp_infos.iter().map(|tcp| f64::from(tcp.rtt.saturating_sub(min_rtt))).sum();
    sum / tcp_infos.len().max(1) as f64 / 1e3
}

fn digest(flows: &[Flow], paths: &[Path]) -> String {
    let mut digest = Digest::default();
    for flow in flows {
        digest.add_text(&flow.name);
        [flow.delivered_bytes, flow.sent_packets, flow.retransmitted_packets, flow.recoveries, flow.timeouts]
            .iter()
            .for_each(|count| digest.add(*count));
        digest.add(flow.rtt_ms.mean.to_bits());
    }
    paths.iter().for_each(|path| digest.add(path.delivered_packets));
    digest.hex()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_that_begins_after_the_end_carries_nothing_and_any_other_has_to_connect() {
        let text = "name = \"x\"\nduration = \"10s\"\n[[path]]\nname = \"w\"\nrate = \"20mbit\"\n\
                    [[flow]]\nname = \"a\"\nstart = \"1000s\"\n";
        let scenario = scenario::parse("test", text, std::path::Path::new(""), &scenario::Overrides::default());
        let experiment = &scenario.unwrap_or_else(|error| panic!("{error}")).cells[0].experiment;
        let flow = &experiment.flows[0];
        let record = |start| summary(experiment, flow, start, &FlowResults::default());
        let late = record(flow.start).expect("it need not connect");
        assert_eq!((late.name.as_str(), late.delivered_bytes, late.goodput_mbps), ("a", 0, 0.0));
        assert!(record(Instant::ZERO).is_err());
    }

    #[test]
    fn the_machine_comes_first_and_only_it_has_interrupts() {
        let processes = vec![("tunnel near".to_owned(), [40, 400].map(Span::from_millis))];
        let entries = cpu(&protocol::Cpu { machine: [8000, 1520, 1060].map(Span::from_millis), processes });
        assert_eq!(entries.iter().map(|cpu| cpu.name.as_str()).collect::<Vec<_>>(), [Cpu::MACHINE, "tunnel near"]);
        assert_eq!([entries[0].interrupt_s, entries[1].interrupt_s], [Some(1.06), None]);
        assert!((entries[0].busy_s() - 10.58).abs() < 1e-9 && (entries[1].busy_s() - 0.44).abs() < 1e-9);
        assert!(entries[1].name.starts_with(Cpu::TUNNEL));
    }
}
