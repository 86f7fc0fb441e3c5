//! The tunnel as a person runs it: `ropewalk up FILE` at both ends, on two hosts of a test bed. Real devices, real sockets,
//! real TCP inside. Without root each test is skipped.
//!
//! - `ends`: both hosts with their configurations and daemons.
//! - `traffic`: what runs through the tunnel, and what is seen of it.
//! - `kernel`: another implementation at the far end.
//! - `wire`: what an attacker sees and sends.

mod attacks;
mod ends;
mod failures;
mod kernel;
mod mtu;
mod reloads;
mod restarts;
mod traffic;
mod transfers;
mod wire;
