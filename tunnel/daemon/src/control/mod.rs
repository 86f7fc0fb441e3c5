//! The control thread: what is asked of the kernel and told to people, beside the thread that moves packets.
//!
//! One tokio runtime on one thread serves HTTP on a unix socket, listens to netlink and to signals, and notifies
//! systemd. It knows the data plane by the trait [`DataPlane`] alone: questions and commands go one way, answers come back
//! through closures, and nobody waits with a lock held.

mod client;
mod metrics;
mod network;
mod plane;
mod privilege;
mod reload;
mod run;
mod server;
mod state;

pub use client::{Client, ClientError};
pub use metrics::{MEDIA_TYPE, text as metrics};
pub use network::{Network, route_halves, strict_reverse_path};
pub use plane::{Answer, DataPlane};
pub use privilege::{Privileges, drop_privileges};
pub use run::{Control, Error, repair, run};
pub use server::router;
pub use state::{RUN, State, is_running, socket_path};
