//! Worlds for tests of the tunnel: two ends, of whatever kind, and paths that do what networks do, and worse. A world is
//! drawn by its seed. For tests only: nothing but dev-dependencies leads here.

mod assembly;
mod draw;
mod wire;
mod world;

pub use assembly::Assembly;
pub use draw::{Kind, PATH, count, wires};
pub use wire::Wire;
pub use world::{End, World, ms};
