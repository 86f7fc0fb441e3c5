//! The runner's tests.

mod execute;
mod shards;
