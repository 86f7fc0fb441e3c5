//! Changing the configuration of a running tunnel, all or nothing.
//!
//! New addresses, routes and the MTU are set first. Then the data plane changes; if it refuses, they are removed again.
//! Old ones are removed last. So a network that moves from one peer to another keeps its route, and at any time one of
//! the two configurations is in force as a whole.

use super::clients::Clients;
use super::diagnosis::Devices;
use super::events::unix_ms;
use super::expiry::Expiry;
use super::handle::DataPlaneHandle;
use super::lost_uplinks::SeenUplinks;
use super::metered::SystemBus;
use super::monitor::Observer;
use super::network::{Network, route_halves};
use super::overlaps::overlaps;
use super::policy_routing::PolicyRouting;
use super::run_folder::RunFolder;
use super::server::{Refusal, Request, request_status};
use super::state_file::{OpenStateFile, StateFile};
use super::supervisor::restart_command;
use super::uplinks::{FoundUplinks, default_routes, find_uplinks};
use crate::config::{self, ConfigChange, ConfiguredPath, ConfiguredPeer, TunnelConfig};
use crate::event::{Event, EventKind, EventLevel};
use crate::handshake_times::HandshakeTimes;
use crate::quota::QuotaKeeper;
use crate::speed_test::Responder;
use crate::status::{Notice, UplinkStatus};
use ipnet::IpNet;
use machine::MAX_PATHS;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::warn;

/// Configuration of the control loop.
pub struct ControlConfig {
    /// The tunnel's configuration in force.
    pub config: TunnelConfig,
    /// The file, an absolute path.
    pub file: PathBuf,
    /// The directory of sockets and state files.
    pub folder: RunFolder,
    /// The version of the program, for the status.
    pub program_version: String,
    /// The time that no handshake has reached yet.
    pub(crate) handshake_times: HandshakeTimes,
}

/// The part of a configuration that is set in the kernel: addresses, routes and the MTU.
struct KernelState {
    addresses: BTreeSet<IpNet>,
    routes: BTreeSet<IpNet>,
    mtu: u16,
}

impl KernelState {
    fn from_config(config: &TunnelConfig) -> Self {
        let networks = config.peers.iter().flat_map(|peer| &peer.allowed_ips).filter(|_| config.interface.routes);
        Self {
            addresses: config.interface.addresses.iter().copied().collect(),
            routes: networks.flat_map(|network| route_halves(*network)).collect(),
            mtu: config.mtu(),
        }
    }
}

/// Applies requests that change the configuration.
pub(super) struct Reloader {
    pub(super) control: ControlConfig,
    pub(super) network: Network,
    pub(super) state: StateFile,
    pub(super) state_file: OpenStateFile,
    /// The configuration to restore after a test of one path alone, and the latest time for that.
    pub(super) alone: Option<(TunnelConfig, Instant)>,
    pub(super) policy_routing: PolicyRouting,
    pub(super) observer: Arc<Observer>,
    pub(super) seen_uplinks: SeenUplinks,
    pub(super) system_bus: SystemBus,
    pub(super) quotas: QuotaKeeper,
    /// The responder to speed tests of peers, if they are answered.
    pub(super) responder: Option<Arc<Responder>>,
    /// Whether the latest change because of a quota failed, which was reported.
    pub(super) has_quota_failed: bool,
    /// Devices with a default route that are not paths.
    pub(super) left_out: Vec<Notice>,
    pub(super) expiry: Expiry,
    /// What clients say of themselves.
    pub(super) clients: Arc<Clients>,
}

/// The longest time for which a path is alone without another request for it.
const ALONE_LEASE: Duration = Duration::from_secs(60);

impl Reloader {
    /// Carries out a request; returns the changes, one line each, or why nothing changed.
    pub(super) async fn handle(
        &mut self,
        request: &Request,
        data_plane: &dyn DataPlaneHandle,
    ) -> Result<String, Refusal> {
        if let Request::PathAlone(name) = request {
            return self.make_alone(name, data_plane).await.map_err(Refusal::Other);
        }
        let ended = self.end_alone(data_plane).await;
        let file = &self.control.file;
        let new_config = match request {
            Request::Down => return Ok(String::new()),
            Request::Hello(source, hello) => return self.greet(*source, hello),
            Request::Enrol(source, client) => return self.enrol(*source, client),
            Request::Rotate(source, client) => return self.rotate(*source, client),
            Request::EndEnrolment => self.rotated_config(),
            Request::AllPaths | Request::PathAlone(_) => return ended.map_err(Refusal::Other),
            Request::Reload => config::load(file).map_err(|errors| Refusal::Configuration(errors.to_string()))?,
            Request::AddPath(table) => {
                let unreadable = |error| Refusal::Other(format!("{}: {error}", file.display()));
                let text = std::fs::read_to_string(file).map_err(unreadable)?;
                let text = format!("{text}\n{table}\n");
                let config = config::parse(&file.display().to_string(), &text, file);
                config.map_err(|errors| Refusal::Configuration(errors.to_string()))?
            }
            Request::RemovePath(name) => {
                let mut config = self.control.config.clone();
                config.paths.retain(|path| path.name != *name);
                if config.paths.len() == self.control.config.paths.len() {
                    return Err(Refusal::Other(format!("there is no path `{name}`\n")));
                }
                if config.paths.is_empty() {
                    return Err(Refusal::Other(format!("`{name}` is the only path: add another one first\n")));
                }
                config
            }
        };
        let new_config = self.with_uplinks(new_config).await.map_err(Refusal::Other)?;
        self.change_to(new_config, data_plane).await.map_err(Refusal::Other)
    }

    /// Makes backups of all paths but `name`, also of those that are backups already, until [`Reloader::end_alone`]. They are
    /// metered and without the real-time class, so that neither end sends packets of that class or copies on them.
    async fn make_alone(&mut self, name: &str, data_plane: &dyn DataPlaneHandle) -> Result<String, String> {
        let normal = self.alone.as_ref().map_or(&self.control.config, |(normal, _)| normal).clone();
        let mut config = normal.clone();
        if config.mpt().is_some() {
            return Err("a path cannot be tested alone in `mpt` mode: its ends agree on the paths\n".into());
        }
        if !config.paths.iter().any(|path| path.name == *name) {
            return Err(format!("there is no path `{name}`\n"));
        }
        for path in &mut config.paths {
            path.backup = path.name != *name;
            path.metered = path.backup;
            path.classes = if path.backup { machine::PathClasses::Bulk } else { machine::PathClasses::All };
        }
        self.alone = Some((normal, Instant::now() + ALONE_LEASE));
        self.change_to(config, data_plane).await.map(|_| format!("{name} carries data alone\n"))
    }

    /// Returns to the configuration in which no path is alone.
    async fn end_alone(&mut self, data_plane: &dyn DataPlaneHandle) -> Result<String, String> {
        match self.alone.take() {
            Some((config, _)) => {
                self.change_to(config, data_plane).await.map(|_| "all paths carry data again\n".into())
            }
            None => Ok("no path was alone\n".into()),
        }
    }

    /// `config` with the present uplinks. Lost ones are shown as such from now on.
    async fn with_uplinks(&mut self, config: TunnelConfig) -> Result<TunnelConfig, String> {
        let routes = default_routes(&self.network.routes()).await;
        let routes = routes.map_err(|error| format!("finding uplinks: {error}\n"))?;
        let told =
            if config.interface.uplinks.is_some() { self.system_bus.metered(&routes).await } else { &BTreeMap::new() };
        let devices = Devices::read();
        let FoundUplinks { config, left_out } = find_uplinks(config, &routes, &devices, told);
        self.left_out = left_out;
        self.observer.set_notices([overlaps(&config, &devices), self.left_out.clone()].concat());
        let events = self.seen_uplinks.update(&config, &routes, &devices, std::time::Instant::now());
        events.into_iter().for_each(|event| self.observer.events.push(event));
        // The path of an uplink that was found again does not exist yet.
        self.observer.extend_lost(self.seen_uplinks.lost(&config, &devices));
        Ok(config)
    }

    /// Updates the notices about things on this host that limit the use of the tunnel.
    pub(super) fn update_notices(&self) {
        let overlaps = overlaps(&self.control.config, &Devices::read());
        self.observer.set_notices([overlaps, self.left_out.clone()].concat());
    }

    /// Whether changes of the host's routes concern the tunnel.
    pub(super) fn follows_routes(&self) -> bool {
        let interface = &self.control.config.interface;
        interface.uplinks.is_some() || interface.policy_routing
    }

    /// Follows a change of the host's devices and routes: adds and removes paths with their uplinks, and adds routes
    /// for them. Returns the changes.
    pub(super) async fn follow_routes(&mut self, data_plane: &dyn DataPlaneHandle) -> Vec<Event> {
        // A path that is alone stays so until its time is over.
        if self.alone.is_some() {
            return Vec::new();
        }
        let mut events = Vec::new();
        let found = self.with_uplinks(self.control.config.clone()).await;
        match found {
            Ok(mut new_config) => {
                self.mark_over_quota(&mut new_config);
                let old_paths = self.control.config.paths.clone();
                if new_config.paths != old_paths {
                    match self.change_to(new_config, data_plane).await {
                        Ok(_) => events.extend(uplink_events(&old_paths, &self.control.config.paths)),
                        Err(error) => {
                            events.push(warning(format!("the uplinks are not changed: {}", error.trim_end())));
                        }
                    }
                }
            }
            Err(error) => events.push(warning(error)),
        }
        self.observer.set_lost(self.seen_uplinks.lost(&self.control.config, &Devices::read()));
        events.extend(self.update_policy_routing(data_plane).await);
        events
    }

    /// Sets up missing policy routing for paths.
    pub(super) async fn update_policy_routing(&mut self, data_plane: &dyn DataPlaneHandle) -> Vec<Event> {
        if !self.control.config.interface.policy_routing {
            return Vec::new();
        }
        let Some(status) = request_status(data_plane).await else { return Vec::new() };
        let remotes = status.paths().filter(|(_, path)| !path.opened_by_peer);
        let remotes = remotes.filter_map(|(_, path)| Some((path.name.clone(), path.remote.as_ref()?.parse().ok()?)));
        match self.policy_routing.update(&self.control.config, &remotes.collect()).await {
            Ok(added) => {
                added.into_iter().map(|line| Event::new(EventLevel::Info, EventKind::UplinkAdded, line)).collect()
            }
            Err(error) => vec![warning(format!("no policy routing: {error}"))],
        }
    }

    /// Marks the paths that are over their quotas. Does nothing while one path is tested alone, because it must be the
    /// only one that is not a backup.
    fn mark_over_quota(&self, config: &mut TunnelConfig) {
        for path in &mut config.paths {
            path.over_quota = self.alone.is_none() && self.quotas.is_exceeded(&path.name);
        }
    }

    /// Counts the traffic of the paths, and makes those over their quotas backups; others are used as configured again.
    /// Reports the changes.
    pub(super) async fn follow_quotas(&mut self, uplinks: &[UplinkStatus], data_plane: &dyn DataPlaneHandle) {
        let events = self.quotas.update(unix_ms() / 1000, &self.control.config.paths, uplinks);
        events.into_iter().for_each(|event| self.observer.events.push(event));
        self.observer.set_quotas(self.quotas.statuses());
        let mut marked = self.control.config.clone();
        self.mark_over_quota(&mut marked);
        if marked.paths == self.control.config.paths {
            return;
        }
        let error = self.change_to(marked, data_plane).await.err();
        let has_failed = std::mem::replace(&mut self.has_quota_failed, error.is_some());
        if let (Some(error), false) = (error, has_failed) {
            let message = format!("paths are not used as their quotas say: {}", error.trim_end());
            self.observer.events.push(Event::new(EventLevel::Warn, EventKind::Quota, message));
        }
    }

    /// Changes the configuration in force to `new_config`. If a peer cannot have the old and the new paths together, the old
    /// ones are removed first.
    pub(super) async fn change_to(
        &mut self,
        new_config: TunnelConfig,
        data_plane: &dyn DataPlaneHandle,
    ) -> Result<String, String> {
        let is_old = |path: &ConfiguredPath| self.control.config.paths.iter().any(|old| old.name == path.name);
        let new = new_config.paths.iter().filter(|path| !is_old(path)).count();
        let mut removed = String::new();
        if new > 0 && self.control.config.paths.len() + new > MAX_PATHS {
            let mut fewer = new_config.clone();
            fewer.paths.retain(is_old);
            removed = self.change_at_once(fewer, data_plane).await?;
        }
        Ok(removed + &self.change_at_once(new_config, data_plane).await?)
    }

    async fn change_at_once(
        &mut self,
        mut new_config: TunnelConfig,
        data_plane: &dyn DataPlaneHandle,
    ) -> Result<String, String> {
        self.mark_over_quota(&mut new_config);
        let changes = config::diff(&self.control.config, &new_config);
        if let Some(ConfigChange::NeedsRestart(keys)) = changes.last() {
            let name = &self.control.config.interface.name;
            let (keys, restart) = (keys.join(", "), restart_command(name, std::process::id()));
            return Err(format!("{keys} changed, which needs a restart: {restart}\n"));
        }
        new_config.warnings.iter().for_each(|warning| warn!("{warning}"));
        if changes.is_empty() {
            return Ok("nothing changed\n".into());
        }
        let (old_state, new_state) =
            (KernelState::from_config(&self.control.config), KernelState::from_config(&new_config));
        let outcome = match self.add(&old_state, &new_state).await {
            Ok(()) => change_data_plane(data_plane, &new_config).await,
            Err(error) => Err(error.to_string()),
        };
        let (removal, result) = match outcome {
            Ok(waiting) => (self.remove(&old_state, &new_state).await, Ok(describe_changes(&changes, &waiting))),
            Err(error) => (self.remove(&new_state, &old_state).await, Err(format!("{error}\n"))),
        };
        removal.unwrap_or_else(|error| warn!("not removed: {error}"));
        if result.is_ok() {
            self.control.config = new_config;
            let config = &self.control.config;
            let peers = || config.peers.iter().map(|peer| &peer.allowed_ips[..]);
            self.responder.iter().for_each(|responder| responder.set_networks(&config.interface.addresses, peers()));
        }
        let write_result = self.state_file.write(&self.state);
        write_result.unwrap_or_else(|error| warn!("the state file is not written: {error}"));
        result
    }

    /// Adds the routes of the configuration, at the start.
    pub(super) async fn add_routes(&mut self) -> io::Result<()> {
        let new = KernelState::from_config(&self.control.config);
        let old = KernelState { addresses: new.addresses.clone(), routes: BTreeSet::new(), mtu: new.mtu };
        self.add(&old, &new).await
    }

    /// Adds the addresses and routes that `new` has and `old` does not.
    async fn add(&mut self, old: &KernelState, new: &KernelState) -> io::Result<()> {
        let device = &self.control.config.interface.name;
        for address in new.addresses.difference(&old.addresses) {
            self.network.add_address(device, *address).await?;
        }
        for route in new.routes.difference(&old.routes) {
            self.network.add_route(device, *route).await?;
            self.state.routes.push(route.to_string());
        }
        if new.mtu != old.mtu {
            self.network.set_mtu(device, new.mtu).await?;
        }
        Ok(())
    }

    /// Removes the addresses and routes that `old` has and `new` does not.
    async fn remove(&mut self, old: &KernelState, new: &KernelState) -> io::Result<()> {
        let device = &self.control.config.interface.name;
        for route in old.routes.difference(&new.routes) {
            self.network.remove_route(device, *route).await?;
            self.state.routes.retain(|added| *added != route.to_string());
        }
        if new.mtu != old.mtu {
            self.network.set_mtu(device, new.mtu).await?;
        }
        if old.addresses.is_subset(&new.addresses) {
            return Ok(());
        }
        for address in old.addresses.difference(&new.addresses) {
            self.network.remove_address(device, *address).await?;
        }
        // The kernel may also have removed other addresses of the same network, and routes with the last one.
        for address in &new.addresses {
            self.network.add_address(device, *address).await?;
        }
        for route in &new.routes {
            self.network.add_route(device, *route).await?;
        }
        Ok(())
    }
}

/// Waits for the end of [`Reloader::alone`].
pub(super) async fn alone_ends(alone: Option<&(TunnelConfig, Instant)>) {
    match alone {
        Some((_, end)) => tokio::time::sleep_until(*end).await,
        None => std::future::pending().await,
    }
}

fn warning(message: String) -> Event {
    Event::new(EventLevel::Warn, EventKind::UplinkRemoved, message)
}

/// The events about new uplinks.
fn uplink_events(old: &[ConfiguredPath], new: &[ConfiguredPath]) -> Vec<Event> {
    let is_in = |paths: &[ConfiguredPath], path: &ConfiguredPath| paths.iter().any(|other| other.name == path.name);
    let come = new.iter().filter(|path| !is_in(old, path));
    come.map(|path| {
        let metered = "an uplink with a default route; metered, so a backup";
        let message = if path.metered { metered } else { "an uplink with a default route" };
        Event { path: Some(path.name.clone()), ..Event::new(EventLevel::Info, EventKind::UplinkAdded, message) }
    })
    .collect()
}

/// Changes the data plane; returns the paths that wait for their device.
async fn change_data_plane(data_plane: &dyn DataPlaneHandle, config: &TunnelConfig) -> Result<Vec<String>, String> {
    let (sender, receiver) = oneshot::channel();
    let reply = move |result| {
        // The receiver below waits until it is sent.
        let _ = sender.send(result);
    };
    data_plane.change(config, Box::new(reply));
    receiver.await.unwrap_or_else(|_| Err("the data plane does not answer".into()))
}

/// Describes the changes, one line each.
fn describe_changes(changes: &[ConfigChange], waiting: &[String]) -> String {
    let key_text = |peer: &ConfiguredPeer| {
        let name = peer.name.as_ref().map_or_else(String::new, |name| format!("{name} "));
        peer.public_key.map_or_else(|| "(mpt)".into(), |key| format!("{name}{key}"))
    };
    let line = |change: &ConfigChange| match change {
        ConfigChange::RemovePath(name) => format!("path {name}: removed\n"),
        ConfigChange::AddPath(path) if waiting.contains(&path.name) => {
            format!("path {}: added; waiting for its device or its address\n", path.name)
        }
        ConfigChange::AddPath(path) => format!("path {}: added\n", path.name),
        ConfigChange::SetPath(path) => format!("path {}: changed\n", path.name),
        ConfigChange::SetPeer(peer, keys) => format!("peer {}: {} changed\n", key_text(peer), keys.join(", ")),
        ConfigChange::AddPeer(peer) => format!("peer {}: added\n", key_text(peer)),
        ConfigChange::RemovePeer(peer) => format!("peer {}: removed\n", key_text(peer)),
        ConfigChange::SetInterface(keys) | ConfigChange::NeedsRestart(keys) => format!("{} changed\n", keys.join(", ")),
    };
    changes.iter().map(line).collect()
}
