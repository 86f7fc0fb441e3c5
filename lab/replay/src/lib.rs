//! Random situations of a TCP sender or receiver, as scripts that our machine and a kernel can both play, and the comparison of their
//! behaviour.
//!
//! - `situation`: the hosts, the application's writes, the network and the peer, drawn from a seed.
//! - `network`, `peer`: the closed loop of a situation with our sender, which makes the script.
//! - `script`: the application's writes and the arriving acknowledgements, with their times.
//! - `machine`: our sender in virtual time, which plays a script.
//! - `recording`: the state of a sender around each acknowledgement, and the packets that it sent.
//! - `difference`: the first difference of two recordings; `timeline`: the events before it, in words.
//! - `golden`: a script with the recording of a kernel that is kept.
//! - `explain`: named changes of our machine, one of which may make a difference disappear.
//! - [`receiving`]: the same for a receiver.
//! - `shrink`: shorter scripts to try; `coverage`: the states and transitions that recordings reached.

mod coverage;
mod difference;
mod explain;
mod golden;
mod kernel;
mod machine;
mod network;
mod peer;
pub mod receiving;
mod recording;
mod script;
mod shrink;
mod situation;
mod timeline;

pub use control::LinuxRelease;
pub use coverage::Coverage;
pub use difference::{Difference, Tolerance, first_difference};
pub use explain::{Explanation, closest, explanation};
pub use golden::Golden;
pub use kernel::{Kernel, series_of};
pub use machine::play;
pub use network::script_of;
pub use recording::{Played, Recording, Sent, SentKind, State};
pub use script::{Layout, PeerAck, Script, Setup, Write};
pub use shrink::candidates;
pub use situation::Situation;
pub use timeline::timeline;
