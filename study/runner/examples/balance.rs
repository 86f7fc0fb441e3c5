//! Measures how well the shards of a study are balanced: the events that the simulator processed for the most expensive
//! shard, as a multiple of the mean over all shards, when runs are divided by the estimated cost and by turns.
//!
//! `cargo run --release -p ropewalk-runner --example balance -- SCENARIO RESULTS`

#![allow(clippy::print_stdout, reason = "it prints a table")]

use ropewalk_runner::{Plan, Simulator, plan};
use scenario::Overrides;
use std::path::Path;
use store::{Key, Results, Shard};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [scenario, results] = arguments.as_slice() else { return Err("arguments: SCENARIO RESULTS".into()) };
    let scenario = scenario::load(Path::new(scenario), &Overrides::default())?;
    let (_, runs) = Results::open(Path::new(results))?;
    let plan = plan(&scenario, &Simulator, false)?;
    let events: Vec<f64> = runs.iter().map(|run| run.work.events as f64).collect();
    let costs: Vec<f64> = plan.costs.iter().map(|cost| *cost as f64).collect();
    let (name, correlation) = (&scenario.name, correlation(&costs, &events));
    println!("{name}: {} runs, correlation of estimate and events {correlation:.2}", runs.len());
    println!("shards  by estimate  by turns  the best possible at least");
    let mean = |count: usize| events.iter().sum::<f64>() / count as f64;
    let longest = events.iter().copied().fold(0.0, f64::max);
    for count in [2, 4, 8, 16, 32, 64].into_iter().filter(|count| *count <= runs.len()) {
        let [by_estimate, by_turns] = [plan.clone(), Plan { costs: vec![1; plan.keys.len()], ..plan.clone() }]
            .map(|divided| greatest(&divided, &plan, &events, count) / mean(count));
        let best = (longest / mean(count)).max(1.0);
        println!("{count:6}  {by_estimate:11.2}  {by_turns:8.2}  {best:.2}");
    }
    Ok(())
}

/// The events of the most expensive of `count` shards of `divided`.
fn greatest(divided: &Plan, plan: &Plan, events: &[f64], count: usize) -> f64 {
    let of_key = |key: &Key| plan.keys.binary_search(key).map_or(0.0, |run| events[run]);
    let shards = (1..=count).map(|index| divided.shard(Shard { index, count }));
    shards.map(|shard| shard.keys.iter().map(of_key).sum()).fold(0.0, f64::max)
}

/// Pearson's coefficient.
fn correlation(x: &[f64], y: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_x, mean_y) = (mean(x), mean(y));
    let sum =
        |pairs: &dyn Fn(f64, f64) -> f64| x.iter().zip(y).map(|(x, y)| pairs(x - mean_x, y - mean_y)).sum::<f64>();
    sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt()
}
