//! Records the tunnel's history, and serves the dashboard.

use super::error::Error;
use super::listeners::Server;
use super::privileges::find_user;
use super::server::{Shared, metrics_routes, read_only_routes};
use crate::config::{DashboardAddress, DashboardConfig, HistoryTarget, NotifyConfig, TunnelConfig};
use crate::dashboard::{Dashboard, HistoryFile, Recorder, page_routes, unix_seconds};
use crate::event::Event;
use crate::handshake_times::{self, HandshakeTimes};
use crate::notify::{Notifier, start_runner};
use crate::status::TunnelStatus;
use filesystem::Folder;
use nix::unistd::User;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tracing::{info, warn};

/// The state directory if systemd does not name one (`StateDirectory=`).
const STATE_DIRECTORY: &str = "/var/lib/ropewalk";
const STATE_DIRECTORY_MODE: u32 = 0o750;

/// Files and sockets opened before privileges are dropped.
pub(super) struct Observation {
    pub(super) dashboard: Arc<Dashboard>,
    server: Option<Server>,
    metrics: Option<Server>,
    notifier: Option<Notifier>,
}

impl Observation {
    /// Opens the history file and the dashboard's socket. If the file cannot be used, the history is kept in memory.
    ///
    /// # Errors
    /// The dashboard, or the metrics, cannot listen.
    pub(super) async fn open(config: &TunnelConfig, user: Option<&User>) -> io::Result<Self> {
        let recorder = Recorder::new(history_file(config, user));
        let server = match &config.observation.dashboard {
            Some(dashboard) => Some(open_dashboard(dashboard, user).await?),
            None => None,
        };
        let metrics = match config.interface.metrics {
            Some(address) => Some(Server::tcp(address, config.observation.metrics_token.clone()).await?),
            None => None,
        };
        let notifier = notifier(config, user);
        Ok(Self { dashboard: Arc::new(Dashboard::new(recorder)), server, metrics, notifier })
    }

    /// The closure that records the status each second. An error of the file is logged once, until a write succeeds
    /// again.
    pub(super) fn recording(&self) -> impl FnMut(&TunnelStatus) + Send + use<> {
        let dashboard = Arc::clone(&self.dashboard);
        let mut has_failed = false;
        move |status| {
            let written = dashboard.record(unix_seconds(), status);
            if let (Err(error), false) = (&written, has_failed) {
                warn!("the history is not written: {error}");
            }
            has_failed = written.is_err();
        }
    }

    /// Starts to serve.
    pub(super) fn start(&mut self, shared: &Shared) {
        tokio::spawn(pass_events(Arc::clone(&self.dashboard), shared.observer.events.subscribe()));
        if let Some(notifier) = self.notifier.take() {
            tokio::spawn(notifier.run(shared.observer.events.subscribe()));
        }
        if let Some(server) = self.server.take() {
            server.start(page_routes(&self.dashboard, read_only_routes(shared.clone())));
        }
        if let Some(server) = self.metrics.take() {
            server.start(metrics_routes(shared.clone()));
        }
    }

    /// Writes the rest of the history.
    pub(super) fn finish(&self) {
        self.dashboard.finish().unwrap_or_else(|error| warn!("the end of the history is not written: {error}"));
    }
}

/// Passes events on to the viewers of the dashboard.
async fn pass_events(dashboard: Arc<Dashboard>, mut events: Receiver<Event>) {
    loop {
        match events.recv().await {
            Ok(event) => dashboard.send_event(&event),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// Starts the hook's runner, if there is a hook. A failure does not stop the tunnel.
fn notifier(config: &TunnelConfig, user: Option<&User>) -> Option<Notifier> {
    let NotifyConfig { hook, webhook, events } = config.observation.notify.clone()?;
    let hook = hook.and_then(|hook| {
        let started = start_runner(&hook, user);
        started.inspect_err(|error| warn!("the hook {} cannot be started: {error}", hook.display())).ok()
    });
    Some(Notifier { interface: config.interface.name.clone(), events, hook, webhook })
}

/// The file in which the history is kept.
fn history_file(config: &TunnelConfig, user: Option<&User>) -> Option<HistoryFile> {
    let path = match &config.observation.history {
        HistoryTarget::Memory => return None,
        HistoryTarget::File(path) => path.clone(),
        HistoryTarget::StateDirectory => state_directory()?.join(format!("{}.history", config.interface.name)),
    };
    match HistoryFile::open(&path, user) {
        Ok((file, aside)) => {
            if let Some(aside) = aside {
                warn!("{} was not a history of this version, and was renamed to {}", path.display(), aside.display());
            }
            Some(file)
        }
        Err(error) => {
            warn!("{}: {error}; the history is kept in memory, and lost at the end", path.display());
            None
        }
    }
}

/// The file in which quotas are counted. If there are quotas and no state directory, the directory is created.
pub(super) fn quota_file(config: &TunnelConfig, has_quotas: bool, user: Option<&User>) -> Option<PathBuf> {
    if has_quotas && state_directory().is_none() {
        make_state_directory(user).unwrap_or_else(|error| warn!("{STATE_DIRECTORY} cannot be made: {error}"));
    }
    Some(state_directory()?.join(format!("{}.quota", config.interface.name)))
}

/// Creates [`STATE_DIRECTORY`] as `ropewalk setup` does, for the daemon's user only.
fn make_state_directory(user: Option<&User>) -> io::Result<()> {
    let (folder, is_new) = Folder::open_or_make(Path::new(STATE_DIRECTORY), STATE_DIRECTORY_MODE)?;
    match user {
        Some(user) if is_new => folder.set_owner((user.uid.as_raw(), user.gid.as_raw())),
        _ => Ok(()),
    }
}

/// Opens the file that keeps the time of handshakes, before privileges are dropped.
///
/// # Errors
/// The daemon's user does not exist.
pub(crate) fn open_handshake_times(config: &TunnelConfig) -> Result<HandshakeTimes, Error> {
    let user = config.interface.user.as_deref().map(find_user).transpose();
    let user = user.map_err(Error::system("finding the user"))?;
    let path = handshake_times::file(&config.interface.name, state_directory()).filter(|_| config.mpt().is_none());
    let open = |path: PathBuf| HandshakeTimes::open(&path, user.as_ref(), handshake_times::wall_clock());
    Ok(path.map(open).unwrap_or_default())
}

/// The file that keeps the time of a tunnel's handshakes, and a time since 1970 before which no correct clock can be.
#[must_use]
pub fn kept_handshake_time(interface: &str) -> Option<(PathBuf, Duration)> {
    let path = handshake_times::file(interface, state_directory())?;
    let time = handshake_times::kept_time(&path)?;
    Some((path, time))
}

/// systemd's state directory, or [`STATE_DIRECTORY`] if it exists.
fn state_directory() -> Option<PathBuf> {
    let named = std::env::var_os("STATE_DIRECTORY").map(PathBuf::from);
    named.or_else(|| Some(PathBuf::from(STATE_DIRECTORY))).filter(|directory| directory.is_dir())
}

async fn open_dashboard(config: &DashboardConfig, user: Option<&User>) -> io::Result<Server> {
    let token = config.token.clone();
    match &config.address {
        DashboardAddress::Tcp(address) => {
            let server = Server::tcp(*address, token).await?;
            info!("dashboard: http://{}/", server.local_address().unwrap_or(*address));
            Ok(server)
        }
        DashboardAddress::Unix(path) => {
            info!("dashboard: {}", path.display());
            Server::unix(path, user, token)
        }
    }
}
