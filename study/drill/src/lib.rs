//! Scripts of packetdrill against Ropewalk's TCP machines, in virtual time.
//!
//! A script has the application's writes, the arriving packets, the packets that must leave and their times, and the
//! expected state. packetdrill runs the same file on a real kernel (Cardwell et al., USENIX ATC 2013), so that an
//! algorithm's author tests both.
//!
//! Files: `text` (the script without comments), `parse`, `packet` and `call` (statements), `expression` and `info`
//! (assertions), `settings` (sysctls and socket options), `setup` (the configuration that results from them and the
//! handshake), `segments` (bytes to segments), `host` (the machines in virtual time), `run` (one event after the other),
//! `expect` (comparisons).

mod call;
mod error;
mod expect;
mod expression;
mod host;
mod info;
mod packet;
mod parse;
mod run;
mod segments;
mod settings;
mod setup;
mod text;

pub use error::ScriptError;
pub use run::{Difference, Options, Outcome, run};
