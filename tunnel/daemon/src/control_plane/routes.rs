//! Routes of the host, read by rtnetlink: the one that a datagram would take, and default routes.

use futures_util::TryStreamExt;
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteNextHopFlags, RouteType,
};
use rtnetlink::{Handle, RouteMessageBuilder};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const IPPROTO_UDP: u8 = 17;

/// A route of the host; of one over several devices (equal-cost multipath), one of its next hops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The index of its device.
    pub device: u32,
    /// The router; `None` if the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// The routing table.
    pub table: u32,
    /// The metric; the route with the smallest one is used.
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

    /// The entry of the routing tables that a datagram to `remote` would use if it is bound to the device `index`, to
    /// `source` and to the UDP port `port` (RTM_GETROUTE with RTM_F_FIB_MATCH and RTM_F_LOOKUP_TABLE). If no entry
    /// matches an IPv4 datagram that is bound to a device, Linux sends it on the link, so that `ip route get` and
    /// `connect` succeed without a route.
    ///
    /// # Errors
    /// The kernel's: no entry matches (ENETUNREACH, EHOSTUNREACH), or netlink fails.
    pub async fn lookup(
        &self,
        remote: IpAddr,
        index: Option<u32>,
        source: Option<IpAddr>,
        port: Option<u16>,
    ) -> io::Result<Route> {
        let prefix_len = if remote.is_ipv4() { 32 } else { 128 };
        let builder = RouteMessageBuilder::<IpAddr>::new();
        let mut message = match builder.destination_prefix(remote, prefix_len) {
            Ok(builder) => builder.build(),
            Err(error) => return Err(io::Error::other(error.to_string())),
        };
        // The builder is for adding routes: it sets a table, which a lookup must not have.
        message.attributes.retain(|attribute| matches!(attribute, RouteAttribute::Destination(_)));
        message.header.flags = RouteFlags::FibMatch | RouteFlags::LookupTable;
        message.attributes.extend(index.map(RouteAttribute::Oif));
        if let Some(port) = port {
            message.attributes.extend([RouteAttribute::IpProto(IPPROTO_UDP), RouteAttribute::Sport(port)]);
        }
        if let Some(source) = source {
            message.header.source_prefix_length = prefix_len;
            message.attributes.push(RouteAttribute::Source(route_address(source)));
        }
        let mut answers = Box::pin(self.0.route().get(message).execute());
        let route = answers.try_next().await.map_err(|error| io_error(&error))?;
        let hops = route.as_ref().map(next_hops).unwrap_or_default();
        // A datagram that is bound to a device takes the next hop there.
        let hop = hops.iter().find(|hop| index.is_none_or(|index| hop.device == index)).or(hops.first());
        hop.cloned().ok_or_else(|| io::ErrorKind::NetworkUnreachable.into())
    }

    /// All default routes of a family, from every table, without those that refuse packets; smallest metric first. Each
    /// next hop of a route over several devices is a separate route.
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
                routes.extend(next_hops(&message));
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

/// The next hops of a route: itself, or those of a multipath route (RTA_MULTIPATH) whose devices are not down.
fn next_hops(message: &RouteMessage) -> Vec<Route> {
    let mut route =
        Route { device: 0, gateway: gateway(&message.attributes), table: message.header.table.into(), metric: 0 };
    let mut hops = None;
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => route.device = *index,
            RouteAttribute::Table(table) => route.table = *table,
            RouteAttribute::Priority(metric) => route.metric = *metric,
            RouteAttribute::MultiPath(next_hops) => hops = Some(next_hops),
            _ => {}
        }
    }
    let Some(hops) = hops else { return vec![route] };
    let alive = hops.iter().filter(|hop| !hop.flags.contains(RouteNextHopFlags::Dead));
    alive.map(|hop| Route { device: hop.interface_index, gateway: gateway(&hop.attributes), ..route.clone() }).collect()
}

fn gateway(attributes: &[RouteAttribute]) -> Option<IpAddr> {
    attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(RouteAddress::Inet(v4)) => Some((*v4).into()),
        RouteAttribute::Gateway(RouteAddress::Inet6(v6)) => Some((*v6).into()),
        _ => None,
    })
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
