//! From the configuration to what the data plane is built from.

use super::layout::Layout;
use crate::config::{self, Config, Path, Peer};
use crate::control::Error;
use crate::plane::{
    Carriage, Choice, DeviceSetup, Keepalive, Mode, MptPath, MptSetup, Reorder, RopewalkSetup, Setup, SocketSetup,
};
use ipnet::IpNet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What the data plane begins with; in `ropewalk` mode with this layout. Names are looked up here.
pub(super) fn setup(config: &Config) -> Result<(Setup, Layout), Error> {
    let layout = match &config.mode {
        config::Mode::Mpt(_) => Layout::default(),
        config::Mode::Ropewalk { .. } => Layout::of(config, &Layout::default())?,
    };
    let (mode, sockets) = match &config.mode {
        config::Mode::Mpt(mpt) => {
            let peer = &config.peers[0];
            let remotes = config.paths.iter().map(|path| mpt_remote(path, peer)).collect::<Result<Vec<_>, _>>()?;
            let sockets =
                config.paths.iter().zip(&remotes).map(|(path, remote)| socket(config, path, Some(*remote))).collect();
            (Mode::Mpt(mpt_setup(config, *mpt, peer, &remotes)?), sockets)
        }
        config::Mode::Ropewalk { private_key } => {
            let peers = layout.peers.clone();
            let sockets = layout.sockets.iter().flatten().cloned().collect();
            (Mode::Ropewalk(RopewalkSetup { private: private_key.clone(), peers }), sockets)
        }
    };
    let device = DeviceSetup { name: config.interface.name.clone(), mtu: config.mtu(), offload: offloads(config) };
    Ok((Setup { device, sockets, mode }, layout))
}

pub(super) fn carriage(wanted: &config::Carriage) -> Carriage {
    let choice = |it: &config::Choice| Choice { name: it.name.clone(), parameters: it.parameters.clone() };
    Carriage {
        scheduler: choice(&wanted.scheduler),
        congestion: wanted.congestion.as_ref().map(choice),
        repair: wanted.repair,
        order: wanted.order,
        deliver_late: wanted.late == config::Late::Deliver,
        hold_most: wanted.max_hold,
    }
}

/// What the device says; Ethernet's where none is named.
pub(super) fn device_mtu(device: Option<&str>) -> u16 {
    let text = device.and_then(|device| std::fs::read_to_string(format!("/sys/class/net/{device}/mtu")).ok());
    text.and_then(|text| text.trim().parse::<u32>().ok()).map_or(1500, |mtu| mtu.min(u16::MAX.into()) as u16)
}

fn mpt_remote(path: &Path, peer: &Peer) -> Result<SocketAddr, Error> {
    let missing = || system(path, io::Error::new(io::ErrorKind::NotFound, "MPT needs an endpoint"));
    let endpoint = path.endpoint.as_ref().or(peer.endpoint.as_ref()).ok_or_else(missing)?;
    endpoint.resolve(path.source).map(|all| all[0]).map_err(|error| system(path, error))
}

pub(super) fn system(path: &Path, cause: io::Error) -> Error {
    Error::System { what: format!("path {}", path.name), cause }
}

/// Only MPT's mode can do without.
fn offloads(config: &Config) -> bool {
    !matches!(&config.mode, config::Mode::Mpt(mpt) if !mpt.offload)
}

pub(super) fn socket(config: &Config, path: &Path, remote: Option<SocketAddr>) -> SocketSetup {
    let any = if remote.is_none_or(|remote| remote.is_ipv4()) {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    } else {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    };
    SocketSetup {
        name: path.name.clone(),
        interface: path.interface.clone(),
        bind: SocketAddr::new(path.source.unwrap_or(any), path.listen_port),
        mark: None,
        offload: offloads(config),
    }
}

fn mpt_setup(config: &Config, mpt: config::Mpt, peer: &Peer, remotes: &[SocketAddr]) -> Result<MptSetup, Error> {
    let none = || Error::System { what: "the peer's address".into(), cause: io::ErrorKind::AddrNotAvailable.into() };
    let remote = peer.address.ok_or_else(none)?;
    let addresses = config.interface.addresses.iter().map(IpNet::addr);
    let local = addresses.into_iter().find(|it| it.is_ipv4() == remote.is_ipv4()).ok_or_else(none)?;
    let reorder = (config.carriage.order && mpt.reorder_window > 0).then(|| Reorder {
        window: mpt.reorder_window,
        timeout: config.carriage.max_hold.unwrap_or_default(),
        deliver_late: config.carriage.late == config::Late::Deliver,
    });
    let keepalive = mpt.keepalive.map(|interval| Keepalive { interval, dead: mpt.dead });
    let paths = config.paths.iter().zip(remotes).enumerate().map(|(socket, (path, remote))| MptPath {
        name: path.name.clone(),
        socket,
        remote: *remote,
        weight: path.weight,
        keepalive,
    });
    Ok(MptSetup {
        local,
        remote,
        scheduler: config.carriage.scheduler.name.clone(),
        sequence: true,
        holds_back: !mpt.offload,
        reorder,
        paths: paths.collect(),
    })
}
