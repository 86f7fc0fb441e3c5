//! Makes the data plane's configuration from the tunnel's.

use super::path_assignment::{PathAssignment, path_error, socket_config};
use crate::config::{ConfiguredPath, ConfiguredPeer, Mode, MptOptions, TunnelConfig};
use crate::control_plane::Error;
use crate::data_plane::{
    DataPlaneConfig, DeviceConfig, EngineConfig, EventSender, MptConfig, MptPathConfig, RopewalkConfig, SocketConfig,
};
use ipnet::IpNet;
use mpt::{KeepaliveConfig, ReorderConfig};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tracing::warn;

/// The first and the longest wait before a name is resolved again; each wait is twice the previous one.
const RESOLVE_WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// The configurations that the data threads start with, and the assignment that they contain (empty in `mpt` mode).
/// Resolves host names. Handshakes
/// carry no earlier time than `earliest_handshake`; events are sent to `events`.
///
/// # Errors
/// There are too many paths.
pub(super) fn data_plane_config(
    config: &TunnelConfig,
    earliest_handshake: u64,
    events: &EventSender,
) -> Result<(Vec<DataPlaneConfig>, PathAssignment), Error> {
    let mut assignment = PathAssignment::default();
    let (engines, sockets): (Vec<EngineConfig>, Vec<SocketConfig>) = match &config.mode {
        Mode::Mpt(options) => {
            let peer = &config.peers[0];
            let remotes =
                config.paths.iter().map(|path| mpt_peer_address(path, peer)).collect::<Result<Vec<_>, _>>()?;
            let sockets =
                config.paths.iter().zip(&remotes).map(|(path, remote)| socket_config(config, path, Some(*remote)));
            (vec![EngineConfig::Mpt(mpt_config(config, *options, peer, &remotes)?)], sockets.collect())
        }
        Mode::Ropewalk { private_key } => {
            assignment = PathAssignment::new(config, &PathAssignment::default(), &BTreeSet::new())?;
            let engine = |thread: usize| {
                let (peers, other_peers) = assignment.split(thread as u8);
                let (private_key, realtime, relay) =
                    (private_key.clone(), config.realtime.clone(), config.relay.clone());
                EngineConfig::Ropewalk(RopewalkConfig {
                    private_key,
                    peers,
                    other_peers,
                    realtime,
                    relay,
                    earliest_handshake,
                })
            };
            ((0..assignment.threads).map(engine).collect(), assignment.sockets.iter().flatten().cloned().collect())
        }
    };
    let offload = config.mpt().is_none_or(|mpt| mpt.offload);
    let device = DeviceConfig { name: config.interface.name.clone(), mtu: config.mtu(), offload };
    let data_plane = |engine| {
        let (device, sockets, events) = (device.clone(), sockets.clone(), events.clone());
        DataPlaneConfig { device, sockets, engine, events }
    };
    Ok((engines.into_iter().map(data_plane).collect(), assignment))
}

fn mpt_peer_address(path: &ConfiguredPath, peer: &ConfiguredPeer) -> Result<SocketAddr, Error> {
    let missing = || path_error(path, io::Error::new(io::ErrorKind::NotFound, "MPT needs an endpoint"));
    let endpoint = path.endpoint.as_ref().or(peer.endpoint.as_ref()).ok_or_else(missing)?;
    // MPT's paths are fixed from the start, so the start waits for the addresses: at boot the network may come up
    // later.
    let mut wait = RESOLVE_WAITS[0];
    loop {
        match endpoint.resolve(path.source) {
            Ok(addresses) => return Ok(addresses[0]),
            Err(error) => {
                if !endpoint.is_numeric() {
                    let name = &path.name;
                    warn!(
                        "path {name}: endpoint {endpoint} has no address: {error}; tried again in {} s",
                        wait.as_secs()
                    );
                    std::thread::sleep(wait);
                    wait = (wait * 2).min(RESOLVE_WAITS[1]);
                    continue;
                }
                return Err(path_error(path, error));
            }
        }
    }
}

fn mpt_config(
    config: &TunnelConfig,
    mpt: MptOptions,
    peer: &ConfiguredPeer,
    remotes: &[SocketAddr],
) -> Result<MptConfig, Error> {
    let missing =
        || Error::System { action: "the peer's address".into(), cause: io::ErrorKind::AddrNotAvailable.into() };
    let remote = peer.address.ok_or_else(missing)?;
    let mut addresses = config.interface.addresses.iter().map(IpNet::addr);
    let local = addresses.find(|address| address.is_ipv4() == remote.is_ipv4()).ok_or_else(missing)?;
    let options = &config.options;
    let reorder = (options.in_order && mpt.reorder_window > 0).then_some(ReorderConfig {
        window: mpt.reorder_window,
        timeout: options.max_reorder_timeout,
        deliver_late: options.deliver_late,
    });
    let path_config = |(socket, (path, remote)): (usize, (&ConfiguredPath, &SocketAddr))| MptPathConfig {
        name: path.name.clone(),
        socket,
        remote: *remote,
        weight: path.weight,
    };
    Ok(MptConfig {
        peer_name: peer.name.clone(),
        local,
        remote,
        allowed_ips: peer.allowed_ips.clone(),
        scheduler: options.scheduler.clone(),
        backpressure: !mpt.offload,
        reorder,
        keepalive: mpt
            .keepalive_time
            .map(|keepalive_time| KeepaliveConfig { keepalive_time, dead_time: mpt.dead_time }),
        paths: config.paths.iter().zip(remotes).enumerate().map(path_config).collect(),
    })
}
