//! Time series at a chosen interval, one for each flow, subflow and path.

use crate::connection::SenderStatus;
use crate::flow::{FlowProtocol, FlowState};
use crate::network::Network;
use crate::packet::Direction;
use crate::protocol::PathCounters;
use crate::split_connection::receiving;
use record::{FLOW_COLUMNS, Series};
use scenario::model::{Experiment, Flow, Subflow};
use units::{Rate, Span};

/// Samples the flows and paths at an interval.
#[derive(Debug)]
pub(crate) struct Sampler {
    pub interval: Span,
    flows: Vec<SeriesBuilder>,
    /// The series of each flow.
    subflows: Vec<Vec<SeriesBuilder>>,
    paths: Vec<SeriesBuilder>,
}

/// The series of a flow, subflow or path, and its counters at the previous sample.
#[derive(Debug)]
struct SeriesBuilder {
    series: Series,
    previous: [u64; 5],
}

const PATH_COLUMNS: [&str; 6] =
    ["throughput_mbps", "capacity_mbps", "queue_packets", "queue_ms", "dropped_packets", "marked_packets"];

impl SeriesBuilder {
    fn new(name: String, columns: &[&str]) -> Self {
        let columns: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
        let values = vec![Vec::new(); columns.len()];
        Self { series: Series { subject: name, columns, time_s: Vec::new(), values }, previous: [0; 5] }
    }

    fn push(&mut self, time_s: f64, row: &[f64]) {
        self.series.time_s.push(time_s);
        self.series.values.iter_mut().zip(row).for_each(|(column, value)| column.push(*value));
    }

    /// The increase of counter `index` since the previous sample.
    fn increase(&mut self, index: usize, count: u64) -> u64 {
        count - std::mem::replace(&mut self.previous[index], count)
    }
}

impl Sampler {
    pub(crate) fn new(experiment: &Experiment, interval: Span) -> Self {
        let flows =
            experiment.flows.iter().map(|flow| SeriesBuilder::new(format!("flow {}", flow.name), &FLOW_COLUMNS));
        let paths =
            experiment.paths.iter().map(|path| SeriesBuilder::new(format!("path {}", path.name), &PATH_COLUMNS));
        let subflows = experiment.flows.iter().map(|flow| subflows(experiment, flow));
        Self { interval, flows: flows.collect(), subflows: subflows.collect(), paths: paths.collect() }
    }

    /// Takes one sample of every flow, subflow and path.
    pub(crate) fn take(&mut self, network: &mut Network, flows: &[FlowState]) {
        let time_s = network.now.as_secs_f64();
        for (index, builder) in self.flows.iter_mut().enumerate() {
            let (endpoint, received) = (&flows[index], receiving(flows, index));
            let row = flow_row(builder, endpoint, received, network.dropped[index].iter().sum(), self.interval);
            builder.push(time_s, &row);
        }
        for (builders, (endpoint, dropped)) in self.subflows.iter_mut().zip(flows.iter().zip(&network.dropped)) {
            let builders = builders.iter_mut().zip(dropped);
            match &endpoint.protocol {
                FlowProtocol::Tcp(tcp) => {
                    for ((builder, dropped), subflow) in builders.zip(tcp.connection.subflows()) {
                        let arrived_bytes = subflow.stats.arrived_bytes;
                        let row = subflow_row(builder, &subflow.sender, arrived_bytes, *dropped, self.interval);
                        builder.push(time_s, &row);
                    }
                }
                FlowProtocol::Other(protocol) => {
                    for ((builder, dropped), path) in builders.zip(protocol.paths()) {
                        let row = counters_row(builder, &path, *dropped, self.interval);
                        builder.push(time_s, &row);
                    }
                }
            }
        }
        for (index, builder) in self.paths.iter_mut().enumerate() {
            let row = path_row(builder, network, index, self.interval);
            builder.push(time_s, &row);
        }
    }

    pub(crate) fn finish(self) -> Vec<Series> {
        let subflows = self.subflows.into_iter().flatten();
        self.flows.into_iter().chain(subflows).chain(self.paths).map(|builder| builder.series).collect()
    }
}

/// The subflows of a flow: `subflow FLOW/PATH`.
fn subflows(experiment: &Experiment, flow: &Flow) -> Vec<SeriesBuilder> {
    let name = |subflow: &Subflow| format!("subflow {}/{}", flow.name, experiment.paths[subflow.path].name);
    flow.kind.subflows().iter().map(|subflow| SeriesBuilder::new(name(subflow), &FLOW_COLUMNS)).collect()
}

/// A sample of a subflow, which has no goodput of its own: it delivers to its connection.
fn subflow_row(
    builder: &mut SeriesBuilder,
    sender: &SenderStatus,
    arrived: u64,
    dropped: u64,
    interval: Span,
) -> [f64; 9] {
    let SenderStatus { decision, counters, .. } = sender;
    let ssthresh = if decision.ssthresh == units::INFINITE_SSTHRESH { f64::NAN } else { f64::from(decision.ssthresh) };
    let rtt = sender.srtt;
    [
        f64::NAN,
        f64::from(decision.cwnd),
        ssthresh,
        if rtt == Span::ZERO { f64::NAN } else { rtt.as_millis_f64() },
        f64::from(sender.in_flight),
        builder.increase(1, counters.retransmitted) as f64,
        Rate::of(builder.increase(2, arrived), interval).as_mbps(),
        builder.increase(3, counters.sent) as f64,
        builder.increase(4, dropped) as f64,
    ]
}

/// A sample of a path of a connection whose sender tells little.
fn counters_row(builder: &mut SeriesBuilder, path: &PathCounters<'_>, dropped: u64, interval: Span) -> [f64; 9] {
    let throughput = Rate::of(builder.increase(2, path.arrived_bytes), interval).as_mbps();
    let (sent, dropped) = (builder.increase(3, path.sent) as f64, builder.increase(4, dropped) as f64);
    let (cwnd, rtt) = (path.cwnd.unwrap_or(f64::NAN), path.srtt.map_or(f64::NAN, Span::as_millis_f64));
    [f64::NAN, cwnd, f64::NAN, rtt, f64::NAN, f64::NAN, throughput, sent, dropped]
}

/// A sample of a flow, of which `received` reaches its receiver: itself, or its far connection.
fn flow_row(
    builder: &mut SeriesBuilder,
    endpoint: &FlowState,
    received: &FlowState,
    dropped: u64,
    interval: Span,
) -> [f64; 9] {
    let dropped = builder.increase(4, dropped) as f64;
    match (&endpoint.protocol, &received.protocol) {
        (FlowProtocol::Tcp(tcp), FlowProtocol::Tcp(received)) => {
            let goodput = Rate::of(builder.increase(0, received.delivered_bytes()), interval).as_mbps();
            let ssthresh = tcp.connection.ssthresh().map_or(f64::NAN, f64::from);
            let rtt_ms = tcp.connection.smoothed_rtt().map_or(f64::NAN, Span::as_millis_f64);
            let retransmitted = builder.increase(1, tcp.total(|counters| counters.retransmitted)) as f64;
            let in_flight = f64::from(tcp.connection.in_flight());
            let throughput = Rate::of(builder.increase(2, received.arrived_bytes), interval).as_mbps();
            let sent = builder.increase(3, tcp.total(|counters| counters.sent)) as f64;
            let cwnd = f64::from(tcp.connection.cwnd());
            [goodput, cwnd, ssthresh, rtt_ms, in_flight, retransmitted, throughput, sent, dropped]
        }
        (FlowProtocol::Other(protocol), _) | (_, FlowProtocol::Other(protocol)) => {
            let counters = protocol.counters();
            let goodput = Rate::of(builder.increase(0, counters.delivered_bytes), interval).as_mbps();
            let throughput = Rate::of(builder.increase(2, counters.arrived_bytes), interval).as_mbps();
            let sent = builder.increase(3, counters.sent) as f64;
            let rtt = counters.srtt.map_or(f64::NAN, Span::as_millis_f64);
            let cwnd = counters.cwnd.unwrap_or(f64::NAN);
            [goodput, cwnd, f64::NAN, rtt, f64::NAN, f64::NAN, throughput, sent, dropped]
        }
    }
}

fn path_row(builder: &mut SeriesBuilder, network: &mut Network, index: usize, interval: Span) -> [f64; 6] {
    let now = network.now;
    let pipes = network.topology.pipes_of(index, Direction::Forward).to_vec();
    let start = now - interval;
    let (mut queue, mut queue_delay, mut dropped, mut marked, mut bytes) = (0, Span::ZERO, 0, 0, 0);
    let mut capacity = f64::NAN; // `min` ignores NaN
    for pipe in pipes {
        let pipe = &mut network.topology.pipes[pipe as usize];
        queue += pipe.queued_packets(now);
        queue_delay += pipe.queue_delay(now);
        dropped += pipe.counters().dropped + pipe.counters().lost;
        marked += pipe.counters().marked;
        bytes = pipe.counters().bytes_delivered;
        let pipe_capacity =
            pipe.bytes_between(start, now).map_or(f64::NAN, |bytes| Rate::of(bytes, interval).as_mbps());
        capacity = capacity.min(pipe_capacity);
    }
    let throughput = Rate::of(builder.increase(0, bytes), interval).as_mbps();
    let (dropped, marked) = (builder.increase(1, dropped) as f64, builder.increase(2, marked) as f64);
    [throughput, capacity, queue as f64, queue_delay.as_millis_f64(), dropped, marked]
}
