//! Routes of the host, read by rtnetlink: the one that a datagram would take, and default routes.

use futures_util::TryStreamExt;
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteType};
use rtnetlink::{Handle, RouteMessageBuilder};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A route of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The index of its device; 0 for a route over several.
    pub device: u32,
    /// The router; `None` if the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// The routing table.
    pub table: u32,
    /// The metric; the route with the least is used.
    pub metric: u32,
}

/// Reads the host's routes.
#[derive(Clone)]
pub struct Routes(Handle);

impl std::fmt::Debug for Routes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Routes")
    }
}

impl Routes {
    pub(super) fn new(handle: Handle) -> Self {
        Self(handle)
    }

    /// The entry of the routing tables that a datagram to `remote` would use if it is bound to the device `index` and
    /// to `source` (RTM_GETROUTE with RTM_F_FIB_MATCH and RTM_F_LOOKUP_TABLE). For a datagram that is bound to a device, Linux sends IPv4 on the
    /// link where no entry matches, so that `ip route get` and `connect` succeed without a route.
    ///
    /// # Errors
    /// The kernel's: no entry matches (ENETUNREACH, EHOSTUNREACH), or netlink fails.
    pub async fn lookup(&self, remote: IpAddr, index: Option<u32>, source: Option<IpAddr>) -> io::Result<Route> {
        let prefix_len = if remote.is_ipv4() { 32 } else { 128 };
        let builder = RouteMessageBuilder::<IpAddr>::new();
        let mut message = match builder.destination_prefix(remote, prefix_len) {
            Ok(builder) => builder.build(),
            Err(error) => return Err(io::Error::other(error.to_string())),
        };
        // The builder is for adding routes: it gives a table, which a lookup has none of.
        message.attributes.retain(|attribute| matches!(attribute, RouteAttribute::Destination(_)));
        message.header.flags = RouteFlags::FibMatch | RouteFlags::LookupTable;
        message.attributes.extend(index.map(RouteAttribute::Oif));
        if let Some(source) = source {
            message.header.source_prefix_length = prefix_len;
            message.attributes.push(RouteAttribute::Source(route_address(source)));
        }
        let mut answers = Box::pin(self.0.route().get(message).execute());
        let route = answers.try_next().await.map_err(|error| io_error(&error))?;
        route.as_ref().map(route_of).ok_or_else(|| io::ErrorKind::NetworkUnreachable.into())
    }

    /// All default routes of a family, of every table, without those that refuse packets; those of the least metric first.
    ///
    /// # Errors
    /// Netlink fails.
    pub async fn default_routes(&self, is_ipv4: bool) -> io::Result<Vec<Route>> {
        let message = if is_ipv4 {
            RouteMessageBuilder::<Ipv4Addr>::new().build()
        } else {
            RouteMessageBuilder::<Ipv6Addr>::new().build()
        };
        let mut routes = Vec::new();
        let mut answers = Box::pin(self.0.route().get(message).execute());
        while let Some(message) = answers.try_next().await.map_err(|error| io_error(&error))? {
            let is_default = message.header.destination_prefix_length == 0;
            if is_default && message.header.kind == RouteType::Unicast {
                routes.push(route_of(&message));
            }
        }
        routes.sort_by_key(|route| route.metric);
        Ok(routes)
    }
}

fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(v4) => RouteAddress::Inet(v4),
        IpAddr::V6(v6) => RouteAddress::Inet6(v6),
    }
}

fn route_of(message: &RouteMessage) -> Route {
    let mut route = Route { device: 0, gateway: None, table: message.header.table.into(), metric: 0 };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => route.device = *index,
            RouteAttribute::Gateway(RouteAddress::Inet(v4)) => route.gateway = Some((*v4).into()),
            RouteAttribute::Gateway(RouteAddress::Inet6(v6)) => route.gateway = Some((*v6).into()),
            RouteAttribute::Table(table) => route.table = *table,
            RouteAttribute::Priority(metric) => route.metric = *metric,
            _ => {}
        }
    }
    route
}

/// The kernel's error of a request.
pub(super) fn io_error(error: &rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message
            .code
            .map_or_else(|| io::Error::other(error.to_string()), |code| io::Error::from_raw_os_error(code.get().abs())),
        _ => io::Error::other(error.to_string()),
    }
}
