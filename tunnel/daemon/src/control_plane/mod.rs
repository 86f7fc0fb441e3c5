//! The control plane: one thread for kernel configuration, status and commands, in addition to the data threads.
//!
//! A single-threaded tokio runtime serves HTTP on a unix socket, listens to netlink and to signals, and notifies
//! systemd. It uses the data plane through [`DataPlaneHandle`]; replies come through closures, and no lock is held
//! while waiting.

mod beyond;
mod client;
mod clients;
mod control_loop;
mod device_names;
mod diagnosis;
mod enrolment;
mod error;
mod events;
mod expiry;
mod handle;
mod line;
mod listeners;
mod live;
mod lost_uplinks;
mod metered;
mod metrics;
mod monitor;
mod network;
mod observation;
mod overlaps;
mod peer_states;
mod policy_routing;
mod privileges;
mod quality;
mod reload;
mod resolver;
mod routers;
mod routes;
mod run_folder;
mod server;
mod state_file;
mod supervisor;
#[cfg(target_pointer_width = "64")]
mod system_calls;
mod uplinks;

#[cfg(test)]
pub(crate) use listeners::listen_unix;

pub use beyond::{Answer, Question, ask_beyond};
pub use client::{Client, ClientError};
pub use clients::{Hello, KnownClient, greet, rotate};
pub use control_loop::{clean_up, run};
pub use diagnosis::own_addresses;
pub use enrolment::{EnrolError, PORT as ENROLMENT_PORT, enrol};
pub use error::Error;
pub use events::{EventLog, MAX_EVENTS};
pub use handle::{ChangeReply, DataPlaneHandle, PendingStatus, ResolveReply, SilentPath, StatusReply};
pub(crate) use line::reached_by;
pub use live::{PathFinding, examine_paths, second_translator, translation};
pub use metrics::{EventCounts, MAX_PEERS, MetricsFormat, encode_metrics};
pub use monitor::Observer;
pub use network::{Network, has_strict_reverse_path, route_halves};
pub use observation::kept_handshake_time;
pub(crate) use observation::open_handshake_times;
pub use overlaps::overlapping_networks;
pub use privileges::{ThreadRole, confine, keep_capabilities};
pub use reload::ControlConfig;
pub use routes::{Route, Routes};
pub use run_folder::{RUNTIME_DIRECTORY, RunFolder};
pub use server::router;
pub use state_file::{OpenStateFile, StateFile, running_tunnel, socket_path};
pub use supervisor::restart_command;
pub use uplinks::{RoutedDevice, left_out_uplinks, private_gateways, routed_devices, with_present_uplinks};
