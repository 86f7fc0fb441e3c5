//! The history of a tunnel and the dashboard that shows it.

use crate::event::EventKind;
use crate::notify::Webhook;
use std::net::SocketAddr;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// The history, the dashboard, and the notifications.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservationConfig {
    /// Where the history is kept.
    pub history: HistoryTarget,
    /// The dashboard; `None` if there is none.
    pub dashboard: Option<DashboardConfig>,
    /// The token that protects the metrics; always set if they are not on loopback.
    pub metrics_token: Option<Zeroizing<String>>,
    /// Notifications of events; `None` for none.
    pub notify: Option<NotifyConfig>,
    /// Whether the speed tests of peers are answered.
    pub speed_test: bool,
}

/// Where the history is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HistoryTarget {
    /// `NAME.history` in the state directory if there is one, otherwise in memory.
    #[default]
    StateDirectory,
    /// In memory.
    Memory,
    /// In this file.
    File(PathBuf),
}

/// The dashboard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DashboardConfig {
    /// The address on which it listens.
    pub address: DashboardAddress,
    /// The token that protects it; always set unless the address is on loopback or a unix socket.
    pub token: Option<Zeroizing<String>>,
}

/// The receivers of notifications, and the events that cause them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyConfig {
    /// The program that runs for each event.
    pub hook: Option<PathBuf>,
    /// The web server that gets each event.
    pub webhook: Option<Webhook>,
    /// The events that cause a notification.
    pub events: Vec<EventKind>,
}

/// The address on which the dashboard listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DashboardAddress {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A unix socket, by its absolute path.
    Unix(PathBuf),
}

/// The keys of [interface], and the table [notify], whose values differ. A restart changes them.
pub(super) fn changes(old: &ObservationConfig, new: &ObservationConfig) -> Vec<&'static str> {
    let token = |config: &ObservationConfig| config.dashboard.as_ref().and_then(|dashboard| dashboard.token.clone());
    let address = |config: &ObservationConfig| config.dashboard.as_ref().map(|dashboard| dashboard.address.clone());
    let keys = [
        ("interface.history", old.history != new.history),
        ("interface.speed-test", old.speed_test != new.speed_test),
        ("interface.dashboard", address(old) != address(new)),
        ("notify", old.notify != new.notify),
        ("interface.dashboard-token-file", token(old) != token(new) || old.metrics_token != new.metrics_token),
    ];
    keys.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
}
