//! The source address or the device of a path, and options of its sockets.

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use socket2::{Domain, SockRef, Socket, Type};
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::str::FromStr;

/// A path by its name and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSource {
    /// The name in the document.
    pub name: String,
    /// Where its packets leave.
    pub source: Source,
}

/// Where packets leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// As the host routes.
    Any,
    /// From an address of this host; a policy route by source address leads them.
    Address(IpAddr),
    /// By a device.
    Device(String),
}

impl PathSource {
    /// The path of a host that has one: as it routes.
    pub fn default_route() -> Self {
        Self { name: "path".to_owned(), source: Source::Any }
    }
}

impl FromStr for PathSource {
    type Err = String;

    /// Reads `NAME=ADDRESS`, `NAME=DEVICE`, `ADDRESS` or `DEVICE`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, source) = text.split_once('=').unwrap_or((text, text));
        if name.is_empty() || source.is_empty() {
            return Err("a path is NAME=ADDRESS or NAME=DEVICE".to_owned());
        }
        let source = source.parse().map_or_else(|_| Source::Device(source.to_owned()), Source::Address);
        Ok(Self { name: name.to_owned(), source })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Device(device) => f.write_str(device),
        }
    }
}

impl Source {
    /// An unconnected socket of this source towards a server.
    ///
    /// # Errors
    ///
    /// This host does not have the address or the device, or the kernel reserves devices for root.
    pub(crate) fn socket(&self, server: SocketAddr, kind: Type) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(server), kind, None)?;
        let any = || match server {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        let address = match self {
            Self::Address(address) => *address,
            Self::Any => any(),
            Self::Device(device) => {
                if !Path::new("/sys/class/net").join(device).exists() {
                    return Err(io::Error::other(format!("{device} is neither an address nor a device of this host")));
                }
                socket.bind_device(Some(device.as_bytes())).map_err(|error| explain(device, error))?;
                any()
            }
        };
        socket.bind(&SocketAddr::new(address, 0).into())?;
        Ok(socket)
    }

    /// The device by which packets to a server leave; none if it is not known.
    pub fn device(&self, server: SocketAddr) -> Option<String> {
        if let Self::Device(device) = self {
            return Some(device.clone());
        }
        let socket: UdpSocket = self.socket(server, Type::DGRAM).ok()?.into();
        socket.connect(server).ok()?;
        let local = socket.local_addr().ok()?.ip();
        let has_local = |entry: &InterfaceAddress| {
            let address = entry.address.as_ref();
            let v4 = address.and_then(|address| Some(IpAddr::from(address.as_sockaddr_in()?.ip())));
            let v6 = address.and_then(|address| Some(IpAddr::from(address.as_sockaddr_in6()?.ip())));
            v4.or(v6) == Some(local)
        };
        getifaddrs().ok()?.find(has_local).map(|entry| entry.interface_name)
    }
}

/// Whether the traffic of a device seems to cost money: a modem, a tethered phone.
pub fn seems_metered(device: &str) -> bool {
    let folder = Path::new("/sys/class/net").join(device);
    let is_modem = std::fs::read_to_string(folder.join("uevent")).is_ok_and(|text| text.contains("DEVTYPE=wwan\n"));
    let driver = std::fs::read_link(folder.join("device/driver")).ok();
    let driver = driver.as_ref().and_then(|path| path.file_name()?.to_str()).unwrap_or_default();
    let has_name = ["wwan", "ppp", "usb"].iter().any(|prefix| device.starts_with(prefix));
    is_modem || ["ipheth", "rndis_host"].contains(&driver) || has_name
}

fn explain(device: &str, error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::PermissionDenied => io::Error::other(format!(
            "this kernel lets only root send by {device}\n  help: name the source address instead, with a policy route for it"
        )),
        _ => error,
    }
}

/// Chooses the congestion control of a socket; the error says what the kernel lacks or forbids.
pub(crate) fn set_congestion(socket: &SockRef<'_>, name: &str) -> Result<(), String> {
    socket.set_tcp_congestion(name.as_bytes()).map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("the kernel has no {name}"),
        ErrorKind::PermissionDenied => {
            format!("the kernel reserves {name} for root: `net.ipv4.tcp_allowed_congestion_control` lists the others")
        }
        _ => format!("{name}: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_name_with_an_address_or_a_device() {
        let path = |name: &str, source| Ok(PathSource { name: name.to_owned(), source });
        assert_eq!("lte=wwan0".parse(), path("lte", Source::Device("wwan0".into())));
        assert_eq!("eth0".parse(), path("eth0", Source::Device("eth0".into())));
        assert_eq!("wifi=fe80::1".parse(), path("wifi", Source::Address("fe80::1".parse().unwrap())));
        assert!("=eth0".parse::<PathSource>().is_err() && "lte=".parse::<PathSource>().is_err());
    }

    #[test]
    fn modems_are_metered_by_their_names_and_an_address_leads_to_its_device() {
        assert!(seems_metered("wwan7") && !seems_metered("lo"));
        let server = ([127, 0, 0, 1], 9).into();
        for source in [Source::Address([127, 0, 0, 1].into()), Source::Any, Source::Device("lo".into())] {
            assert_eq!(source.device(server).as_deref(), Some("lo"), "{source}");
        }
    }
}
