//! A kernel as the judge of our TCP sender: scripts of [`replay`] are played to its sockets, and its behaviour is compared.
//!
//! - `player`, `connection`: the process next to the kernel, which is the other end of its connections, behind TUN devices.
//! - `packet`: the peer's packets; `clock`: the kernel's clock and ticks.
//! - `judge`: a kernel that plays scripts: this machine's own, or User-Mode Linux.
//! - `campaign`: many situations, resumable; `verdicts`: their results; `shrinking`: the shortest script that differs.

mod campaign;
mod clock;
mod connection;
mod judge;
mod packet;
mod player;
mod shrinking;
mod verdicts;

pub(crate) use campaign::main as campaign;
pub use judge::Judge;
pub(crate) use player::main as play;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
