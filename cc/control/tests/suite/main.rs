//! Invariants of all registered algorithms under random events; windows and rates on paths without loss.

mod closed_forms;
pub mod equal_shares;
mod flow;
mod group;
mod linux;
mod planted_faults;
mod random_events;
mod registration;
mod registry;
mod steady;
mod worked_example;
