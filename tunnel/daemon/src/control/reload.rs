//! From one configuration to another while the tunnel runs: all of it, or nothing.
//!
//! What is new in the kernel (addresses, routes, the MTU) is set first, then the data plane goes over, or refuses and the new
//! is taken away again; what is old goes last. So a network that moves from one peer to another keeps its route, and no
//! packet meets a host that has less than one of the two configurations.

use super::network::route_halves;
use super::plane::DataPlane;
use super::run::Daemon;
use super::server::Demand;
use crate::config::{self, Change, Config, Peer, changes};
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::io;
use tokio::sync::oneshot;
use tracing::warn;

/// What a configuration sets in the kernel.
struct Kernel {
    addresses: BTreeSet<IpNet>,
    routes: BTreeSet<IpNet>,
    mtu: u16,
}

impl Kernel {
    fn of(config: &Config) -> Self {
        let networks = config.peers.iter().flat_map(|peer| &peer.allowed_ips).filter(|_| config.interface.routes);
        Self {
            addresses: config.interface.addresses.iter().copied().collect(),
            routes: networks.flat_map(|network| route_halves(*network)).collect(),
            mtu: config.mtu(),
        }
    }
}

impl Daemon {
    /// Carries a demand out; says what was done, or why nothing was.
    pub(super) async fn obey(&mut self, demand: &Demand, plane: &dyn DataPlane) -> Result<String, String> {
        let file = &self.control.file;
        let wanted = match demand {
            Demand::Down => return Ok(String::new()),
            Demand::Reload => config::load(file).map_err(|faults| faults.to_string())?,
            Demand::AddPath(table) => {
                let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
                let text = format!("{text}\n{table}\n");
                config::parse(&file.display().to_string(), &text, file).map_err(|faults| faults.to_string())?
            }
            Demand::RemovePath(name) => {
                let mut wanted = self.control.config.clone();
                wanted.paths.retain(|path| path.name != *name);
                if wanted.paths.len() == self.control.config.paths.len() {
                    return Err(format!("there is no path `{name}`\n"));
                }
                if wanted.paths.is_empty() {
                    return Err(format!("`{name}` is the only path: add another one first\n"));
                }
                wanted
            }
        };
        self.change_to(wanted, plane).await
    }

    /// Goes from the configuration in force to `wanted`.
    async fn change_to(&mut self, wanted: Config, plane: &dyn DataPlane) -> Result<String, String> {
        let steps = changes(&self.control.config, &wanted);
        if let Some(Change::NeedsRestart(keys)) = steps.last() {
            let name = &self.control.config.interface.name;
            let keys = keys.join(", ");
            return Err(format!("{keys} changed, which needs a restart: `ropewalk down {name}`, then `up`\n"));
        }
        wanted.warnings.iter().for_each(|warning| warn!("{warning}"));
        if steps.is_empty() {
            return Ok("nothing changed\n".into());
        }
        let (old, new) = (Kernel::of(&self.control.config), Kernel::of(&wanted));
        let changed = match self.add(&old, &new).await {
            Ok(()) => ask(plane, &wanted).await,
            Err(error) => Err(error.to_string()),
        };
        let (left, outcome) = match changed {
            Ok(waiting) => (self.remove(&old, &new).await, Ok(told(&steps, &waiting))),
            Err(why) => (self.remove(&new, &old).await, Err(format!("{why}\n"))),
        };
        left.unwrap_or_else(|error| warn!("left behind: {error}"));
        if outcome.is_ok() {
            self.control.config = wanted;
        }
        let written = self.state.write(&self.control.folder);
        written.unwrap_or_else(|error| warn!("the state file is not written: {error}"));
        outcome
    }

    /// At the start: everything is new.
    pub(super) async fn add_routes(&mut self) -> io::Result<()> {
        let new = Kernel::of(&self.control.config);
        let old = Kernel { addresses: new.addresses.clone(), routes: BTreeSet::new(), mtu: new.mtu };
        self.add(&old, &new).await
    }

    /// Adds what `new` has and `old` has not.
    async fn add(&mut self, old: &Kernel, new: &Kernel) -> io::Result<()> {
        let name = &self.control.config.interface.name;
        for address in new.addresses.difference(&old.addresses) {
            self.network.add_address(name, *address).await?;
        }
        for route in new.routes.difference(&old.routes) {
            self.network.add_route(name, *route).await?;
            self.state.routes.push(route.to_string());
        }
        if new.mtu != old.mtu {
            self.network.set_mtu(name, new.mtu).await?;
        }
        Ok(())
    }

    /// Takes away what `old` has and `new` has not.
    async fn remove(&mut self, old: &Kernel, new: &Kernel) -> io::Result<()> {
        let name = &self.control.config.interface.name;
        for route in old.routes.difference(&new.routes) {
            self.network.remove_route(name, *route).await?;
            self.state.routes.retain(|known| *known != route.to_string());
        }
        if new.mtu != old.mtu {
            self.network.set_mtu(name, new.mtu).await?;
        }
        if old.addresses.is_subset(&new.addresses) {
            return Ok(());
        }
        for address in old.addresses.difference(&new.addresses) {
            self.network.remove_address(name, *address).await?;
        }
        // The kernel may have taken others of the same network along, and routes with the last one.
        for address in &new.addresses {
            self.network.add_address(name, *address).await?;
        }
        for route in &new.routes {
            self.network.add_route(name, *route).await?;
        }
        Ok(())
    }
}

/// Has the data plane go over; the paths that wait for their device.
async fn ask(plane: &dyn DataPlane, wanted: &Config) -> Result<Vec<String>, String> {
    let (answer, asked) = oneshot::channel();
    plane.change(
        wanted,
        Box::new(move |done| {
            // The control loop waits for nothing else.
            let _ = answer.send(done);
        }),
    );
    asked.await.unwrap_or_else(|_| Err("the data plane does not answer".into()))
}

/// What was done, a line each.
fn told(steps: &[Change], waiting: &[String]) -> String {
    let key = |peer: &Peer| peer.public_key.map_or_else(|| "(mpt)".into(), |key| key.to_string());
    let line = |step: &Change| match step {
        Change::RemovePath(name) => format!("path {name}: removed\n"),
        Change::AddPath(path) if waiting.contains(&path.name) => {
            format!("path {}: added; it waits for its device or its address\n", path.name)
        }
        Change::AddPath(path) => format!("path {}: added\n", path.name),
        Change::SetPath(path) => format!("path {}: changed\n", path.name),
        Change::SetPeer(peer, keys) => format!("peer {}: {} changed\n", key(peer), keys.join(", ")),
        Change::AddPeer(peer) => format!("peer {}: added\n", key(peer)),
        Change::RemovePeer(peer) => format!("peer {}: removed\n", key(peer)),
        Change::SetInterface(keys) | Change::NeedsRestart(keys) => format!("{} changed\n", keys.join(", ")),
    };
    steps.iter().map(line).collect()
}
