//! Addresses, routes and link events, by rtnetlink.
//!
//! Everything set here belongs to the tunnel's own device, so the kernel removes it with the device. Sockets bound to a
//! device (`SO_BINDTODEVICE`) use that device's routes, so a default route into the tunnel does not affect the paths'
//! own packets: no firewall mark, no policy rule. A `/0` is added as two `/1`, which take precedence over the system's
//! default route.

use super::routes::Routes;
use crate::config::RelayNetwork;
use crate::data_plane::LinkEvent;
use futures_util::{Stream, StreamExt, TryStreamExt, future};
use ipnet::IpNet;
use rtnetlink::packet_core::NetlinkPayload;
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::address::{AddressAttribute, AddressScope, CacheInfo};
use rtnetlink::packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use rtnetlink::{Handle, LinkUnspec, MulticastGroup, RouteMessageBuilder, new_multicast_connection};
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// "File exists": the address or route is set already.
const EEXIST: i32 = 17;
/// "No such process": there is no such route.
const ESRCH: i32 = 3;
/// "No such device".
const ENODEV: i32 = 19;
/// "Cannot assign requested address": there is no such address.
const EADDRNOTAVAIL: i32 = 99;

/// An rtnetlink connection.
pub struct Network {
    handle: Handle,
    events: Pin<Box<dyn Stream<Item = NetworkEvent> + Send>>,
}

/// A change of the host's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkEvent {
    /// A change of a device.
    Link(String, LinkEvent),
    /// A change of a default route, or the removal of an address.
    Routes,
}

impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Network")
    }
}

impl Network {
    /// Connects, inside a tokio runtime, which then drives the connection. Changes of default routes are events only if
    /// `follow_routes`: a router may have very many routes.
    ///
    /// # Errors
    /// The netlink socket cannot be opened.
    pub fn connect(follow_routes: bool) -> io::Result<Self> {
        let links = [MulticastGroup::Link, MulticastGroup::Ipv4Ifaddr, MulticastGroup::Ipv6Ifaddr];
        let routes = [MulticastGroup::Ipv4Route, MulticastGroup::Ipv6Route];
        let groups: Vec<_> = links.into_iter().chain(routes.into_iter().filter(|_| follow_routes)).collect();
        let (connection, handle, messages) = new_multicast_connection(&groups)?;
        tokio::spawn(connection);
        let events = messages.filter_map(|(message, _)| future::ready(network_event(message.payload)));
        Ok(Self { handle, events: Box::pin(events) })
    }

    /// A reader of the host's routes.
    #[must_use]
    pub fn routes(&self) -> Routes {
        Routes::new(self.handle.clone())
    }

    /// The connection, for other requests.
    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// The next change.
    pub async fn event(&mut self) -> Option<NetworkEvent> {
        self.events.next().await
    }

    /// Adds addresses to `device` and sets it up. Addresses that it already has are not an error.
    ///
    /// # Errors
    /// The kernel's, with the address in question.
    pub async fn set_up(&self, device: &str, addresses: &[IpNet]) -> io::Result<()> {
        for address in addresses {
            self.add_address(device, *address).await?;
        }
        let index = self.device_index(device).await?;
        let request = self.handle.link().set(LinkUnspec::new_with_index(index).up().build()).execute();
        map_error(request.await, &[], &format!("setting {device} up"))
    }

    /// Adds an address to `device`; an address that it already has is not an error.
    ///
    /// # Errors
    /// The kernel's, with the address in question.
    pub async fn add_address(&self, device: &str, address: IpNet) -> io::Result<()> {
        let index = self.device_index(device).await?;
        let request = self.handle.address().add(index, address.addr(), address.prefix_len()).execute();
        map_error(request.await, &[EEXIST], &format!("address {address} on {device}"))
    }

    /// Adds the two addresses of an internal network of the relay to `device`: the local one, which the kernel selects
    /// for no packet by itself (scope "host" in version 4, deprecated in version 6), and a route to the other.
    ///
    /// # Errors
    /// As [`Network::add_address`].
    pub async fn add_relay_network(&self, device: &str, network: RelayNetwork) -> io::Result<()> {
        let RelayNetwork { local, remote } = network;
        let index = self.device_index(device).await?;
        let prefix_len = if local.is_ipv4() { 32 } else { 128 };
        let mut request = self.handle.address().add(index, local, prefix_len).replace();
        let message = request.message_mut();
        message.header.scope = if local.is_ipv4() { AddressScope::Host } else { AddressScope::Universe };
        message.attributes = vec![AddressAttribute::Local(local), AddressAttribute::Address(remote)];
        if local.is_ipv6() {
            let mut lifetimes = CacheInfo::default();
            (lifetimes.ifa_preferred, lifetimes.ifa_valid) = (0, u32::MAX);
            message.attributes.push(AddressAttribute::CacheInfo(lifetimes));
        }
        map_error(request.execute().await, &[EEXIST], &format!("address {local} on {device}"))
    }

    /// Removes an address; a missing one is not an error.
    ///
    /// # Errors
    /// As [`Network::add_address`].
    pub async fn remove_address(&self, device: &str, address: IpNet) -> io::Result<()> {
        let index = self.device_index(device).await?;
        let mut add_request = self.handle.address().add(index, address.addr(), address.prefix_len());
        let request = self.handle.address().del(add_request.message_mut().clone()).execute();
        map_error(request.await, &[EADDRNOTAVAIL], &format!("address {address} on {device}"))
    }

    /// Sets the MTU of `device`, bytes.
    ///
    /// # Errors
    /// The kernel's.
    pub async fn set_mtu(&self, device: &str, mtu: u16) -> io::Result<()> {
        let index = self.device_index(device).await?;
        let request = self.handle.link().set(LinkUnspec::new_with_index(index).mtu(mtu.into()).build()).execute();
        map_error(request.await, &[], &format!("mtu {mtu} on {device}"))
    }

    /// Adds a route for `network` through `device`.
    ///
    /// # Errors
    /// The kernel's, with the route in question.
    pub async fn add_route(&self, device: &str, network: IpNet) -> io::Result<()> {
        let index = self.device_index(device).await?;
        for route in route_halves(network) {
            let request = self.handle.route().add(route_message(index, route)).execute();
            map_error(request.await, &[EEXIST], &format!("route {route} to {device}"))?;
        }
        Ok(())
    }

    /// Removes a route; a missing route or device is not an error.
    ///
    /// # Errors
    /// As [`Network::add_route`].
    pub async fn remove_route(&self, device: &str, network: IpNet) -> io::Result<()> {
        let Ok(index) = self.device_index(device).await else { return Ok(()) };
        for route in route_halves(network) {
            let request = self.handle.route().del(route_message(index, route)).execute();
            map_error(request.await, &[ESRCH, ENODEV], &format!("route {route} to {device}"))?;
        }
        Ok(())
    }

    async fn device_index(&self, device: &str) -> io::Result<u32> {
        let mut links = self.handle.link().get().match_name(device.to_owned()).execute();
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("there is no device {device}"));
        let link = links.try_next().await.map_err(|_| missing())?;
        link.map(|link| link.header.index).ok_or_else(missing)
    }
}

/// The routes set for `network`: itself, or two `/1` for a `/0`.
#[must_use]
pub fn route_halves(network: IpNet) -> Vec<IpNet> {
    if network.prefix_len() > 0 {
        return vec![network];
    }
    network.subnets(1).map(Iterator::collect).unwrap_or_default()
}

/// Whether strict reverse path filtering is on (`rp_filter` = 1, the larger of the values of `device` and `all`): the
/// kernel drops packets received on `device` unless the route to their source uses it. With several uplinks to one peer
/// that fails on all but one.
#[must_use]
pub fn has_strict_reverse_path(device: &str) -> bool {
    let value = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"));
        text.ok().and_then(|text| text.trim().parse::<u8>().ok()).unwrap_or(0)
    };
    value("all").max(value(device)) == 1
}

fn route_message(index: u32, network: IpNet) -> rtnetlink::packet_route::route::RouteMessage {
    let builder = RouteMessageBuilder::<IpAddr>::new().output_interface(index);
    match builder.destination_prefix(network.addr(), network.prefix_len()) {
        Ok(builder) => builder.build(),
        Err(error) => unreachable!("a network's prefix fits its family: {error}"),
    }
}

/// The change that a netlink message reports.
fn network_event(payload: NetlinkPayload<RouteNetlinkMessage>) -> Option<NetworkEvent> {
    let NetlinkPayload::InnerMessage(message) = payload else { return None };
    match message {
        RouteNetlinkMessage::NewRoute(route) | RouteNetlinkMessage::DelRoute(route) => {
            (route.header.destination_prefix_length == 0).then_some(NetworkEvent::Routes)
        }
        RouteNetlinkMessage::DelAddress(_) => Some(NetworkEvent::Routes),
        message => link_event(message).map(|(device, event)| NetworkEvent::Link(device, event)),
    }
}

/// The device that a netlink message is about, and what changed.
fn link_event(message: RouteNetlinkMessage) -> Option<(String, LinkEvent)> {
    match message {
        RouteNetlinkMessage::NewLink(link) => {
            let is_up = link.header.flags.contains(LinkFlags::Up | LinkFlags::LowerUp);
            Some((device_name(&link)?, if is_up { LinkEvent::Up } else { LinkEvent::Down }))
        }
        RouteNetlinkMessage::DelLink(link) => Some((device_name(&link)?, LinkEvent::Removed)),
        RouteNetlinkMessage::NewAddress(address) => {
            let device = nix::net::if_::if_indextoname(address.header.index).ok()?;
            Some((device.into_string().ok()?, LinkEvent::AddressAdded))
        }
        _ => None,
    }
}

fn device_name(link: &LinkMessage) -> Option<String> {
    link.attributes.iter().find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    })
}

/// Turns the kernel's result of `action` into an I/O error. Error numbers in `ignored` count as success.
fn map_error(result: Result<(), rtnetlink::Error>, ignored: &[i32], action: &str) -> io::Result<()> {
    let Err(error) = result else { return Ok(()) };
    let errno = match &error {
        rtnetlink::Error::NetlinkError(message) => message.code.map_or(0, |code| code.get().abs()),
        _ => 0,
    };
    if ignored.contains(&errno) {
        return Ok(());
    }
    let cause = if errno == 0 { error.to_string() } else { io::Error::from_raw_os_error(errno).to_string() };
    Err(io::Error::other(format!("{action}: {cause}")))
}
