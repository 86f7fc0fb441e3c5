//! Finds out why a path carries no data: by its device, its addresses, the kernel's route for a datagram of the path,
//! and the result of a probe from the path's device to the peer.
//!
//! A probe is an empty datagram from a separate port, which the peer ignores. ICMP errors and refusals by a firewall
//! on this host are returned as errors of its socket; the data plane's sockets do not report them.

use super::network::has_strict_reverse_path;
use super::routes::Routes;
use crate::data_plane::{PathName, set_mark};
use crate::event::{Cause, CauseKind};
use crate::nat64;
use ipnet::IpNet;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The properties of a path that a diagnosis depends on.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) interface: Option<String>,
    pub(super) source: Option<IpAddr>,
    pub(super) remote: SocketAddr,
}

impl Subject {
    /// The subject of a path; `None` if the peer's address is not known.
    pub(super) fn of(path: &PathName) -> Option<Self> {
        Some(Self { interface: path.interface.clone(), source: path.source, remote: path.remote? })
    }

    fn family(&self) -> &'static str {
        if self.remote.is_ipv4() { "IPv4" } else { "IPv6" }
    }

    /// A UDP socket that is bound like the path's, except for the port.
    pub(super) fn socket(&self) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(self.remote), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
        if let Some(device) = &self.interface {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        let unspecified =
            if self.remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        set_mark(&socket);
        socket.bind(&SocketAddr::new(self.source.unwrap_or(unspecified), 0).into())?;
        Ok(socket)
    }
}

/// The state of the devices that a tunnel's paths may use, read once for all paths.
#[derive(Debug, Default)]
pub(super) struct Devices(Vec<DeviceEntry>);

/// A device, and one of its addresses if it has any.
#[derive(Clone, Debug)]
struct DeviceEntry {
    name: String,
    flags: InterfaceFlags,
    address: Option<IpAddr>,
    /// The address with the length of its network's prefix.
    network: Option<IpNet>,
}

impl Devices {
    /// Reads names, flags and addresses.
    pub(super) fn read() -> Self {
        let entries = getifaddrs().into_iter().flatten().map(|entry| {
            let ip = |storage: SockaddrStorage| {
                let v4 = storage.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
                v4.or_else(|| storage.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
            };
            let address = entry.address.and_then(ip);
            let mask = entry.netmask.and_then(ip);
            let network = address.zip(mask).and_then(|(address, mask)| IpNet::with_netmask(address, mask).ok());
            DeviceEntry { name: entry.interface_name, flags: entry.flags, address, network }
        });
        Self(entries.collect())
    }

    fn flags(&self, device: &str) -> Option<InterfaceFlags> {
        self.0.iter().find(|entry| entry.name == device).map(|entry| entry.flags)
    }

    fn addresses<'a>(&'a self, device: Option<&'a str>) -> impl Iterator<Item = IpAddr> + 'a {
        let entries = self.0.iter().filter(move |entry| device.is_none_or(|device| device == entry.name));
        entries.filter_map(|entry| entry.address)
    }

    /// The addresses of devices that are up, with their networks and the devices' names.
    pub(super) fn networks(&self) -> impl Iterator<Item = (&str, IpNet)> {
        let up = self.0.iter().filter(|entry| entry.flags.contains(InterfaceFlags::IFF_UP));
        up.filter_map(|entry| Some((entry.name.as_str(), entry.network?)))
    }

    /// The device that has an address.
    pub(super) fn device_of(&self, address: IpAddr) -> Option<&str> {
        self.0.iter().find(|entry| entry.address == Some(address)).map(|entry| entry.name.as_str())
    }
}

impl Devices {
    /// The names of all devices.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.0.iter().map(|entry| entry.name.clone()).collect()
    }

    /// Whether there is a device of this name.
    pub(super) fn has(&self, device: &str) -> bool {
        self.flags(device).is_some()
    }

    /// Devices that are up, each with an address and its network.
    #[cfg(test)]
    pub(super) fn with_networks(networks: &[(&str, &str)]) -> Self {
        let entry = |(name, network): &(&str, &str)| {
            let network: IpNet = network.parse().expect("a network");
            let (address, network) = (Some(network.addr()), Some(network));
            DeviceEntry { network, address, ..Self::with_device(name).0.remove(0) }
        };
        Self(networks.iter().map(entry).collect())
    }

    /// One device, which is up and has no address.
    #[cfg(test)]
    pub(super) fn with_device(name: &str) -> Self {
        let flags = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
        Self(vec![DeviceEntry { name: name.to_owned(), flags, address: None, network: None }])
    }
}

/// The addresses of this host that others may know, without loopback and link-local ones.
#[must_use]
pub fn own_addresses() -> Vec<IpAddr> {
    let is_known = |address: &IpAddr| match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    };
    Devices::read().addresses(None).filter(is_known).collect()
}

fn cause(kind: CauseKind, text: String, remedy: String) -> Cause {
    Cause { kind, text, remedy }
}

/// The cause that keeps datagrams of a path from leaving this host; `tunnel` is the tunnel's own device.
pub(super) async fn local_cause(subject: &Subject, devices: &Devices, routes: &Routes, tunnel: &str) -> Option<Cause> {
    let cause = own_address(subject, devices);
    let cause = cause.or_else(|| unusable_device(subject.interface.as_deref()?, devices));
    match cause.or_else(|| missing_address(subject, devices)) {
        Some(cause) => Some(cause),
        None => missing_route(subject, devices, routes, tunnel).await,
    }
}

/// The cause if the peer's address is this host's own.
fn own_address(subject: &Subject, devices: &Devices) -> Option<Cause> {
    let address = subject.remote.ip();
    // Two ends on one host, as tests have them, are allowed.
    if address.is_loopback() || devices.device_of(address).is_none() {
        return None;
    }
    let text = format!("`endpoint` is an address of this host itself: {address}");
    Some(cause(CauseKind::NoRoute, text, "`endpoint` is the address at which the other end can be reached".into()))
}

/// The cause if a device cannot send, whatever its addresses and routes are.
pub(super) fn unusable_device(device: &str, devices: &Devices) -> Option<Cause> {
    let Some(flags) = devices.flags(device) else {
        let remedy = "plug it in: the path waits for it; `ip link` lists the devices".into();
        return Some(cause(CauseKind::NoDevice, format!("there is no device {device}"), remedy));
    };
    if !flags.contains(InterfaceFlags::IFF_UP) {
        let remedy = format!("`ip link set {device} up`");
        return Some(cause(CauseKind::LinkDown, format!("{device} is set down"), remedy));
    }
    if !flags.contains(InterfaceFlags::IFF_RUNNING) {
        let remedy = "plug the cable in, or wait until the modem or the radio is connected".into();
        return Some(cause(CauseKind::NoCarrier, format!("{device} has no carrier"), remedy));
    }
    None
}

/// Whether a device has an address of a family that hosts other than its neighbours can answer to.
pub(super) fn has_usable_address(devices: &Devices, device: &str, is_ipv4: bool) -> bool {
    devices.addresses(Some(device)).any(|address| match address {
        IpAddr::V4(_) => is_ipv4,
        IpAddr::V6(own) => !is_ipv4 && !own.is_unicast_link_local(),
    })
}

fn missing_address(subject: &Subject, devices: &Devices) -> Option<Cause> {
    let is_usable = |address: IpAddr| match (address, subject.remote.ip()) {
        (IpAddr::V4(_), IpAddr::V4(_)) => true,
        (IpAddr::V6(own), IpAddr::V6(remote)) => !own.is_unicast_link_local() || remote.is_unicast_link_local(),
        _ => false,
    };
    if let Some(source) = subject.source {
        if devices.addresses(None).any(|address| address == source) {
            return None;
        }
        let remedy = format!("`source` must be an address of this host: `ip address` lists them, {source} is none");
        return Some(cause(CauseKind::NoAddress, format!("no device has the address {source}"), remedy));
    }
    let device = subject.interface.as_deref()?;
    if devices.addresses(Some(device)).any(is_usable) {
        return None;
    }
    let family = subject.family();
    let other = if subject.remote.is_ipv4() { "IPv6" } else { "IPv4" };
    if has_usable_address(devices, device, !subject.remote.is_ipv4()) {
        let text = format!("{device} has {other} only, the endpoint is {family}: {}", subject.remote.ip());
        let remedy = format!(
            "an address of {other} of the other end in `endpoint`, beside this one: `endpoint = [\"...\", \"...\"]`, \
             or `--endpoint` of `ropewalk setup server`"
        );
        return Some(cause(CauseKind::NoAddress, text, remedy));
    }
    let text = format!("{device} has no {family} address");
    let remedy = format!("DHCP or the modem has not given one yet: `ip address show {device}`");
    Some(cause(CauseKind::NoAddress, text, remedy))
}

/// The cause if the routing tables have no entry for the path, or one that leads into the tunnel.
async fn missing_route(subject: &Subject, devices: &Devices, routes: &Routes, tunnel: &str) -> Option<Cause> {
    let (remote, device) = (subject.remote.ip(), subject.interface.as_deref());
    let index = device.and_then(|device| nix::net::if_::if_nametoindex(device).ok());
    match routes.lookup(remote, index, subject.source, None).await {
        Ok(route) => {
            if device.is_some() || nix::net::if_::if_nametoindex(tunnel) != Ok(route.device) {
                return None;
            }
            let text = format!("the route to {remote} leads into the tunnel itself, {tunnel}");
            let remedy = "`interface = \"...\"` in [[path]] binds the path to its uplink".into();
            Some(cause(CauseKind::NoRoute, text, remedy))
        }
        Err(error) if is_unreachable(&error) => {
            let has_family = |address: &IpAddr| address.is_ipv4() == remote.is_ipv4();
            let own_address = subject.source.or_else(|| devices.addresses(Some(device?)).find(has_family));
            let from = own_address.map_or_else(String::new, |own| format!(" from {own}"));
            let by = device.map_or_else(String::new, |device| format!(" by {device}"));
            let text = format!("no route to {remote}{from}{by}");
            Some(cause(CauseKind::NoRoute, text, route_remedy(subject, devices, routes).await))
        }
        // Netlink did not answer, which says nothing about the path.
        Err(_) => None,
    }
}

fn is_unreachable(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::EACCES | Errno::EINVAL))
}

/// The command that adds the missing default route. The gateway is the uplink's router; it is known if a default route of
/// another table has it.
async fn route_remedy(subject: &Subject, devices: &Devices, routes: &Routes) -> String {
    let family = if subject.remote.is_ipv4() { "ip" } else { "ip -6" };
    let device = subject.interface.as_deref().or_else(|| devices.device_of(subject.source?));
    let Some(device) = device else { return format!("`{family} route add default via GATEWAY`") };
    if is_point_to_point(devices, device) {
        return format!("`{family} route add default dev {device} metric 700`");
    }
    let index = nix::net::if_::if_nametoindex(device).ok();
    let default_routes = routes.default_routes(subject.remote.is_ipv4()).await.unwrap_or_default();
    let gateway = default_routes.iter().filter(|route| Some(route.device) == index).find_map(|route| route.gateway);
    let gateway = gateway.map_or_else(|| "GATEWAY".into(), |gateway| gateway.to_string());
    match subject.interface {
        Some(_) => format!("`{family} route add default via {gateway} dev {device} metric 700`"),
        None => {
            let source = subject.source.map_or_else(|| "all".into(), |source| source.to_string());
            let rule = format!("{family} rule add from {source} lookup 108");
            format!("`{rule}; {family} route add default via {gateway} dev {device} table 108`")
        }
    }
}

fn is_point_to_point(devices: &Devices, device: &str) -> bool {
    devices.flags(device).is_some_and(|flags| flags.contains(InterfaceFlags::IFF_POINTOPOINT))
}

/// The cause if answers on a path that the peer opened leave by a different device than the one that has the address to
/// which the peer sends. `port` is this end's.
pub(super) async fn return_route(subject: &Subject, port: u16, devices: &Devices, routes: &Routes) -> Option<Cause> {
    let (source, remote) = (subject.source?, subject.remote);
    let asked = devices.device_of(source)?;
    let route = routes.lookup(remote.ip(), None, Some(source), Some(port)).await.ok()?;
    let answering = nix::net::if_::if_indextoname(route.device).ok()?.into_string().ok()?;
    if answering == asked {
        return None;
    }
    let text = format!("datagrams for {source} come in by {asked}, answers leave by {answering}");
    let family = if source.is_ipv4() { "ip" } else { "ip -6" };
    let remedy = format!(
        "`routing = \"auto\"` in [interface] (providers drop the addresses of others), or `{family} rule add from {source} lookup \
         108; {family} route add default via GATEWAY dev {asked} table 108`"
    );
    Some(cause(CauseKind::ReturnRoute, text, remedy))
}

/// A probe that was sent to a path's peer.
#[derive(Debug)]
pub(super) struct Probe {
    socket: Socket,
    subject: Subject,
}

impl Probe {
    /// Sends a probe.
    ///
    /// # Errors
    /// The cause, if this host refuses to send it.
    pub(super) fn send(subject: &Subject) -> Result<Self, Cause> {
        let sent = subject.socket().and_then(|socket| {
            socket.connect(&subject.remote.into())?;
            socket.send(&[])?;
            Ok(socket)
        });
        let socket = sent.map_err(|error| send_error(&error, subject))?;
        Ok(Self { socket, subject: subject.clone() })
    }

    /// The cause, if the network refused the probe.
    pub(super) fn refusal(&self) -> Option<Cause> {
        let error = self.socket.take_error().ok().flatten()?;
        Some(send_error(&error, &self.subject))
    }
}

/// The cause behind an error of a socket to the peer.
fn send_error(error: &io::Error, subject: &Subject) -> Cause {
    let remote = subject.remote;
    let port = remote.port();
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EPERM | Errno::EACCES) => {
            let text = format!("this host's firewall refuses UDP to {remote}");
            let remedy = format!("allow it: `nft list ruleset` shows the rule, in an output chain, for UDP {port}");
            cause(CauseKind::LocalFirewall, text, remedy)
        }
        Some(Errno::ECONNREFUSED) => {
            let text = format!("{remote} answers that nothing listens there (ICMP port unreachable)");
            let remedy = format!("on the peer: `ropewalk up`, with `listen-port = {port}`");
            cause(CauseKind::Refused, text, remedy)
        }
        Some(Errno::EHOSTUNREACH | Errno::ENETUNREACH) => {
            let text = format!("a router or a firewall answers that {remote} cannot be reached (ICMP)");
            let remedy =
                format!("let UDP {port} through to {}: a firewall rejects it, or no host has the address", remote.ip());
            cause(CauseKind::Refused, text, remedy)
        }
        _ => {
            let text = format!("the kernel does not send to {remote}: {error}");
            cause(CauseKind::SendError, text, "`ip route get` for the peer's address shows more".into())
        }
    }
}

/// A cause beyond this host, for a path that reaches an IPv4 endpoint by NAT64 only: the missing part is most likely
/// NAT64.
pub(super) fn by_translation(subject: &Subject, cause: Cause) -> Cause {
    let Some(device) = subject.interface.as_deref() else { return cause };
    let Some(v4) = nat64::translated(device, subject.remote.ip()) else { return cause };
    let text = format!("{device} has IPv6 only, the endpoint is IPv4: {v4}; by NAT64: {}", cause.text);
    let remedy = format!(
        "an address of IPv6 of the other end in `endpoint`, beside this one; or a provider with NAT64 \
         (`dig AAAA ipv4only.arpa` by {device} tells its prefix), or with 464XLAT"
    );
    Cause { kind: cause.kind, text, remedy }
}

/// The cause if a peer does not answer although datagrams can be sent to it. `answers_elsewhere`: it answers on another
/// path; `has_answered`: it answered before.
pub(super) fn silence(subject: &Subject, answers_elsewhere: bool, has_answered: bool) -> Cause {
    let (remote, port) = (subject.remote, subject.remote.port());
    let device = subject.interface.as_deref();
    if let Some(device) = device.filter(|device| has_strict_reverse_path(device) && subject.remote.is_ipv4()) {
        let text = format!("rp_filter = 1 on {device} drops what {remote} answers, unless its route there is the best");
        return cause(CauseKind::ReversePath, text, format!("`sysctl net.ipv4.conf.{device}.rp_filter=2`"));
    }
    if answers_elsewhere {
        let text = format!(
            "{remote} answers on another path, but not on this one: a captive portal, no connection, or UDP {port} is dropped"
        );
        let source = device.map(|device| format!("-I {device} ")).unwrap_or_default();
        let remedy = format!(
            "log in if the network wants it (`ropewalk portal` lets its page through); `ping {source}{}` tells whether there is \
             a connection; this uplink's router or provider must pass UDP {port}",
            remote.ip()
        );
        return cause(CauseKind::SilentPath, text, remedy);
    }
    if has_answered {
        let text = format!("{remote} has stopped answering");
        let remedy = "is the peer up, and the uplink connected? `ropewalk show` on the peer; does a captive portal want a login again? \
                      `ropewalk portal` lets its page through"
            .into();
        return cause(CauseKind::SilentPeer, text, remedy);
    }
    let text = format!("{remote} has never answered a handshake");
    let remedy = format!(
        "the peer is not up, a firewall drops UDP {port} there, a captive portal wants a login here (`ropewalk portal` lets its \
         page through), or a key differs: `ropewalk pubkey < KEYFILE` on one end must be `public-key` on the other; or the clock here was set back since the last handshake: `date`"
    );
    cause(CauseKind::NoHandshake, text, remedy)
}
