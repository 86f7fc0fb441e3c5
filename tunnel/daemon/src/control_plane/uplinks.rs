//! The uplinks of `uplinks = "auto"`: each device with a default route is a path, as long as it has one. A device with
//! a default route that is not a path is reported with the reason.

use super::device_names::{matches, pattern_of_no_uplink, seems_metered};
use super::diagnosis::{Devices, has_usable_address, unusable_device};
use super::metered::{MeteredDevices, SystemBus};
use super::policy_routing::is_policy_table;
use super::routes::{Route, Routes};
use crate::config::{ConfiguredPath, TunnelConfig, UplinkOptions};
use crate::event::EventLevel;
use crate::status::Notice;
use machine::MAX_PATHS;
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

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
    // A device that has been removed since has no name.
    found.remove("");
    Ok(found)
}

/// Why the configuration keeps a device from being an automatic uplink; `None` if it may be one, or has a [[path]].
fn exclusion(config: &TunnelConfig, options: &UplinkOptions, device: &str) -> Option<String> {
    if let Some(pattern) = options.exclude.iter().find(|pattern| matches(pattern, device)) {
        return Some(format!("`exclude` of `uplinks` names it (`{pattern}`)"));
    }
    let pattern = pattern_of_no_uplink(device).filter(|_| !has_path(config, device))?;
    Some(format!("its name is on the list of containers' and tunnels' devices (`{pattern}`)"))
}

/// Whether a [[path]] names a device. Such a device has only that path.
fn has_path(config: &TunnelConfig, device: &str) -> bool {
    let names =
        |path: &ConfiguredPath| !path.automatic && (path.interface.as_deref() == Some(device) || path.name == device);
    config.paths.iter().any(names)
}

/// Whether a device may be an automatic uplink of `config`.
pub(super) fn may_be_uplink(config: &TunnelConfig, options: &UplinkOptions, device: &str) -> bool {
    device != config.interface.name && !has_path(config, device) && exclusion(config, options, device).is_none()
}

/// The configuration with its uplinks, and notices about devices that were left out.
#[derive(Clone, Debug)]
pub(super) struct FoundUplinks {
    /// The configuration with a path for each uplink, and no other automatic paths.
    pub(super) config: TunnelConfig,
    /// Devices with a default route that are not paths.
    pub(super) left_out: Vec<Notice>,
}

/// Finds the uplinks of `config`, which has the earlier ones. `told` is the system's report of metered devices.
pub(super) fn find_uplinks(
    mut config: TunnelConfig,
    routes: &DefaultRoutes,
    devices: &Devices,
    told: &MeteredDevices,
) -> FoundUplinks {
    let Some(options) = config.interface.uplinks.clone() else { return FoundUplinks { config, left_out: Vec::new() } };
    let (mut uplinks, mut left_out) = (Vec::new(), Vec::new());
    for (device, routes) in routes.iter().filter(|(device, _)| **device != config.interface.name) {
        if let Some(reason) = exclusion(&config, &options, device) {
            let remedy = format!("a [[path]] with `interface = \"{device}\"` adds it");
            left_out.push(Notice::new(
                EventLevel::Info,
                format!("{device} has a default route, but is not a path: {reason}"),
                remedy,
            ));
        } else if !has_path(&config, device) {
            let path = uplink_path(device, config.interface.listen_port, &options, told);
            uplinks.push((routes.iter().map(|(_, route)| route.metric).min(), path.clone()));
            let (paths, others) = further_gateways(&path, routes, devices, config.interface.policy_routing);
            uplinks.extend(paths.into_iter().map(|(metric, path)| (Some(metric), path)));
            left_out.extend(others);
        }
    }
    left_out.extend(keep_as_many_as_fit(&config, &mut uplinks));
    config.paths.retain(|path| !path.automatic);
    config.paths.extend(uplinks.into_iter().map(|(_, path)| path));
    FoundUplinks { config, left_out }
}

fn uplink_path(name: &str, port: u16, options: &UplinkOptions, told: &MeteredDevices) -> ConfiguredPath {
    let matching = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
    let quotas = options.quotas.iter().filter(|(pattern, _)| matches(pattern, name));
    let quota = quotas.max_by_key(|(pattern, _)| pattern.len()).map(|(_, quota)| *quota);
    let secondary = matching(&options.secondary);
    // A modem with a quota, or a secondary one, is meant to be used.
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

/// The paths by further gateways of a device, with the metrics of their routes; and the gateways that cannot be paths.
/// The source address of packets distinguishes two gateways of one device.
fn further_gateways(
    first: &ConfiguredPath,
    routes: &[(bool, Route)],
    devices: &Devices,
    has_policy_routing: bool,
) -> (Vec<(u32, ConfiguredPath)>, Vec<Notice>) {
    let device = first.name.as_str();
    let (mut paths, mut left_out) = (Vec::new(), Vec::new());
    for is_ipv4 in [true, false] {
        let mut gateways: Vec<(IpAddr, u32)> = Vec::new();
        for (_, route) in routes.iter().filter(|(family, _)| *family == is_ipv4) {
            let Some(gateway) = route.gateway else { continue };
            if !gateways.iter().any(|(known, _)| *known == gateway) {
                gateways.push((gateway, route.metric));
            }
        }
        let mut taken: Vec<IpAddr> = Vec::new();
        for (index, (gateway, metric)) in gateways.iter().enumerate() {
            let beside = |address: IpAddr| {
                let network = devices.networks().find(|(name, own)| *name == device && own.addr() == address);
                network.is_some_and(|(_, network)| network.contains(gateway))
            };
            let own = devices.networks().filter(|(name, _)| *name == device).map(|(_, network)| network.addr());
            let source = own.filter(|address| beside(*address) && !taken.contains(address)).min();
            taken.extend(source);
            match source {
                _ if index == 0 => {}
                Some(source) if has_policy_routing => {
                    let name = format!("{device}-{gateway}");
                    let (source, gateway) = (Some(source), Some(*gateway));
                    paths.push((*metric, ConfiguredPath { name, source, gateway, ..first.clone() }));
                }
                Some(_) => left_out.push(Notice::new(
                    EventLevel::Info,

                    format!("{device} has a second gateway, {gateway}, which is not a path"),
                    "`routing = \"auto\"` in [interface] makes it one".into(),
                )),
                None => left_out.push(Notice::new(
                    EventLevel::Info,

                    format!("{device} has a second gateway, {gateway}, but no second address: it is not a path"),
                    format!(
                        "a second address of {device} in the gateway's network (`ip address add ADDRESS/24 dev {device}`), \
                         or a VLAN for it"
                    ),
                )),
            }
        }
    }
    (paths, left_out)
}

/// Keeps at most as many uplinks as a peer can have paths ([`MAX_PATHS`]): those that are already paths first, then
/// unmetered before metered ones, then by metric. Returns the notice about the others.
fn keep_as_many_as_fit(config: &TunnelConfig, uplinks: &mut Vec<(Option<u32>, ConfiguredPath)>) -> Option<Notice> {
    let limit = MAX_PATHS.saturating_sub(config.paths.iter().filter(|path| !path.automatic).count());
    let is_path = |name: &str| config.paths.iter().any(|path| path.automatic && path.name == name);
    uplinks.sort_by_key(|(metric, path)| (!is_path(&path.name), path.metered, *metric, path.name.clone()));
    let rest = uplinks.split_off(limit.min(uplinks.len()));
    uplinks.sort_by(|(_, one), (_, other)| one.name.cmp(&other.name));
    let names: Vec<_> = rest.iter().map(|(_, path)| path.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        let text = format!("a peer has at most {MAX_PATHS} paths: these uplinks are not used: {}", names.join(", "));
        Notice::new(EventLevel::Warn, text, "`uplinks = { exclude = [...] }` leaves out the unwanted ones".into())
    })
}

/// Notices about devices that are not used as uplinks: devices with a default route that are not paths of `config`, and
/// devices that are up and have an address, but no default route, unless they are among `shown`.
///
/// # Errors
/// Netlink cannot be opened, or does not answer.
pub fn left_out_uplinks(config: &TunnelConfig, shown: &[String]) -> io::Result<Vec<Notice>> {
    let Some(options) = &config.interface.uplinks else { return Ok(Vec::new()) };
    let routes = with_runtime(|routes| async move { default_routes(&routes).await })?;
    let devices = Devices::read();
    let mut left_out = find_uplinks(config.clone(), &routes, &devices, &MeteredDevices::new()).left_out;
    let has_no_route = |name: &String| {
        !routes.contains_key(name)
            && !shown.contains(name)
            && may_be_uplink(config, options, name)
            && unusable_device(name, &devices).is_none()
            && [true, false].into_iter().any(|is_ipv4| has_usable_address(&devices, name, is_ipv4))
    };
    left_out.extend(devices.names().iter().filter(|name| has_no_route(name)).map(|device| {
        Notice::new(
            EventLevel::Info,
            format!("{device} has an address and no default route, which would make it an uplink"),
            format!("`ip route add default via GATEWAY dev {device} metric 700`"),
        )
    }));
    Ok(left_out)
}

/// A device with a default route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutedDevice {
    /// Its name.
    pub name: String,
    /// Whether it has a default route of IPv4.
    pub has_ipv4: bool,
    /// Whether it has a default route of IPv6.
    pub has_ipv6: bool,
}

/// The devices of this host with a default route, in the order of their names.
///
/// # Errors
/// Netlink cannot be opened, or does not answer.
pub fn routed_devices() -> io::Result<Vec<RoutedDevice>> {
    let routes = with_runtime(|routes| async move { default_routes(&routes).await })?;
    let has = |routes: &[(bool, Route)], family| routes.iter().any(|(is_ipv4, _)| *is_ipv4 == family);
    let device = |(name, routes): (String, Vec<(bool, Route)>)| RoutedDevice {
        name,
        has_ipv4: has(&routes, true),
        has_ipv6: has(&routes, false),
    };
    Ok(routes.into_iter().map(device).collect())
}

/// The routers of the IPv4 default routes that have private addresses, those of the least metrics first.
///
/// # Errors
/// Netlink cannot be opened, or does not answer.
pub fn private_gateways() -> io::Result<Vec<IpAddr>> {
    let found = with_runtime(|routes| async move { default_routes(&routes).await })?;
    let mut routes: Vec<_> = found.into_values().flatten().map(|(_, route)| route).collect();
    routes.sort_by_key(|route| route.metric);
    let is_private = |gateway: &IpAddr| matches!(gateway, IpAddr::V4(v4) if v4.is_private());
    Ok(routes.into_iter().filter_map(|route| route.gateway.filter(is_private)).collect())
}

pub(super) fn with_runtime<T, F: Future<Output = io::Result<T>>>(run: impl FnOnce(Routes) -> F) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        run(Routes::new(handle)).await
    })
}

/// `config` with the present uplinks, before the control loop runs, which reports the devices that are left out.
///
/// # Errors
/// Netlink cannot be opened, or does not answer.
pub fn with_present_uplinks(config: TunnelConfig) -> io::Result<TunnelConfig> {
    if config.interface.uplinks.is_none() {
        return Ok(config);
    }
    with_runtime(|routes| async move {
        let routes = default_routes(&routes).await?;
        let mut bus = SystemBus::default();
        let told = bus.metered(&routes).await;
        Ok(find_uplinks(config, &routes, &Devices::read(), told).config)
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

    fn found(keys: &str, routes: &[(&str, &str, u32)], networks: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let text = format!(
            "[interface]\naddress = '10.77.0.1/24'\nprivate-key = 'IJBHDNBVSD5zTHCc4pVZBK6u9XpGh7nnBDbCf7NfTVM='\n{keys}\n\
             [[peer]]\npublic-key = 'R1kDN1ki3Vq7Gkq9Yp0MLOWlbVbCNWkAPT8OhZ1xQ0Y='\nallowed-ips = '10.77.0.2/32'\n\
             endpoint = '192.0.2.1'\n"
        );
        let config = crate::config::parse("x", &text, std::path::Path::new("rw0.toml")).expect("a good file");
        let mut all = DefaultRoutes::new();
        for (device, gateway, metric) in routes {
            let route = Route { device: 7, gateway: gateway.parse().ok(), table: 254, metric: *metric };
            all.entry((*device).to_owned()).or_default().push((true, route));
        }
        let devices = Devices::with_networks(networks);
        let FoundUplinks { config, left_out } = find_uplinks(config, &all, &devices, &MeteredDevices::new());
        let names = config.paths.into_iter().map(|path| path.name).collect();
        (names, left_out.into_iter().map(|notice| notice.text).collect())
    }

    #[test]
    fn what_is_left_out_is_told_with_its_reason() {
        let routes =
            [("eth0", "192.0.2.1", 1), ("wg0", "", 2), ("usb7", "198.51.100.1", 3), ("rw0", "", 4), ("br-wan", "", 5)];
        let (names, left_out) = found("uplinks = { exclude = ['usb*'] }", &routes, &[]);
        assert_eq!(names, ["br-wan", "eth0"]);
        let reasons = ["`exclude` of `uplinks` names it (`usb*`)", "containers' and tunnels' devices (`wg*`)"];
        assert_eq!(left_out.len(), 2);
        for (text, reason) in left_out.iter().zip(reasons) {
            assert!(text.contains(reason), "{text}");
        }
    }

    #[test]
    fn a_second_gateway_is_a_path_if_the_device_has_an_address_beside_it() {
        let routes = [("eth0", "192.168.1.1", 1), ("eth0", "192.168.8.1", 2)];
        let both = [("eth0", "192.168.1.2/24"), ("eth0", "192.168.8.2/24")];
        let auto = "uplinks = 'auto'\nrouting = 'auto'";
        assert_eq!(found(auto, &routes, &both), (vec!["eth0".into(), "eth0-192.168.8.1".into()], vec![]));
        for (keys, networks, reason) in [
            ("uplinks = 'auto'", &both[..], "has a second gateway, 192.168.8.1, which is not a path"),
            (auto, &both[..1], "has a second gateway, 192.168.8.1, but no second address"),
            (auto, &[("eth0", "192.168.0.2/16")], "has a second gateway, 192.168.8.1, but no second address"),
        ] {
            let (names, left_out) = found(keys, &routes, networks);
            assert!(names == ["eth0"] && left_out.len() == 1 && left_out[0].contains(reason), "{keys}: {left_out:?}");
        }
        // The same gateway in two tables is one.
        assert_eq!(found(auto, &[routes[0], routes[0]], &both).0, ["eth0"]);
    }

    #[test]
    fn of_twenty_uplinks_those_without_a_meter_and_of_the_least_metric_are_paths() {
        let names: Vec<String> = (0..20).map(|number| format!("up{number:02}")).collect();
        let routes: Vec<_> =
            names.iter().enumerate().map(|(index, name)| (name.as_str(), "", 100 - index as u32)).collect();
        let (paths, left_out) = found("uplinks = { metered = ['up19'] }", &routes, &[]);
        assert_eq!(paths, names[3..19]);
        assert_eq!(left_out, ["a peer has at most 16 paths: these uplinks are not used: up02, up01, up00, up19"]);
    }
}
