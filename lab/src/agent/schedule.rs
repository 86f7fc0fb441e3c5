//! The agent's schedule.

use crate::protocol::Plan;
use record::fairness::WINDOW_S;
use units::Span;

/// A task of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task<'a> {
    /// Sample every flow.
    Sample,
    /// Record each flow's delivered bytes.
    Delivered,
    /// Stop a flow's source.
    Stop(usize),
    /// Run a command.
    Run(&'a str),
}

/// All tasks until the end of the run, earliest first. At one instant samples come before other tasks, because they belong
/// to the interval before it.
pub(super) fn tasks(plan: &Plan) -> Vec<(Span, Task<'_>)> {
    let sample = plan.sample.as_nanos().max(1);
    let samples = (1..=plan.duration.as_nanos() / sample).map(|n| (Span(n * sample), Task::Sample));
    let window = Span::from_secs(WINDOW_S);
    let deliveries = (1..=plan.duration.0 / window.0).map(|n| (window * n, Task::Delivered));
    let stops = plan.flows.iter().enumerate().filter_map(|(k, flow)| Some((flow.stop?, Task::Stop(k))));
    let events = plan.events.iter().map(|(time, line)| (*time, Task::Run(line)));
    let mut tasks: Vec<_> =
        samples.chain(deliveries).chain(stops).chain(events).filter(|(time, _)| *time <= plan.duration).collect();
    tasks.sort_by_key(|(time, _)| *time);
    tasks
}
