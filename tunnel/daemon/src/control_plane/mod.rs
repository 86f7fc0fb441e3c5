//! The control plane: one thread for kernel configuration, status and commands, beside the data thread.
//!
//! A single-threaded tokio runtime serves HTTP on a unix socket, listens to netlink and to signals, and notifies
//! systemd. It uses the data plane through [`DataPlaneHandle`]; replies come through closures, and no lock is held
//! while waiting.

mod client;
mod control_loop;
mod error;
mod handle;
mod metrics;
mod network;
mod privileges;
mod reload;
mod run_folder;
mod server;
mod state_file;
mod system_calls;

pub use client::{Client, ClientError};
pub use control_loop::{clean_up, run};
pub use error::Error;
pub use handle::{ChangeReply, DataPlaneHandle};
pub use metrics::{MEDIA_TYPE, encode_openmetrics};
pub use network::{Network, has_strict_reverse_path, route_halves};
pub use privileges::{confine, keep_capabilities};
pub use reload::ControlConfig;
pub use run_folder::{RUNTIME_DIRECTORY, RunFolder};
pub use server::router;
pub use state_file::{OpenStateFile, StateFile, running_tunnel, socket_path};
pub use system_calls::ThreadRole;
