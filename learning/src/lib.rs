//! Learning environments: simulated worlds in which a policy controls one flow or several.
//!
//! - `config`: the configuration of an environment, as data (JSON); `message`: its errors, in plain words; `world`: worlds drawn by seed from its ranges.
//! - `environment`: one world, advanced from decision to decision; `batch`: many of them, stepped by threads.
//!
//! The same configuration and seed give the same episode, bit for bit, on any machine and with any number of threads.

mod batch;
mod config;
mod environment;
mod message;
mod trace;
mod world;

pub use batch::{ActionError, Batch, Outputs, Saved};
pub use config::{Config, ConfigError, Kind, PathRanges, Range, Rivals};
pub use environment::{Environment, MEASURES, episode_seed};
pub use world::{World, draw};
