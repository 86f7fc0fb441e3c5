//! The configuration of one tunnel: a TOML file in, a checked [`TunnelConfig`] out.
//!
//! The file is as small as `wg-quick`'s: an interface, its peers, and one path for each uplink; everything else has a
//! default. Every error is reported with its line, all of them at once, and secrets are masked where text is shown.
//! `tables` is the file's form, `read` collects the errors of that form, `resolve` those of its meaning.

mod announcement;
mod diff;
mod endpoint;
mod keys;
mod lan;
mod mask;
mod model;
mod observation;
mod peers_file;
mod read;
mod realtime;
mod relay;
mod resolve;
mod secrets;
mod tables;

pub use crate::quota::Quota;
pub use announcement::Announcement;
pub(crate) use announcement::MAX_LEN as MAX_ANNOUNCEMENT_LEN;
pub use diff::{ConfigChange, diff};
pub use endpoint::{DEFAULT_PORT, PeerEndpoint};
pub use keys::keys;
pub use lan::{is_private_lan, overlap, parse_network};
pub use machine::TunnelOptions;
pub use model::{ConfiguredPath, ConfiguredPeer, InterfaceConfig, Mode, MptOptions, TunnelConfig, UplinkOptions};
pub use observation::{DashboardAddress, DashboardConfig, HistoryTarget, NotifyConfig, ObservationConfig};
pub use peers_file::{ClientIdentity, EnrolledPeer, Enrolment, PEER_NAME_HELP, PeersFile, is_peer_name, unix_time};
pub(crate) use peers_file::{LOCK_INTERVAL, LOCK_TIMEOUT, LOCKED, peers as enrolled_peers};
pub use read::{ConfigErrors, load, parse};
pub use realtime::{RealtimePorts, RealtimeRules};
pub use relay::{RelayExclusion, RelayNetwork, RelayOptions};
pub(crate) use secrets::read_to_end as read_secret;
