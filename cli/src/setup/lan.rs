//! Networks behind a client: found, or named.

use super::host::{self, DeviceAddress};
use super::promises::{self, Lan};
use super::record::read_sysctl;
use daemon::config::overlap;
use daemon::control_plane::routed_devices;
use ipnet::IpNet;
use std::net::IpAddr;

/// The value of `--lan` that keeps the networks behind this host out of the tunnel.
pub(super) const NONE: &str = "none";
/// Devices of containers and virtual machines, whose programs translate by themselves.
const CONTAINERS: [&str; 8] = ["docker", "veth", "virbr", "lxc", "lxdbr", "podman", "cni", "vmnet"];

/// The private networks of devices without a default route, which are probably behind this host.
pub(super) fn candidates(interface: &str) -> Vec<Lan> {
    let routed = routed_devices().unwrap_or_default();
    let is_uplink = |device: &str| routed.iter().any(|routed| routed.name == device);
    let is_container = |device: &str| {
        let is_docker_bridge = device
            .strip_prefix("br-")
            .is_some_and(|rest| rest.len() == 12 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        is_docker_bridge || CONTAINERS.iter().any(|prefix| device.starts_with(prefix))
    };
    let is_behind = |DeviceAddress { device, network }: &DeviceAddress| {
        device != interface
            && !is_uplink(device)
            && !is_container(device)
            && is_private(network.addr())
            && network.prefix_len() < network.max_prefix_len()
    };
    host::addresses().into_iter().filter(is_behind).map(|found| lan(found.device, found.network)).collect()
}

fn lan(device: String, network: IpNet) -> Lan {
    Lan { device, network: network.trunc(), is_translated: false }
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_private(),
        IpAddr::V6(address) => address.is_unique_local(),
    }
}

/// Whether this host already forwards packets, and so is a router.
pub(super) fn is_router() -> bool {
    read_sysctl("net.ipv4.ip_forward").is_some_and(|value| value == "1")
}

/// The networks that `--lan` names: a device's, or one that a device leads to.
///
/// # Errors
/// There is no such device or network.
pub(super) fn named(text: &str) -> Result<Vec<Lan>, String> {
    let addresses = host::addresses();
    if let Ok(network) = promises::network(text) {
        let device = addresses.iter().find(|found| overlap(found.network.trunc(), network));
        let device = device.map(|found| found.device.clone()).or_else(|| routed_by(network));
        let device = device.ok_or_else(|| format!("--lan {text}: no device of this machine leads to that network"))?;
        return Ok(vec![lan(device, network)]);
    }
    let networks: Vec<Lan> = addresses
        .into_iter()
        .filter(|found| found.device == text && found.network.prefix_len() < found.network.max_prefix_len())
        .map(|found| lan(found.device, found.network))
        .collect();
    if networks.is_empty() {
        return Err(format!("--lan {text}: no device of this name has an address, and it is no network"));
    }
    Ok(networks)
}

/// The device of the route to a network behind another router, if that is not a default route.
fn routed_by(network: IpNet) -> Option<String> {
    let family = if network.addr().is_ipv4() { "-4" } else { "-6" };
    let text = host::output(&["ip", family, "route", "show", "to", "match", &network.to_string()])?;
    let line = text.lines().find(|line| !line.starts_with("default"))?;
    let mut words = line.split_whitespace().skip_while(|word| *word != "dev");
    words.nth(1).map(str::to_owned)
}

/// What the kernel does with a packet of another host of this network, if it does not send it by `device`: it leaves by
/// another device, or forwarding or reverse path filtering drops it. `own` is this host's address there.
pub(crate) fn misrouted(lan: &Lan, own: IpAddr, to: IpAddr, device: &str) -> Option<String> {
    let family = if own.is_ipv4() { "-4" } else { "-6" };
    let from = lan.network.hosts().find(|host| *host != own)?.to_string();
    let text = host::output(&["ip", family, "route", "get", &to.to_string(), "from", &from, "iif", &lan.device]);
    let Some(text) = text else { return Some("the kernel forwards none of them".to_owned()) };
    let words: Vec<_> = text.split_whitespace().collect();
    let by = words.iter().position(|word| *word == "dev").and_then(|at| words.get(at + 1)).copied().unwrap_or("none");
    (by != device).then(|| format!("they leave by {by}"))
}
