//! From the configuration to what the data plane is built from.

use crate::config::{self, Config, Endpoint, Path, Peer};
use crate::control::Error;
use crate::plane::{DeviceSetup, Keepalive, Mode, MptPath, MptSetup, Reorder, Setup, SocketSetup};
use ipnet::IpNet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// MPT's own default, bytes.
const MPT_MTU: u16 = 1440;

/// Names are looked up here, once.
pub(super) fn setup(config: &Config) -> Result<Setup, Error> {
    let config::Mode::Mpt(mpt) = &config.mode else {
        let cause = io::Error::new(io::ErrorKind::Unsupported, "this build carries mode = \"mpt\" only");
        return Err(Error::System { what: "choosing the data plane".into(), cause });
    };
    let peer = &config.peers[0];
    let remotes = config.paths.iter().map(|path| remote(path, peer)).collect::<Result<Vec<_>, _>>()?;
    let interface = &config.interface;
    Ok(Setup {
        device: DeviceSetup { name: interface.name.clone(), mtu: interface.mtu.unwrap_or(MPT_MTU), offload: true },
        sockets: config.paths.iter().zip(&remotes).map(|(path, remote)| socket(path, *remote)).collect(),
        mode: Mode::Mpt(mpt_setup(config, *mpt, peer, &remotes)?),
    })
}

/// Where the peer is reached over `path`.
fn remote(path: &Path, peer: &Peer) -> Result<SocketAddr, Error> {
    let missing =
        || system(path, io::Error::new(io::ErrorKind::NotFound, "neither the path nor the peer has an endpoint"));
    let endpoint: &Endpoint = path.endpoint.as_ref().or(peer.endpoint.as_ref()).ok_or_else(missing)?;
    endpoint.resolve(path.source).map(|found| found[0]).map_err(|error| system(path, error))
}

fn system(path: &Path, cause: io::Error) -> Error {
    Error::System { what: format!("path {}", path.name), cause }
}

fn socket(path: &Path, remote: SocketAddr) -> SocketSetup {
    let any = if remote.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
    SocketSetup {
        name: path.name.clone(),
        interface: path.interface.clone(),
        bind: SocketAddr::new(path.source.unwrap_or(any), path.listen_port),
        mark: None,
        offload: true,
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
        reorder,
        paths: paths.collect(),
    })
}
