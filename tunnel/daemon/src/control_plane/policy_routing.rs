//! The policy routing of `routing = "auto"`: a path without a route to its peer gets a rule and a routing table with a
//! default route by its own uplink.
//!
//! The gateway is taken from a default route that the uplink has in any table, or from its DHCP lease. The tables have
//! numbers of the tunnel's own, from a hash of its name, so that everything can be found and removed: at the end, and
//! at the next start after the daemon was killed.
//!
//! An end that waits for its peers answers from the address that a datagram came to. With several uplinks such an answer
//! must leave by the uplink of this address: providers drop the addresses of others (BCP 38). So each address of an uplink
//! gets a rule for datagrams from the tunnel's port, after a rule that prefers all routes of the main table except
//! default routes.

use super::diagnosis::{Devices, has_usable_address};
use super::routes::{Route, Routes, io_error};
use super::uplinks::default_routes;
use crate::config::{ConfiguredPath, TunnelConfig};
use futures_util::TryStreamExt;
use rtnetlink::packet_route::IpProtocol;
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage, RulePortRange};
use rtnetlink::{Handle, IpVersion, RouteMessageBuilder};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The first number of all tunnels' tables; each tunnel has 256.
const FIRST_TABLE: u32 = 0x5200_0000;
/// The priority of the rules: before the main table (32766), and after the rules of other programs.
const PRIORITY: u32 = 32_000;
/// The priority of the rule for all routes except default routes.
const MAIN_PRIORITY: u32 = PRIORITY - 1;
/// RT_TABLE_MAIN.
const MAIN_TABLE: u32 = 254;
const EEXIST: i32 = 17;

/// Whether a table belongs to some tunnel's policy routing, whose routes are copies.
pub(super) fn is_policy_table(table: u32) -> bool {
    table >> 24 == FIRST_TABLE >> 24
}

/// The properties by which a rule selects a path's packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Selector {
    /// The device that their socket is bound to.
    device: Option<String>,
    source: Option<IpAddr>,
    /// Their UDP port, at an end that waits for its peers.
    port: Option<u16>,
}

/// A rule, and the default route of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    selector: Selector,
    is_ipv4: bool,
    device: u32,
    gateway: Option<IpAddr>,
}

/// The rules and tables of a tunnel.
pub(super) struct PolicyRouting {
    handle: Handle,
    first_table: u32,
    /// By the table's number within the tunnel's range.
    entries: BTreeMap<u8, Entry>,
    /// The port on which this end waits for its peers.
    port: u16,
}

impl PolicyRouting {
    pub(super) fn new(handle: Handle, tunnel: &str, port: u16) -> Self {
        // Folded to 16 bits.
        let hash = strings::fnv1a_32(tunnel.bytes());
        let hash = (hash >> 16) ^ (hash & 0xffff);
        Self { handle, first_table: FIRST_TABLE | hash << 8, entries: BTreeMap::new(), port }
    }

    fn is_own(&self, table: u32) -> bool {
        table & !0xff == self.first_table
    }

    /// Removes the rules and routes of the tunnel, also those of an earlier process.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) async fn remove_all(&mut self) -> io::Result<()> {
        self.entries.clear();
        for version in [IpVersion::V4, IpVersion::V6] {
            let mut rules = Box::pin(self.handle.rule().get(version).execute());
            let mut own_rules = Vec::new();
            // A kernel without IPv6 has no IPv6 rules.
            while let Ok(Some(rule)) = rules.try_next().await {
                let is_own = rule_table(&rule).is_some_and(|table| self.is_own(table)) || self.is_main_rule(&rule);
                own_rules.extend(is_own.then_some(rule));
            }
            for rule in own_rules {
                self.handle.rule().del(rule).execute().await.map_err(|error| io_error(&error))?;
            }
        }
        let routes = Routes::new(self.handle.clone());
        for is_ipv4 in [true, false] {
            for route in routes.default_routes(is_ipv4).await?.iter().filter(|route| self.is_own(route.table)) {
                let request = self.handle.route().del(default_route(is_ipv4, route.device, route.gateway, route.table));
                request.execute().await.map_err(|error| io_error(&error))?;
            }
        }
        Ok(())
    }

    /// Adds the entries that paths of `config` lack, and removes those that are no longer needed. `remotes` are the
    /// peers' addresses by path. Returns a line for each addition.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) async fn update(
        &mut self,
        config: &TunnelConfig,
        remotes: &BTreeMap<String, SocketAddr>,
    ) -> io::Result<Vec<String>> {
        let mut needed = Vec::new();
        for path in &config.paths {
            let Some(remote) = remotes.get(&path.name).map(SocketAddr::ip) else { continue };
            needed.extend(self.entry(path, remote).await?);
        }
        let answers = self.answers(config).await?;
        for is_ipv4 in answers.iter().map(|entry| entry.is_ipv4).collect::<BTreeSet<_>>() {
            ignore_existing(self.add_rule(self.main_rule(is_ipv4)).await)?;
        }
        needed.extend(answers);
        let unneeded: Vec<u8> =
            self.entries.iter().filter(|(_, entry)| !needed.contains(entry)).map(|(slot, _)| *slot).collect();
        for slot in unneeded {
            if let Some(entry) = self.entries.remove(&slot) {
                self.remove(slot, &entry).await;
            }
        }
        let mut added = Vec::new();
        for entry in needed {
            let known = self.entries.iter().find(|(_, known)| **known == entry).map(|(slot, _)| *slot);
            let slot = known.or_else(|| (0..=u8::MAX).find(|slot| !self.entries.contains_key(slot)));
            let Some(slot) = slot else { break };
            // The kernel removes a route with its device; adding an existing one changes nothing.
            self.add(slot, &entry).await?;
            if known.is_none() {
                added.push(self.describe(slot, &entry));
                self.entries.insert(slot, entry);
            }
        }
        Ok(added)
    }

    /// The entry that a path needs; `None` if it has a route anyway, or if no gateway is known.
    async fn entry(&self, path: &ConfiguredPath, remote: IpAddr) -> io::Result<Option<Entry>> {
        let (interface, source) = (path.interface.as_deref(), path.source);
        let routes = Routes::new(self.handle.clone());
        let device_name = match (interface, source) {
            (Some(device), _) => Some(device.to_owned()),
            (None, Some(source)) => device_of(source),
            (None, None) => None,
        };
        let Some(device_name) = device_name else { return Ok(None) };
        let Ok(device) = nix::net::if_::if_nametoindex(device_name.as_str()) else { return Ok(None) };
        let is_ipv4 = remote.is_ipv4();
        let selector = match interface {
            Some(device) => Selector { device: Some(device.to_owned()), source: None, port: None },
            None => Selector { source, ..Selector::default() },
        };
        if let (Some(gateway), Some(source)) = (path.gateway, source) {
            let selector = Selector { source: Some(source), ..selector };
            let entry = Entry { selector, is_ipv4, device, gateway: Some(gateway) };
            return Ok((gateway.is_ipv4() == is_ipv4).then_some(entry));
        }
        let bound_to = interface.map(|_| device);
        let route = routes.lookup(remote, bound_to, source, None).await;
        let is_routed = route.is_ok_and(|route| route.device == device && !self.is_own(route.table));
        if is_routed {
            return Ok(None);
        }
        let default_routes = routes.default_routes(is_ipv4).await?;
        let others = default_routes.iter().filter(|route| route.device == device && !is_policy_table(route.table));
        let gateways: Vec<Option<IpAddr>> = others.map(|route| route.gateway).collect();
        let lease = || lease_gateway(device, &device_name).filter(|gateway| gateway.is_ipv4() == is_ipv4);
        let Some(gateway) = gateways.first().copied().or_else(|| lease().map(Some)) else { return Ok(None) };
        Ok(Some(Entry { selector, is_ipv4, device, gateway }))
    }

    /// The entries for the answers of an end that waits for its peers: one for each address of its uplinks, if there are
    /// several of a family.
    async fn answers(&self, config: &TunnelConfig) -> io::Result<Vec<Entry>> {
        if self.port == 0 || config.peers.iter().all(|peer| peer.endpoint.is_some()) {
            return Ok(Vec::new());
        }
        let (routes, devices) = (default_routes(&Routes::new(self.handle.clone())).await?, Devices::read());
        let mut entries = Vec::new();
        for is_ipv4 in [true, false] {
            let route = |(device, routes): (&String, &Vec<(bool, Route)>)| {
                let route = routes.iter().find(|(family, _)| *family == is_ipv4).map(|(_, route)| route.clone())?;
                let is_uplink = *device != config.interface.name && has_usable_address(&devices, device, is_ipv4);
                is_uplink.then(|| (device.clone(), route))
            };
            let uplinks: Vec<(String, Route)> = routes.iter().filter_map(route).collect();
            for (device, Route { device: index, gateway, .. }) in uplinks.iter().filter(|_| uplinks.len() > 1) {
                let own = devices.networks().filter(|(name, _)| name == device).map(|(_, network)| network.addr());
                let own = own.filter(|address| match address {
                    IpAddr::V4(_) => is_ipv4,
                    IpAddr::V6(v6) => !is_ipv4 && !v6.is_unicast_link_local(),
                });
                entries.extend(own.map(|source| Entry {
                    selector: Selector { device: None, source: Some(source), port: Some(self.port) },
                    is_ipv4,
                    device: *index,
                    gateway: *gateway,
                }));
            }
        }
        Ok(entries)
    }

    /// The rule by which datagrams from the tunnel's port use the main table without its default routes.
    fn main_rule(&self, is_ipv4: bool) -> RuleMessage {
        let mut message = self.empty_rule(is_ipv4, MAIN_TABLE, MAIN_PRIORITY);
        message.attributes.push(RuleAttribute::SuppressPrefixLen(0));
        message.attributes.extend(from_port(self.port));
        message
    }

    fn is_main_rule(&self, rule: &RuleMessage) -> bool {
        let has = |attribute: RuleAttribute| rule.attributes.contains(&attribute);
        has(RuleAttribute::Priority(MAIN_PRIORITY))
            && has(RuleAttribute::SuppressPrefixLen(0))
            && from_port(self.port).into_iter().all(has)
    }

    fn empty_rule(&self, is_ipv4: bool, table: u32, priority: u32) -> RuleMessage {
        let request = self.handle.rule().add().table_id(table).priority(priority).action(RuleAction::ToTable);
        if is_ipv4 { request.v4().message_mut().clone() } else { request.v6().message_mut().clone() }
    }

    async fn add_rule(&self, rule: RuleMessage) -> Result<(), rtnetlink::Error> {
        let mut request = self.handle.rule().add();
        *request.message_mut() = rule;
        request.execute().await
    }

    fn table(&self, slot: u8) -> u32 {
        self.first_table | u32::from(slot)
    }

    fn rule(&self, slot: u8, entry: &Entry) -> RuleMessage {
        let mut message = self.empty_rule(entry.is_ipv4, self.table(slot), PRIORITY);
        let Selector { device, source, port } = &entry.selector;
        message.attributes.extend(device.clone().map(RuleAttribute::Oifname));
        if let Some(source) = source {
            message.header.src_len = if source.is_ipv4() { 32 } else { 128 };
            message.attributes.push(RuleAttribute::Source(*source));
        }
        message.attributes.extend(port.iter().flat_map(|port| from_port(*port)));
        message
    }

    async fn add(&self, slot: u8, entry: &Entry) -> io::Result<()> {
        let route = default_route(entry.is_ipv4, entry.device, entry.gateway, self.table(slot));
        ignore_existing(self.handle.route().add(route).execute().await)?;
        ignore_existing(self.add_rule(self.rule(slot, entry)).await)
    }

    /// Removes an entry. It is not an error if the kernel has already removed it with a device.
    async fn remove(&self, slot: u8, entry: &Entry) {
        let _ = self.handle.rule().del(self.rule(slot, entry)).execute().await;
        let route = default_route(entry.is_ipv4, entry.device, entry.gateway, self.table(slot));
        let _ = self.handle.route().del(route).execute().await;
    }

    fn describe(&self, slot: u8, entry: &Entry) -> String {
        let Selector { device, source, .. } = &entry.selector;
        let device = device.as_ref().map(|device| format!(" by {device}"));
        let source = source.map(|source| format!(" from {source}"));
        let selector = device.into_iter().chain(source).collect::<String>();
        let gateway = entry.gateway.map_or_else(String::new, |gateway| format!(" via {gateway}"));
        format!("routing: packets{selector} get a default route{gateway}, table {}", self.table(slot))
    }
}

/// The attributes of a rule for UDP datagrams from a port.
fn from_port(port: u16) -> [RuleAttribute; 2] {
    [
        RuleAttribute::IpProtocol(IpProtocol::Udp),
        RuleAttribute::SourcePortRange(RulePortRange { start: port, end: port }),
    ]
}

fn rule_table(rule: &RuleMessage) -> Option<u32> {
    rule.attributes.iter().find_map(|attribute| match attribute {
        RuleAttribute::Table(table) => Some(*table),
        _ => None,
    })
}

fn default_route(
    is_ipv4: bool,
    device: u32,
    gateway: Option<IpAddr>,
    table: u32,
) -> rtnetlink::packet_route::route::RouteMessage {
    let v4 = || RouteMessageBuilder::<std::net::Ipv4Addr>::new().output_interface(device).table_id(table);
    let v6 = || RouteMessageBuilder::<std::net::Ipv6Addr>::new().output_interface(device).table_id(table);
    match gateway {
        // A gateway outside a narrow network (/32) is on the link nevertheless.
        Some(IpAddr::V4(gateway)) => v4().gateway(gateway).onlink().build(),
        Some(IpAddr::V6(gateway)) => v6().gateway(gateway).onlink().build(),
        None if is_ipv4 => v4().build(),
        None => v6().build(),
    }
}

fn ignore_existing(result: Result<(), rtnetlink::Error>) -> io::Result<()> {
    match result.map_err(|error| io_error(&error)) {
        Err(error) if error.raw_os_error() == Some(EEXIST) => Ok(()),
        result => result,
    }
}

/// The device that has an address.
fn device_of(address: IpAddr) -> Option<String> {
    let own = nix::ifaddrs::getifaddrs().into_iter().flatten().find(|entry| {
        let ip = entry.address.as_ref().and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
        });
        ip == Some(address)
    });
    own.map(|entry| entry.interface_name)
}

/// The router from a device's DHCP lease of systemd-networkd or dhclient.
fn lease_gateway(index: u32, device: &str) -> Option<IpAddr> {
    let networkd = fs::read_to_string(format!("/run/systemd/netif/leases/{index}")).unwrap_or_default();
    let router = networkd.lines().find_map(|line| line.strip_prefix("ROUTER="));
    if let Some(gateway) = router.and_then(|text| text.split_whitespace().next()?.parse().ok()) {
        return Some(gateway);
    }
    let dhclient = fs::read_to_string(format!("/var/lib/dhcp/dhclient.{device}.leases")).unwrap_or_default();
    // The latest lease is the last one.
    let router = dhclient.lines().rev().find_map(|line| line.trim().strip_prefix("option routers "))?;
    router.trim_end_matches(';').split(',').next()?.trim().parse().ok()
}
