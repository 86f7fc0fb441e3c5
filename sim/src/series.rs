//! Time series at a chosen interval, one for each flow, subflow and path.

use crate::flow::{FlowState, receiving};
use crate::network::Network;
use crate::packet::Direction;
use crate::protocol::SenderCounters;
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
        let time_s = network.world.now.as_secs_f64();
        for (index, builder) in self.flows.iter_mut().enumerate() {
            let (sender, received) =
                (flows[index].protocol.counters().sender, receiving(flows, index).protocol.counters());
            let goodput = Rate::of(builder.increase(0, received.delivered_bytes), self.interval).as_mbps();
            let dropped = network.world.store.dropped[index].iter().sum();
            let row = sender_row(builder, &sender, [received.arrived_bytes, dropped], self.interval);
            builder.push(time_s, &[&[goodput], &row[..]].concat());
        }
        for (builders, (flow, dropped)) in self.subflows.iter_mut().zip(flows.iter().zip(&network.world.store.dropped))
        {
            for ((builder, dropped), path) in builders.iter_mut().zip(dropped).zip(flow.protocol.paths()) {
                // A subflow has no goodput of its own: it delivers to its connection.
                let row = sender_row(builder, &path.sender, [path.arrived_bytes, *dropped], self.interval);
                builder.push(time_s, &[&[f64::NAN], &row[..]].concat());
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

/// A sample of a flow or subflow, without its goodput: of its sender, the bytes that arrived and the packets dropped.
fn sender_row(
    builder: &mut SeriesBuilder,
    sender: &SenderCounters,
    [arrived_bytes, dropped]: [u64; 2],
    interval: Span,
) -> [f64; 8] {
    [
        sender.cwnd.unwrap_or(f64::NAN),
        sender.ssthresh.unwrap_or(f64::NAN),
        sender.srtt.map_or(f64::NAN, Span::as_millis_f64),
        sender.in_flight.map_or(f64::NAN, f64::from),
        sender.retransmitted.map_or(f64::NAN, |count| builder.increase(1, count) as f64),
        Rate::of(builder.increase(2, arrived_bytes), interval).as_mbps(),
        builder.increase(3, sender.sent) as f64,
        builder.increase(4, dropped) as f64,
    ]
}

fn path_row(builder: &mut SeriesBuilder, network: &mut Network, index: usize, interval: Span) -> [f64; 6] {
    let now = network.world.now;
    let pipes = network.world.topology().pipes_of(index, Direction::Forward);
    let start = now - interval;
    let (mut queue, mut queue_delay, mut dropped, mut marked, mut bytes) = (0, Span::ZERO, 0, 0, 0);
    let mut capacity = f64::NAN; // `min` ignores NaN
    for pipe in pipes {
        let pipe = network.world.pipe_mut(pipe);
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
