//! What every registered algorithm must keep to, whatever happens; and what single algorithms do on one path, against
//! closed forms and against Linux.

mod conformance;
mod group;
mod laws;
mod linux;
mod path;
mod registry;
mod steady;
mod world;
