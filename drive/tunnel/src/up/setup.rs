//! From the configuration to what the data plane is built from.

use crate::config::{self, Config, Endpoint, Path, Peer};
use crate::control::Error;
use crate::plane::{
    Carriage, Choice, DeviceSetup, Keepalive, Mode, MptPath, MptSetup, PeerPath, PeerSetup, Reorder, RopewalkSetup,
    Setup, SocketSetup,
};
use ipnet::IpNet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// MPT's own default, bytes.
const MPT_MTU: u16 = 1440;

/// The inner MTU in `ropewalk` mode, bytes: packets are cut to what paths take, so it need not be less than Ethernet's.
const MTU: u16 = 1500;

/// Names are looked up here, once.
pub(super) fn setup(config: &Config) -> Result<Setup, Error> {
    let interface = &config.interface;
    let (mode, usual, families) = match &config.mode {
        config::Mode::Mpt(mpt) => {
            let peer = &config.peers[0];
            let missing = |path| system(path, io::Error::new(io::ErrorKind::NotFound, "MPT needs an endpoint"));
            let known = |path| remote(path, peer).and_then(|remote| remote.ok_or_else(|| missing(path)));
            let remotes = config.paths.iter().map(known).collect::<Result<Vec<_>, _>>()?;
            let families: Vec<_> = remotes.iter().copied().map(Some).collect();
            (Mode::Mpt(mpt_setup(config, *mpt, peer, &remotes)?), MPT_MTU, families)
        }
        config::Mode::Ropewalk { private_key } => {
            let peers = config.peers.iter().map(|peer| peer_setup(config, peer)).collect::<Result<Vec<_>, _>>()?;
            let called = |socket| peers.iter().flat_map(|peer| &peer.paths).find(|path| path.socket == socket);
            let families = (0..config.paths.len()).map(|socket| called(socket).map(|path| path.remote)).collect();
            (Mode::Ropewalk(RopewalkSetup { private: private_key.clone(), peers }), MTU, families)
        }
    };
    let mut sockets: Vec<_> = config.paths.iter().zip(&families).map(|(path, remote)| socket(path, *remote)).collect();
    // Who is called at no address in particular is called at both families'. These stand last: paths name their sockets by
    // their own place.
    let anywhere =
        config.paths.iter().zip(&families).filter(|(path, remote)| path.source.is_none() && remote.is_none());
    if has_ipv6() {
        sockets.extend(anywhere.map(|(path, _)| {
            let bind = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), path.listen_port);
            SocketSetup { bind, ..socket(path, None) }
        }));
    }
    Ok(Setup {
        device: DeviceSetup { name: interface.name.clone(), mtu: interface.mtu.unwrap_or(usual), offload: true },
        sockets,
        mode,
    })
}

fn peer_setup(config: &Config, peer: &Peer) -> Result<PeerSetup, Error> {
    let none = || Error::System { what: "a peer's key".into(), cause: io::ErrorKind::NotFound.into() };
    let public = peer.public_key.ok_or_else(none)?;
    let mut paths = Vec::new();
    for (socket, path) in config.paths.iter().enumerate() {
        // A peer that calls opens its paths itself.
        if let Some(remote) = remote(path, peer)? {
            paths.push(PeerPath {
                name: path.name.clone(),
                socket,
                remote,
                backup: path.backup,
                metered: path.metered,
                weight: path.weight,
                rate: path.rate,
                mtu: device_mtu(path.interface.as_deref()),
            });
        }
    }
    Ok(PeerSetup {
        name: public.to_string(),
        public,
        preshared: peer.preshared_key.clone(),
        allowed: peer.allowed_ips.iter().map(|network| (network.addr(), network.prefix_len())).collect(),
        paths,
        carriage: carriage(&config.carriage),
    })
}

fn carriage(wanted: &config::Carriage) -> Carriage {
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
fn device_mtu(device: Option<&str>) -> u16 {
    let text = device.and_then(|device| std::fs::read_to_string(format!("/sys/class/net/{device}/mtu")).ok());
    text.and_then(|text| text.trim().parse::<u32>().ok()).map_or(1500, |mtu| mtu.min(u16::MAX.into()) as u16)
}

/// Where the peer is reached over `path`; none if it comes to us.
fn remote(path: &Path, peer: &Peer) -> Result<Option<SocketAddr>, Error> {
    let endpoint: Option<&Endpoint> = path.endpoint.as_ref().or(peer.endpoint.as_ref());
    let found = endpoint.map(|endpoint| endpoint.resolve(path.source)).transpose();
    found.map(|found| found.map(|all| all[0])).map_err(|error| system(path, error))
}

/// The kernel speaks IPv6.
fn has_ipv6() -> bool {
    std::path::Path::new("/proc/net/if_inet6").exists()
}

fn system(path: &Path, cause: io::Error) -> Error {
    Error::System { what: format!("path {}", path.name), cause }
}

fn socket(path: &Path, remote: Option<SocketAddr>) -> SocketSetup {
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
