//! The histograms of delays in a run's record: of every distribution whose summary the records of flows, subflows and the
//! tunnel have.

use crate::engine::Engine;
use crate::flow::FlowState;
use record::DelayHistogram;
use scenario::model::Experiment;

/// The histograms that have samples: of flows with their subflows, in the scenario's order, then of the tunnel.
pub(crate) fn histograms(engine: &Engine, experiment: &Experiment) -> Vec<DelayHistogram> {
    let flows = engine.flows.iter().take(experiment.flows.len());
    let mut histograms: Vec<DelayHistogram> = flows.flat_map(|flow| of_flow(flow, experiment)).collect();
    let of_tunnel = engine.network.tunnel.iter().flat_map(|tunnel| tunnel.distributions());
    histograms.extend(of_tunnel.filter_map(|(column, delay)| delay.histogram("tunnel", column)));
    histograms
}

fn of_flow(flow: &FlowState, experiment: &Experiment) -> Vec<DelayHistogram> {
    let subject = format!("flow {}", flow.name);
    let delays = flow.protocol.distributions().into_iter();
    let delays = delays.filter_map(|(column, delay)| delay.histogram(&subject, column));
    let of_paths = flow.protocol.path_distributions().into_iter().filter_map(|(path, column, delay)| {
        delay.histogram(&format!("subflow {}/{}", flow.name, experiment.paths[path].name), column)
    });
    delays.chain(of_paths).collect()
}
