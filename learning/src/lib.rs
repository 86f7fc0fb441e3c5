//! Learning environments: simulated worlds in which a policy controls one flow or several.
//!
//! - `config`: the configuration of an environment, as data (JSON); `message`: its errors, in plain words;
//!   `world`: worlds drawn by seed from its ranges; `scenario_worlds`: the runs of a scenario as worlds;
//!   `text`: a drawn world as a scenario.
//! - `environment`: one world, advanced from decision to decision; `packets`: a scheduler's decisions, packet by packet;
//!   `batch`: many environments, stepped by threads.
//!
//! The same configuration and seed give the same episode, bit for bit, on any machine and with any number of threads.

mod batch;
mod config;
mod environment;
mod message;
mod packets;
mod scenario_worlds;
mod text;
mod trace;
mod world;

pub use batch::{ActionError, Batch, Outputs, Saved};
pub use config::{Config, ConfigError, Kind, PathRanges, Range, Ranges, Rivals, Worlds};
pub use environment::{Environment, Episode, MEASURES, episode_seed};
pub use scenario_worlds::ScenarioWorlds;
pub use world::{World, draw, draw_unprepared};
