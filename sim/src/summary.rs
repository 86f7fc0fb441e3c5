//! The record of a finished run.

use crate::engine::Engine;
use crate::flow::receiving;
use crate::histograms::histograms;
use crate::invariants;
use crate::packet::Direction;
use crate::protocol::PathCounters;
use link::LinkCounters;
use record::fairness::Fairness;
use record::{Digest, Distribution, Flow, Path, Run, Subflow};
use scenario::model::Experiment;
use units::{Rate, Span};

/// Makes the record of a finished run.
pub(crate) fn summarise(mut engine: Engine, experiment: &Experiment, seed: u64) -> Run {
    let utilisation = utilisation(&mut engine);
    engine.network.assert_conserved();
    engine.flows.iter_mut().for_each(|flow| flow.protocol.finish(flow.stop.min(engine.end)));
    let mut flows: Vec<Flow> = (0..experiment.flows.len()).map(|index| flow(&engine, index)).collect();
    let subflows = (0..experiment.flows.len()).flat_map(|flow| subflows(&engine, experiment, flow)).collect();
    let fairness = fairness(&engine, &mut flows);
    let paths: Vec<Path> =
        (0..experiment.paths.len()).map(|index| path(&engine, experiment, index, &utilisation)).collect();
    let controller_failures = controller_failures(&mut engine);
    let tunnel = engine.network.tunnel.as_ref().map(|tunnel| tunnel.record());
    let digest = digest(engine.digest, &flows, &paths);
    let run = Run {
        parameters: std::collections::BTreeMap::new(),
        seed,
        digest,
        duration_s: experiment.duration.as_secs_f64(),
        jain: fairness.as_ref().map(|fairness| fairness.jain),
        convergence_s: fairness.and_then(|fairness| fairness.convergence_s),
        capacity_mbps: experiment.capacity_mbps(),
        steal_s: None,
        cpu: Vec::new(),
        controller_failures: controller_failures.len() as u64,
        controller_failure: controller_failures.into_iter().next().unwrap_or_default(),
        flows,
        subflows,
        paths,
        tunnel,
        histograms: histograms(&engine, experiment),
        series: engine.sampler.take().map(crate::series::Sampler::finish).unwrap_or_default(),
        work: engine.network.work(),
    };
    if cfg!(debug_assertions) {
        invariants::check(experiment, engine.network.world.topology().pipes(), &run);
    }
    run
}

/// The reasons why controllers of connections and of the tunnel's ends failed.
fn controller_failures(engine: &mut Engine) -> Vec<String> {
    let of_flows = engine.flows.iter_mut().flat_map(|flow| flow.protocol.controller_failures());
    of_flows.chain(engine.network.tunnel.iter().flat_map(|tunnel| tunnel.controller_failures())).collect()
}

/// Fairness among competing flows, each of which gets its share.
fn fairness(engine: &Engine, flows: &mut [Flow]) -> Option<Fairness> {
    let meter = engine.meter.as_ref()?;
    let fairness = meter.fairness(&engine.flows)?;
    for (flow, share) in meter.flows.iter().zip(&fairness.shares) {
        flows[*flow].share = Some(*share);
    }
    Some(fairness)
}

fn flow(engine: &Engine, index: usize) -> Flow {
    let endpoint = &engine.flows[index];
    let active_time = endpoint.stop.min(engine.end).since(endpoint.start);
    let received = receiving(&engine.flows, index).protocol.counters();
    let completion = received.completed.map(|completed_at| completed_at.since(endpoint.start));
    let time = completion.unwrap_or(active_time);
    let flow = Flow {
        name: endpoint.name.clone(),
        goodput_mbps: Rate::of(received.delivered_bytes, time).as_mbps(),
        delivered_bytes: received.delivered_bytes,
        throughput_mbps: Rate::of(received.arrived_bytes, time).as_mbps(),
        sent_packets: endpoint.protocol.counters().sender.sent,
        dropped_packets: engine.network.world.store.dropped[index].iter().sum(),
        completion_s: completion.map(Span::as_secs_f64),
        peak_mbps: received.peak.map(Rate::as_mbps),
        ..Flow::default()
    };
    endpoint.protocol.record(endpoint.start, endpoint.start + active_time, flow)
}

/// The records of a flow's subflows, if it has any.
fn subflows(engine: &Engine, experiment: &Experiment, flow: usize) -> Vec<Subflow> {
    let endpoint = &engine.flows[flow];
    let completed = endpoint.protocol.counters().completed;
    let end = completed.unwrap_or(endpoint.stop).min(endpoint.stop).min(engine.end);
    let active_time = end.since(endpoint.start);
    let paths = endpoint.protocol.paths().into_iter().zip(&engine.network.world.store.dropped[flow]).enumerate();
    let record = |(index, (path, dropped)): (usize, (PathCounters<'_>, &u64))| {
        let subflow = Subflow {
            flow: endpoint.name.clone(),
            path: experiment.paths[path.path].name.clone(),
            throughput_mbps: Rate::of(path.arrived_bytes, active_time).as_mbps(),
            sent_packets: path.sender.sent,
            retransmitted_packets: path.sender.retransmitted,
            dropped_packets: *dropped,
            drops_per_s: Subflow::per_second(*dropped, active_time),
            rtt_ms: path.rtt.summary(),
            srtt_ms: path.srtt.map(Distribution::summary).unwrap_or_default(),
            ..Subflow::default()
        };
        endpoint.protocol.record_path(index, endpoint.start, subflow)
    };
    paths.map(record).collect()
}

/// The utilisation of each pipe.
fn utilisation(engine: &mut Engine) -> Vec<f64> {
    let end = engine.end;
    let pipes = engine.network.world.topology().pipes().len() as u32;
    (0..pipes).map(|pipe| engine.network.world.pipe_mut(pipe).utilisation(end)).collect()
}

fn path(engine: &Engine, experiment: &Experiment, index: usize, utilisation: &[f64]) -> Path {
    let pipes = engine.network.world.topology().pipes_of(index, Direction::Forward);
    let counters = |pipe: &u32| -> &LinkCounters { engine.network.world.topology().pipes()[*pipe as usize].counters() };
    let total = |counter: fn(&LinkCounters) -> u64| pipes.iter().map(|pipe| counter(counters(pipe))).sum::<u64>();
    let delay_ns: f64 = pipes
        .iter()
        .map(|pipe| {
            let counters = counters(pipe);
            counters.queue_delay_total_ns as f64 / ((counters.offered - counters.dropped).max(1)) as f64
        })
        .sum();
    Path {
        name: experiment.paths[index].name.clone(),
        sent_packets: pipes.first().map_or(0, |pipe| counters(pipe).offered),
        delivered_packets: pipes.last().map_or(0, |pipe| counters(pipe).delivered),
        dropped_packets: total(|c| c.dropped),
        lost_packets: total(|c| c.lost),
        duplicated_packets: Some(total(|c| c.duplicated)),
        corrupted_packets: Some(engine.network.world.store.corrupted[index]),
        marked_packets: total(|c| c.marked),
        utilisation: pipes.iter().map(|pipe| utilisation[*pipe as usize]).fold(0.0, f64::max),
        queue_delay_ms: delay_ns / 1e6,
        tunnel: engine.network.tunnel.as_ref().and_then(|tunnel| tunnel.path_record(index)),
    }
}

/// The run's digest: of the arrivals and of the counters.
fn digest(mut digest: Digest, flows: &[Flow], paths: &[Path]) -> String {
    for flow in flows {
        digest.add_text(&flow.name);
        [flow.delivered_bytes, flow.sent_packets, flow.retransmitted_packets, flow.recoveries, flow.timeouts]
            .iter()
            .for_each(|count| digest.add(*count));
    }
    for path in paths {
        [path.sent_packets, path.delivered_packets, path.dropped_packets, path.lost_packets]
            .iter()
            .for_each(|count| digest.add(*count));
    }
    digest.hex()
}
