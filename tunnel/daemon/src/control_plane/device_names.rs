//! Classification of devices by name and kind: whether a device may be an uplink, and whether its traffic costs money.

use super::metered::MeteredDevices;
use std::fs;
use std::path::Path;

/// Names of devices that lead to this host's own containers and tunnels and not to other hosts; see also
/// [`is_container_bridge`].
const NO_UPLINKS: [&str; 8] = ["lo", "docker*", "veth*", "virbr*", "wg*", "tun*", "tap*", "tailscale*"];
/// Names of modems and tethered phones, for devices whose kind the kernel does not report.
const METERED_NAMES: [&str; 3] = ["wwan*", "ppp*", "usb*"];
/// Drivers of tethered phones.
const TETHERING_DRIVERS: [&str; 2] = ["ipheth", "rndis_host"];

/// Whether a name matches a pattern, in which `*` stands for any characters.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((prefix, rest)) => name.strip_prefix(prefix).is_some_and(|tail| {
            (0..=tail.len()).filter(|start| tail.is_char_boundary(*start)).any(|start| matches(rest, &tail[start..]))
        }),
    }
}

/// The pattern of names of containers' and tunnels' devices that a device's name matches.
pub(super) fn pattern_of_no_uplink(device: &str) -> Option<&'static str> {
    let pattern = NO_UPLINKS.into_iter().find(|pattern| matches(pattern, device));
    pattern.or_else(|| is_container_bridge(device).then_some("br-ID"))
}

/// Whether a bridge has a name of Docker's form: `br-` and the first 12 digits of the network's identifier. Other
/// bridges, such as `br-wan`, may be uplinks.
fn is_container_bridge(device: &str) -> bool {
    device.strip_prefix("br-").is_some_and(|id| id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether the traffic of a device seems to cost money: by the system's report, by its kind (a modem has the type
/// `wwan`), by the driver of a tethered phone, or by its name.
pub(super) fn seems_metered(device: &str, told: &MeteredDevices) -> bool {
    told.get(device).copied().unwrap_or_else(|| {
        let folder = Path::new("/sys/class/net").join(device);
        let is_modem = fs::read_to_string(folder.join("uevent")).is_ok_and(|text| text.contains("DEVTYPE=wwan\n"));
        let driver = fs::read_link(folder.join("device/driver")).ok();
        let driver = driver.as_ref().and_then(|path| path.file_name()?.to_str()).unwrap_or_default();
        is_modem || TETHERING_DRIVERS.contains(&driver) || METERED_NAMES.into_iter().any(|name| matches(name, device))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_containers_and_tunnels_are_told_from_those_of_uplinks() {
        for name in ["eth0", "br-wan", "br-lan", "br0", "eth0.7", "ppp0", "wan", "bond0", "br-0123456789zz"] {
            assert_eq!(pattern_of_no_uplink(name), None, "{name}");
        }
        for (name, pattern) in [("wg0", "wg*"), ("docker0", "docker*"), ("br-0123456789ab", "br-ID"), ("lo", "lo")] {
            assert_eq!(pattern_of_no_uplink(name), Some(pattern), "{name}");
        }
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
