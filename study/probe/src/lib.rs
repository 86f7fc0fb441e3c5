//! Measures the paths to another host, which runs the same program as a server.
//!
//! ```text
//! token     the shared secret, and keyed hashes with it
//! line      the lines of a connection: greeting, request, answer
//! datagram  datagrams that the server returns
//! flow      one TCP flow, as its sender and as its receiver
//! returning a UDP socket that answers from the address to which a datagram came
//! server    sessions, their limits, and what the server does for them
//! client    a session's control connection, flows and datagrams over one path
//! source    the source address or the device of a path
//! stream    losses, reordering and jitter of a stream of datagrams
//! plan      stages, their order, and their bytes
//! judge     policers and shared bottlenecks, from what was measured
//! run       carries out a plan
//! ```

mod client;
mod datagram;
mod flow;
mod judge;
mod line;
mod plan;
mod returning;
mod run;
mod server;
mod source;
mod stream;
mod token;

pub use client::{Error, Session};
pub use judge::median;
pub use plan::{Choices, Plan};
pub use run::{News, interrupted, run};
pub use server::{Limits, Server};
pub use source::{PathSource, Source, seems_metered};
pub use token::Token;

/// The port of both protocols unless another one is named.
pub const PORT: u16 = 4756;

/// A seed that the system draws, of at most six digits, so that a person can type it again.
///
/// # Errors
///
/// The system gives no random numbers.
pub fn random_seed() -> std::io::Result<u64> {
    Ok(u64::from_be_bytes(token::random()?) % 1_000_000)
}
