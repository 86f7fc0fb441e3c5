//! A kernel as the judge of our TCP sender and receiver: scripts of [`replay`] are played to its sockets, and its behaviour is
//! compared.
//!
//! - `player`: the process next to the kernel, which is the other end of its connections, behind TUN devices; `sending` and
//!   `receiving`: such a connection, by what the kernel does on it.
//! - `packet`: the peer's packets; `clock`: the kernel's clock and ticks; `stamps`: its timestamps.
//! - `judge`: a kernel that plays scripts: this machine's own, or User-Mode Linux.
//! - `campaign`: many situations, resumable; `side`: those of a sender or a receiver; `verdicts`: their results; `shrinking`:
//!   the shortest script that differs.

mod campaign;
mod clock;
mod judge;
mod max_header;
mod packet;
mod player;
mod receiving;
mod sending;
mod shrinking;
mod side;
mod stamps;
mod verdicts;

pub(crate) use campaign::main as campaign;
pub use judge::Judge;
pub(crate) use player::main as play;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;
