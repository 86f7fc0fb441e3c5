//! What every registered algorithm must keep to, whatever happens; and what single algorithms do on one path, against
//! closed forms and against Linux.

mod conformance;
pub mod equal_shares;
mod group;
mod laws;
mod linux;
mod path;
mod registry;
mod steady;
mod worked_example;
mod world;
