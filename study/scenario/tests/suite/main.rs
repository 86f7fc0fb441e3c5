//! Scenario files: what is read, and what is refused.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests read files")]

mod bad_inputs;
mod capacity;
mod common;
mod effective;
mod fat_tree;
mod good_inputs;
mod hosted;
mod schema_defaults;
mod several;
mod shipped;
mod sweeps;
mod traces;
mod tunnels;
