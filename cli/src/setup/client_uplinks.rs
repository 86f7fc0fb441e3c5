//! The uplinks of a new client: those that the daemon finds, and the devices that it leaves out.

use super::client::{config_text, with_port};
use super::environment;
use super::token::Token;
use crate::Failure;
use daemon::config::{self, TunnelConfig};
use daemon::control_plane::{
    RoutedDevice, left_out_uplinks, overlapping_networks, routed_devices, with_present_uplinks,
};
use daemon::event::EventLevel;
use daemon::status::Notice;
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

/// The uplinks of a client.
#[derive(Debug, Default)]
pub(super) struct ClientUplinks {
    /// A description of each path: its uplink, and the endpoint of the server that it reaches.
    pub(super) paths: Vec<String>,
    /// The endpoints that they reach.
    pub(super) endpoints: BTreeSet<String>,
    /// The devices, each once.
    pub(super) devices: Vec<String>,
    /// Notes on devices that are left out, and on overlapping networks.
    pub(super) notices: Vec<Notice>,
}

/// Finds the uplinks of this host, as the daemon will. `networks` are those that go through the tunnel, and `behind` the
/// devices of those behind this host, which are not uplinks.
///
/// # Errors No uplink could reach the server, or the tunnel's networks are those of a device.
pub(super) fn find(name: &str, token: &Token, networks: &[IpNet], behind: &[String]) -> Result<ClientUplinks, Failure> {
    let netlink = |error: std::io::Error| environment(format!("netlink: {error}"));
    let config = with_present_uplinks(config(name, token, networks)?).map_err(netlink)?;
    let overlaps = overlapping_networks(&config);
    if let Some(Notice { text, remedy, .. }) = overlaps.iter().find(|notice| notice.level > EventLevel::Info) {
        return Err(environment(format!("{text}\n  help: {remedy}")));
    }
    let routed = routed_devices().map_err(netlink)?;
    let reached = |device: &str| reached(token, routed.iter().find(|routed| routed.name == device)?);
    let mut uplinks = ClientUplinks { notices: overlaps, ..ClientUplinks::default() };
    for path in &config.paths {
        let device = path.interface.clone().unwrap_or_default();
        match reached(&device) {
            Some((endpoint, translation)) => {
                uplinks.paths.push(format!("{} to {endpoint}{translation}", path.name));
                uplinks.endpoints.insert(endpoint);
            }
            None => uplinks.notices.push(Notice {
                level: EventLevel::Info,
                text: format!("{} has no version of IP in common with the server, so it does not work", path.name),
                remedy: "`--endpoint` on the server names an address of the other version as well".into(),
            }),
        }
        uplinks.devices.push(device);
    }
    uplinks.devices.dedup();
    uplinks.notices.extend(left_out_uplinks(&config, behind).map_err(netlink)?);
    if uplinks.paths.is_empty() {
        return Err(environment(none(token, &uplinks)));
    }
    Ok(uplinks)
}

/// The configuration that the client will have.
fn config(name: &str, token: &Token, networks: &[IpNet]) -> Result<TunnelConfig, Failure> {
    let key = daemon::keys::genkey();
    let text = config_text(token, &format!("name = \"{name}\"\nprivate-key = \"{}\"\n", *key), "", networks);
    let text = text.replace("preshared-key-file = \"\"\n", "");
    config::parse("the token", &text, Path::new("rw0.toml")).map_err(|errors| environment(errors.to_string()))
}

/// The endpoint of the server that a device reaches, and how. A device with IPv6 alone may reach an IPv4 endpoint if the
/// network translates (NAT64).
fn reached(token: &Token, device: &RoutedDevice) -> Option<(String, &'static str)> {
    let has = |endpoint: &&String| match endpoint.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => device.has_ipv4,
        Ok(IpAddr::V6(_)) => device.has_ipv6,
        Err(_) => true,
    };
    let direct = token.endpoints.iter().find(has).map(|endpoint| (endpoint, ""));
    let translated = || Some((token.endpoints.first().filter(|_| device.has_ipv6)?, ", if its network has NAT64"));
    direct.or_else(translated).map(|(endpoint, way)| (with_port(endpoint, token.port), way))
}

fn none(token: &Token, uplinks: &ClientUplinks) -> String {
    let reasons: String =
        uplinks.notices.iter().map(|notice| format!("\n  {}: {}", notice.text, notice.remedy)).collect();
    if uplinks.devices.is_empty() {
        return format!(
            "no device that may be an uplink has a default route: is this machine connected? `ip route` shows its \
             routes{reasons}"
        );
    }
    let endpoints = token.endpoints.join(", ");
    format!("no default route leads to the server ({endpoints}), which has another version of IP{reasons}")
}
