//! The runner's tests.

mod execute;
mod registered;
mod shards;
