//! The uplinks of `uplinks = "auto"`: each device with a default route becomes a path, as long as it has one.

use super::diagnosis::{Devices, has_usable_address, unusable_device};
use super::metered::{MeteredDevices, SystemBus};
use super::policy_routing::is_policy_table;
use super::routes::{Route, Routes};
use crate::config::{ConfiguredPath, TunnelConfig, UplinkOptions};
use std::collections::BTreeMap;
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

/// Whether the traffic of a device seems to cost money: by what the system tells, by its kind (a modem has the type `wwan`),
/// by the driver of a tethered telephone, or by its name.
fn seems_metered(device: &str, told: &MeteredDevices) -> bool {
    told.get(device).copied().unwrap_or_else(|| {
        let folder = Path::new("/sys/class/net").join(device);
        let is_modem = fs::read_to_string(folder.join("uevent")).is_ok_and(|text| text.contains("DEVTYPE=wwan\n"));
        let driver = fs::read_link(folder.join("device/driver")).ok();
        let driver = driver.as_ref().and_then(|path| path.file_name()?.to_str()).unwrap_or_default();
        is_modem || TETHERING_DRIVERS.contains(&driver) || METERED_NAMES.into_iter().any(|name| matches(name, device))
    })
}

/// The host's default routes by the names of their devices, without those of policy routing. `true` is IPv4.
pub(super) type DefaultRoutes = BTreeMap<String, Vec<(bool, Route)>>;

/// Reads the host's default routes.
///
/// # Errors
/// Netlink does not answer.
pub(super) async fn default_routes(routes: &Routes) -> io::Result<DefaultRoutes> {
    let mut found = DefaultRoutes::new();
    for is_ipv4 in [true, false] {
        let all = routes.default_routes(is_ipv4).await?;
        for route in all.into_iter().filter(|route| !is_policy_table(route.table)) {
            let name = nix::net::if_::if_indextoname(route.device).ok().and_then(|name| name.into_string().ok());
            found.entry(name.unwrap_or_default()).or_default().push((is_ipv4, route));
        }
    }
    // The index of a route over several devices is 0.
    found.remove("");
    Ok(found)
}

/// Whether a device may be an automatic uplink of `config`. One that a [[path]] names has that path alone.
pub(super) fn may_be_uplink(config: &TunnelConfig, options: &UplinkOptions, name: &str) -> bool {
    let mut excluded = NO_UPLINKS.into_iter().chain(options.exclude.iter().map(String::as_str));
    let is_configured =
        |path: &ConfiguredPath| !path.automatic && (path.interface.as_deref() == Some(name) || path.name == name);
    name != config.interface.name
        && !excluded.any(|pattern| matches(pattern, name))
        && !config.paths.iter().any(is_configured)
}

/// `config` with a path for each device with a default route, and no other automatic paths. `told` is what the system tells
/// of metered devices.
pub(super) fn with_uplinks(mut config: TunnelConfig, routes: &DefaultRoutes, told: &MeteredDevices) -> TunnelConfig {
    let Some(options) = config.interface.uplinks.clone() else { return config };
    config.paths.retain(|path| !path.automatic);
    let names: Vec<_> = routes.keys().filter(|name| may_be_uplink(&config, &options, name)).collect();
    let port = config.interface.listen_port;
    config.paths.extend(names.into_iter().map(|name| uplink_path(name, port, &options, told)));
    config
}

fn uplink_path(name: &str, port: u16, options: &UplinkOptions, told: &MeteredDevices) -> ConfiguredPath {
    let matching = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
    let quotas = options.quotas.iter().filter(|(pattern, _)| matches(pattern, name));
    let quota = quotas.max_by_key(|(pattern, _)| pattern.len()).map(|(_, quota)| *quota);
    let secondary = matching(&options.secondary);
    // Who gives a modem a quota, or makes it secondary, wants it to be used.
    let is_wanted = secondary || quota.is_some() || matching(&options.unmetered);
    ConfiguredPath {
        interface: Some(name.to_owned()),
        metered: matching(&options.metered) || !is_wanted && seems_metered(name, told),
        secondary,
        quota,
        automatic: true,
        ..ConfiguredPath::any(port, name.to_owned())
    }
}

/// Devices that are up and have an address, but no default route, so that they are no uplinks of `config`.
///
/// # Errors
/// Netlink cannot be opened, or does not answer.
pub fn devices_without_route(config: &TunnelConfig) -> io::Result<Vec<String>> {
    let Some(options) = &config.interface.uplinks else { return Ok(Vec::new()) };
    let routes = present_routes()?;
    let devices = Devices::read();
    let is_left_out = |name: &String| {
        !routes.contains_key(name)
            && may_be_uplink(config, options, name)
            && unusable_device(name, &devices).is_none()
            && [true, false].into_iter().any(|is_ipv4| has_usable_address(&devices, name, is_ipv4))
    };
    Ok(devices.names().into_iter().filter(is_left_out).collect())
}

/// The default routes, for programs that have no control loop.
fn present_routes() -> io::Result<DefaultRoutes> {
    with_runtime(|routes| async move { default_routes(&routes).await })
}

fn with_runtime<T, F: Future<Output = io::Result<T>>>(run: impl FnOnce(Routes) -> F) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        run(Routes::new(handle)).await
    })
}

/// `with_uplinks` at the start, before there is a control loop.
///
/// # Errors
/// Netlink cannot be opened, or does not answer.
pub fn with_present_uplinks(config: TunnelConfig) -> io::Result<TunnelConfig> {
    if config.interface.uplinks.is_none() {
        return Ok(config);
    }
    with_runtime(|routes| async move {
        let routes = default_routes(&routes).await?;
        Ok(with_uplinks(config, &routes, SystemBus::default().metered(&routes).await))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_goes_before_the_system_and_that_before_the_name() {
        let of = |metered: &[&str], unmetered: &[&str]| {
            let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            UplinkOptions { metered: texts(metered), unmetered: texts(unmetered), ..UplinkOptions::default() }
        };
        let told = |answer: Option<bool>| answer.into_iter().map(|answer| ("wwan7".to_owned(), answer)).collect();
        for (options, answer, expected) in [
            (of(&[], &[]), None, true),
            (of(&[], &[]), Some(false), false),
            (of(&["wwan*"], &[]), Some(false), true),
            (of(&[], &["wwan*"]), Some(true), false),
            (of(&[], &["eth*"]), Some(true), true),
        ] {
            let path = uplink_path("wwan7", 0, &options, &told(answer));
            assert_eq!(path.metered, expected, "{options:?} {answer:?}");
        }
        assert!(!uplink_path("eth7", 0, &of(&[], &[]), &MeteredDevices::new()).metered);
    }

    #[test]
    fn a_modem_with_a_quota_is_used_and_the_longest_pattern_holds() {
        let quota = |bytes| crate::quota::Quota { bytes, reset_day: 1 };
        let quotas = [("*", 3), ("wwan*", 1), ("w*", 2)].map(|(pattern, bytes)| (pattern.to_owned(), quota(bytes)));
        let options = UplinkOptions { quotas: quotas.into(), ..UplinkOptions::default() };
        let path = uplink_path("wwan7", 0, &options, &MeteredDevices::new());
        assert_eq!((path.metered, path.quota), (false, Some(quota(1))));
    }

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
