//! An experiment as data: paths, queues, flows, events, sweep, seeds.

pub mod model;
