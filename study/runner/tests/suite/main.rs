//! The runner's tests.

mod diagnosis;
mod execute;
mod registered;
mod shards;
