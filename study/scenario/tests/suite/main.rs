//! Scenario files: what is read, and what is refused.

mod bad_inputs;
mod good_inputs;
mod shipped;
mod sweeps;
