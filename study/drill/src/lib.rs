//! Scripts of packetdrill against Ropewalk's TCP machines, in virtual time.
//!
//! A script says when the application writes, which packets come, which must leave and when, and what the state is. The same
//! file runs on a real kernel by packetdrill (Cardwell et al., USENIX ATC 2013), so that an algorithm's author tests both.
//!
//! Files: `text` (the script without comments), `parse`, `packet` and `call` (statements), `expression` and `info` (assertions),
//! `settings` (sysctls and socket options), `setup` (what they and the handshake determine), `segments` (bytes to segments), `host` (the machines in virtual
//! time), `run` (one event after the other), `expect` (comparisons).

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
