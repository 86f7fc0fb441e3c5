//! The uplinks of `uplinks = "auto"`: each device with a default route becomes a path, as long as it has one.

use super::policy_routing::is_policy_table;
use super::routes::Routes;
use crate::config::{ConfiguredPath, TunnelConfig, UplinkOptions};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// Names of devices that lead to this host's own containers and tunnels and not out of it.
const NO_UPLINKS: [&str; 9] = ["lo", "docker*", "veth*", "br-*", "virbr*", "wg*", "tun*", "tap*", "tailscale*"];
/// Names that modems and tethered telephones have, where the kernel does not tell.
const METERED_NAMES: [&str; 3] = ["wwan*", "ppp*", "usb*"];
/// Drivers of tethered telephones.
const TETHERING_DRIVERS: [&str; 2] = ["ipheth", "rndis_host"];

/// Whether a name matches a pattern, in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((prefix, rest)) => name.strip_prefix(prefix).is_some_and(|tail| {
            (0..=tail.len()).filter(|start| tail.is_char_boundary(*start)).any(|start| matches(rest, &tail[start..]))
        }),
    }
}

/// Whether the traffic of a device costs money: by the configured patterns, by its kind (a modem has the type `wwan`), by
/// the driver of a tethered telephone, or by its name. What NetworkManager's `connection.metered` says is not read.
fn is_metered(device: &str, options: &UplinkOptions) -> bool {
    let folder = Path::new("/sys/class/net").join(device);
    let is_modem = fs::read_to_string(folder.join("uevent")).is_ok_and(|text| text.contains("DEVTYPE=wwan\n"));
    let driver = fs::read_link(folder.join("device/driver")).ok();
    let driver = driver.as_ref().and_then(|path| path.file_name()?.to_str()).unwrap_or_default();
    let by_name = options.metered.iter().map(String::as_str).chain(METERED_NAMES).any(|name| matches(name, device));
    is_modem || TETHERING_DRIVERS.contains(&driver) || by_name
}

/// `config` with a path for each present uplink, and no other automatic paths. A device that a [[path]] names has that
/// one alone.
///
/// # Errors
/// Netlink does not answer.
pub(super) async fn with_uplinks(mut config: TunnelConfig, routes: &Routes) -> io::Result<TunnelConfig> {
    let Some(options) = config.interface.uplinks.clone() else { return Ok(config) };
    config.paths.retain(|path| !path.automatic);
    let mut devices = BTreeSet::new();
    for is_ipv4 in [true, false] {
        let default_routes = routes.default_routes(is_ipv4).await?;
        let own = default_routes.iter().filter(|route| !is_policy_table(route.table));
        devices.extend(own.map(|route| route.device));
    }
    let names = devices.into_iter().filter_map(|index| nix::net::if_::if_indextoname(index).ok()?.into_string().ok());
    let mut names: Vec<String> = names.filter(|name| *name != config.interface.name).collect();
    names.sort();
    for name in names {
        let is_excluded = NO_UPLINKS.into_iter().chain(options.exclude.iter().map(String::as_str));
        let is_configured = |path: &ConfiguredPath| path.interface.as_ref() == Some(&name) || path.name == name;
        if is_excluded.into_iter().any(|pattern| matches(pattern, &name)) || config.paths.iter().any(is_configured) {
            continue;
        }
        config.paths.push(ConfiguredPath {
            interface: Some(name.clone()),
            metered: is_metered(&name, &options),
            automatic: true,
            ..ConfiguredPath::any(config.interface.listen_port, name)
        });
    }
    Ok(config)
}

/// `with_uplinks` at the start, before there is a control loop.
///
/// # Errors
/// Netlink cannot be opened, or does not answer.
pub fn with_present_uplinks(config: TunnelConfig) -> io::Result<TunnelConfig> {
    if config.interface.uplinks.is_none() {
        return Ok(config);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        with_uplinks(config, &Routes::new(handle)).await
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_in_a_pattern_stands_for_any_characters() {
        for (pattern, name, expected) in [
            ("wwan*", "wwan0", true),
            ("wwan*", "wwan", true),
            ("wwan*", "eth0", false),
            ("eth0", "eth0", true),
            ("eth0", "eth01", false),
            ("en*s*", "enp3s0", true),
            ("*.100", "eth0.100", true),
            ("*.100", "eth0.1000", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
