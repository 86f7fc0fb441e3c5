//! The settings that a setup promises on its host in addition to the daemon: kernel settings, nftables, routes that bypass
//! the tunnel, names. `keep` keeps them in place while the tunnel is set up.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// The promises of one tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Promises {
    /// Keys of `/proc/sys` with their values.
    pub(super) sysctls: Vec<(String, String)>,
    /// The services of a server for its clients.
    pub(super) server: Option<ServerPromises>,
    /// The services of a client for itself and the networks behind it.
    pub(super) client: ClientPromises,
}

/// The services of a server for its clients.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ServerPromises {
    /// The tunnel's UDP port.
    pub(super) port: u16,
    /// The devices of the default routes.
    pub(super) uplinks: Vec<String>,
    /// Inner networks that are routed to the server: their packets keep their addresses.
    pub(super) routed: Vec<IpNet>,
    /// Networks and addresses of the server that clients reach.
    pub(super) open: Vec<IpNet>,
    /// The inner addresses and the networks of clients whose networks were named at the server: these reach each other.
    pub(super) sites: BTreeMap<String, Vec<IpNet>>,
    /// Whether all clients reach each other.
    pub(super) between_clients: bool,
    /// Ports of the server that lead to a client.
    pub(super) forwards: Vec<Forward>,
    /// The clients' resolvers.
    pub(super) dns: Vec<IpAddr>,
}

/// The services of a client for itself and the networks behind it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientPromises {
    /// The networks behind it.
    pub(crate) lans: Vec<Lan>,
    /// Whether everything goes through the tunnel.
    pub(crate) is_full: bool,
    /// The tunnel's resolvers.
    pub(crate) dns: Vec<IpAddr>,
    /// The server's inner addresses.
    pub(crate) server: Vec<IpAddr>,
    /// Whether the setup made it exclusive. The configuration decides; this is used if it cannot be read.
    pub(crate) is_exclusive: bool,
    /// The TCP port of remote logins, which are answered through the uplinks while the tunnel is exclusive.
    pub(crate) login: Option<u16>,
    /// Whether the private addresses of the uplinks' networks stay reachable while the tunnel is exclusive.
    pub(crate) local_networks: bool,
    /// Traffic that does not use the tunnel.
    pub(crate) bypass: Vec<Bypass>,
}

/// A network behind a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Lan {
    /// The device that leads to it.
    pub(crate) device: String,
    /// The network.
    pub(crate) network: IpNet,
    /// Whether its packets get the client's inner address: the server does not know the network.
    pub(crate) is_translated: bool,
}

/// A transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

impl Protocol {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "tcp" => Some(Self::Tcp),
            "udp" => Some(Self::Udp),
            _ => None,
        }
    }

    /// The number in IP headers.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

/// A port of the server that leads to an address behind a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Forward {
    pub(super) protocol: Protocol,
    pub(super) port: u16,
    pub(super) to: SocketAddr,
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}={}", self.protocol.name(), self.port, self.to)
    }
}

/// A forward of the command line, whose target may be a client's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ForwardArgument {
    pub(super) protocol: Protocol,
    pub(super) port: u16,
    pub(super) target: String,
    pub(super) target_port: u16,
}

/// Reads `tcp:8080=192.168.50.10:80`, `udp:5060=client1`, `tcp:443=[fd77::2]:443`.
pub(super) fn forward(text: &str) -> Result<ForwardArgument, String> {
    let help = || "such as tcp:8080=192.168.50.10:80 or udp:5060=client1".to_owned();
    let (from, to) = text.split_once('=').ok_or_else(help)?;
    let (protocol, port) = port(from).ok_or_else(help)?;
    if let Ok(address) = to.parse::<SocketAddr>() {
        let (target, target_port) = (address.ip().to_string(), address.port());
        return Ok(ForwardArgument { protocol, port, target, target_port });
    }
    let is_address = to.parse::<IpAddr>().is_ok();
    let (target, target_port) = match to.rsplit_once(':').filter(|_| !is_address) {
        Some((target, digits)) => (target, digits.parse().map_err(|_| help())?),
        None => (to, port),
    };
    if target_port == 0 || !is_address && !daemon::config::is_peer_name(target) {
        return Err(help());
    }
    Ok(ForwardArgument { protocol, port, target: target.to_owned(), target_port })
}

/// Reads `tcp:8080`.
pub(super) fn port(text: &str) -> Option<(Protocol, u16)> {
    let (protocol, port) = text.split_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    Some((Protocol::parse(protocol)?, port))
}

/// Traffic that does not use the tunnel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Bypass {
    /// Packets to these destinations.
    Network(IpNet),
    /// Packets to this destination port.
    Port(Protocol, u16),
    /// Packets that arrive by this device.
    Device(String),
}

impl fmt::Display for Bypass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(network) => write!(f, "{network}"),
            Self::Port(protocol, port) => write!(f, "{}:{port}", protocol.name()),
            Self::Device(device) => f.write_str(device),
        }
    }
}

/// Reads a network, an address, `tcp:PORT`, `udp:PORT`, or a device's name.
pub(super) fn bypass(text: &str) -> Result<Bypass, String> {
    if let Ok(network) = network(text) {
        return Ok(Bypass::Network(network));
    }
    if let Some((protocol, port)) = port(text) {
        return Ok(Bypass::Port(protocol, port));
    }
    let help = "a network (198.51.100.0/24), a port (udp:5060), or a device whose packets bypass (eth3)";
    super::device_name(text).map(Bypass::Device).map_err(|_| help.to_owned())
}

/// Reads a network, or an address as a network with this address alone.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    let network = daemon::config::parse_network(text).map(|network| network.trunc());
    network.ok_or_else(|| "a network such as 192.168.50.0/24".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwards_are_read_with_addresses_names_and_ports() {
        for (text, expected) in [
            ("tcp:8080=192.168.50.10:80", Some(("192.168.50.10", 80))),
            ("udp:5060=192.168.50.10", Some(("192.168.50.10", 5060))),
            ("tcp:443=[fd77::2]:8443", Some(("fd77::2", 8443))),
            ("tcp:443=fd77::2", Some(("fd77::2", 443))),
            ("tcp:22=client1", Some(("client1", 22))),
            ("tcp:22=client1:2222", Some(("client1", 2222))),
            ("sctp:22=client1", None),
            ("tcp:0=client1", None),
            ("tcp:22=client1:0", None),
            ("tcp:22", None),
            ("tcp:22=; reboot", None),
        ] {
            let found = forward(text).ok();
            let found = found.as_ref().map(|found| (found.target.as_str(), found.target_port));
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn what_bypasses_is_a_network_a_port_or_a_device() {
        assert_eq!(bypass("192.0.2.80"), Ok(Bypass::Network("192.0.2.80/32".parse().unwrap())));
        assert_eq!(bypass("udp:5060"), Ok(Bypass::Port(Protocol::Udp, 5060)));
        assert_eq!(bypass("eth3"), Ok(Bypass::Device("eth3".into())));
        assert!(bypass("tcp:0").is_err() && bypass("a b").is_err() && bypass("").is_err());
    }
}
