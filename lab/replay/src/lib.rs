//! Random situations of a TCP sender, as scripts that our machine and a kernel can both play, and the comparison of what
//! they did.
//!
//! - `situation`: what is drawn from a seed: hosts, writes of the application, network, peer.
//! - `network`, `peer`: the closed loop of a situation with our sender, which makes the script.
//! - `script`: when the application writes, and when which acknowledgement arrives.
//! - `machine`: our sender in virtual time, which plays a script.
//! - `recording`: what a sender did: its state around each acknowledgement, and what it sent.
//! - `difference`: the first difference of two recordings; `timeline`: what came before it, in words.
//! - `explain`: named changes of our machine, one of which may make a difference go away.
//! - `shrink`: shorter scripts to try; `coverage`: states and transitions that recordings reached.

mod coverage;
mod difference;
mod explain;
mod machine;
mod network;
mod peer;
mod recording;
mod script;
mod shrink;
mod situation;
mod timeline;

pub use coverage::Coverage;
pub use difference::{Difference, Tolerance, first_difference};
pub use explain::{Explanation, explanation};
pub use machine::play;
pub use network::script_of;
pub use recording::{Golden, Recording, Sent, SentKind, State};
pub use script::{Layout, PeerAck, Script, Setup, Write};
pub use shrink::candidates;
pub use situation::Situation;
pub use timeline::timeline;
