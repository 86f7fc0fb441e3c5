//! What every registered scheduler must keep to, whatever happens; and what the registry promises.

mod laws;
mod registry;
mod world;
