//! Changing the configuration of a running tunnel, all or nothing.
//!
//! New addresses, routes and the MTU are set first; then the data plane changes, or refuses and they are removed again;
//! old ones are removed last. So a network that moves from one peer to another keeps its route, and at any time one of
//! the two configurations is in force as a whole.

use super::handle::DataPlaneHandle;
use super::network::{Network, route_halves};
use super::run_folder::RunFolder;
use super::server::Request;
use super::state_file::{OpenStateFile, StateFile};
use crate::config::{self, ConfigChange, ConfiguredPeer, TunnelConfig};
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use tokio::sync::oneshot;
use tracing::warn;

/// Configuration of the control loop.
pub struct ControlConfig {
    /// The tunnel's configuration in force.
    pub config: TunnelConfig,
    /// The file, an absolute path.
    pub file: PathBuf,
    /// The directory of sockets and state files.
    pub folder: RunFolder,
}

/// The part of a configuration that is set in the kernel.
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
}

impl Reloader {
    /// Carries a request out; returns the changes, one line each, or why nothing changed.
    pub(super) async fn handle(
        &mut self,
        request: &Request,
        data_plane: &dyn DataPlaneHandle,
    ) -> Result<String, String> {
        let file = &self.control.file;
        let new_config = match request {
            Request::Down => return Ok(String::new()),
            Request::Reload => config::load(file).map_err(|errors| errors.to_string())?,
            Request::AddPath(table) => {
                let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
                let text = format!("{text}\n{table}\n");
                config::parse(&file.display().to_string(), &text, file).map_err(|errors| errors.to_string())?
            }
            Request::RemovePath(name) => {
                let mut config = self.control.config.clone();
                config.paths.retain(|path| path.name != *name);
                if config.paths.len() == self.control.config.paths.len() {
                    return Err(format!("there is no path `{name}`\n"));
                }
                if config.paths.is_empty() {
                    return Err(format!("`{name}` is the only path: add another one first\n"));
                }
                config
            }
        };
        self.change_to(new_config, data_plane).await
    }

    /// Changes the configuration in force to `new_config`.
    async fn change_to(
        &mut self,
        new_config: TunnelConfig,
        data_plane: &dyn DataPlaneHandle,
    ) -> Result<String, String> {
        let changes = config::diff(&self.control.config, &new_config);
        if let Some(ConfigChange::NeedsRestart(keys)) = changes.last() {
            let name = &self.control.config.interface.name;
            let keys = keys.join(", ");
            return Err(format!("{keys} changed, which needs a restart: `ropewalk down {name}`, then `up`\n"));
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

    /// Adds what `new` has and `old` does not.
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

    /// Removes what `old` has and `new` does not.
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
        // The kernel may have removed others of the same network too, and routes with the last one.
        for address in &new.addresses {
            self.network.add_address(device, *address).await?;
        }
        for route in &new.routes {
            self.network.add_route(device, *route).await?;
        }
        Ok(())
    }
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
    let key_text = |peer: &ConfiguredPeer| peer.public_key.map_or_else(|| "(mpt)".into(), |key| key.to_string());
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
