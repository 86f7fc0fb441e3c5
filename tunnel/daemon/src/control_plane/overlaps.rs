//! Networks that both the tunnel and a device of this host have: the kernel sends packets to them by one of the two.

use super::diagnosis::Devices;
use crate::config::TunnelConfig;
use crate::event::EventLevel;
use crate::status::Notice;
use ipnet::IpNet;
use std::net::IpAddr;

/// The overlaps of the tunnel's networks with those of this host's devices. An overlap is a warning if it keeps the
/// tunnel from being used as configured.
#[must_use]
pub fn overlapping_networks(config: &TunnelConfig) -> Vec<Notice> {
    overlaps(config, &Devices::read())
}

pub(super) fn overlaps(config: &TunnelConfig, devices: &Devices) -> Vec<Notice> {
    let own = &config.interface;
    let others: Vec<(&str, IpNet)> =
        devices.networks().filter(|(device, network)| *device != own.name && !network.addr().is_loopback()).collect();
    let mut notices = Vec::new();
    for (device, network) in &others {
        for inner in own.addresses.iter().filter(|inner| inner.trunc().contains(&network.trunc())) {
            notices.push(inner_overlap(config, *inner, device, *network));
        }
        let is_inner = |allowed: &IpNet| own.addresses.iter().any(|inner| inner.trunc() == allowed.trunc());
        let allowed = config.peers.iter().flat_map(|peer| &peer.allowed_ips).filter(|_| own.routes);
        for allowed in allowed.filter(|allowed| allowed.trunc() == network.trunc() && !is_inner(allowed)) {
            let text =
                format!("`allowed-ips` has {allowed}, the network of {device}: packets to it do not use the tunnel");
            let remedy = format!(
                "another network at one of the two ends, or a narrower one in `allowed-ips`: {device}'s goes first"
            );
            notices.push(Notice::new(EventLevel::Warn, text, remedy));
        }
    }
    notices
}

/// The notice about an inner network that a device has, as a whole or in part.
fn inner_overlap(config: &TunnelConfig, inner: IpNet, device: &str, network: IpNet) -> Notice {
    let is_in_both = |address: &IpAddr| inner.contains(address) && network.contains(address);
    let hosts = config.peers.iter().flat_map(|peer| &peer.allowed_ips).filter(|allowed| is_host(allowed));
    let hosts: Vec<IpAddr> = hosts.map(IpNet::addr).filter(is_in_both).collect();
    let own = [network.addr()].into_iter().find(|own| hosts.contains(own));
    let network = network.trunc();
    let (level, text) = match (own, hosts.as_slice()) {
        (Some(own), _) => {
            (EventLevel::Warn, format!("{device} has the address {own}, which is the other end's in the tunnel"))
        }
        // The first address is the server's after `ropewalk setup`.
        (None, []) if network.contains(&inner.trunc().hosts().next().unwrap_or(inner.addr())) => (
            EventLevel::Warn,
            format!(
                "{device} has the network {network}, which is the tunnel's, too: packets to the other end may leave by {device}"
            ),
        ),
        (None, hosts) => {
            let hosts: Vec<_> = hosts.iter().map(ToString::to_string).collect();
            let except = if hosts.is_empty() { String::new() } else { format!(", but for {}", hosts.join(" and ")) };
            let text = format!(
                "{device} has the network {network}, which is the tunnel's, too: its addresses are reached by {device}{except}"
            );
            (EventLevel::Info, text)
        }
    };
    let remedy = format!(
        "another inner network: `ropewalk setup server --subnet NETWORK` on the server after `ropewalk setup remove`, and new \
         tokens; or another network of {device}'s router"
    );
    Notice::new(level, text, remedy)
}

/// Whether a network is a single address.
fn is_host(network: &IpNet) -> bool {
    network.prefix_len() == network.max_prefix_len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use std::path::Path;

    fn found(address: &str, allowed_ips: &str, device: &str) -> Vec<(EventLevel, String)> {
        let text = format!(
            "[interface]\naddress = '{address}'\nprivate-key = 'IJBHDNBVSD5zTHCc4pVZBK6u9XpGh7nnBDbCf7NfTVM='\n\
             uplinks = 'auto'\n[[peer]]\npublic-key = 'R1kDN1ki3Vq7Gkq9Yp0MLOWlbVbCNWkAPT8OhZ1xQ0Y='\n\
             allowed-ips = [{allowed_ips}]\nendpoint = '192.0.2.1'\n"
        );
        let config = config::parse("x", &text, Path::new("rw0.toml")).expect("a good file");
        let devices = Devices::with_networks(&[("eth1", device), ("rw0", "10.77.0.2/24"), ("lo", "127.0.0.1/8")]);
        overlaps(&config, &devices).into_iter().map(|notice| (notice.level, notice.text)).collect()
    }

    #[test]
    fn the_same_a_narrower_and_a_wider_network_are_told_apart() {
        let all = "'0.0.0.0/0', '10.77.0.1/32'";
        for (allowed_ips, device, expected) in [
            (all, "192.168.1.2/24", None),
            (all, "10.200.1.2/8", None),
            (all, "10.77.0.50/24", Some((EventLevel::Info, "reached by eth1, but for 10.77.0.1"))),
            (all, "10.77.0.2/24", Some((EventLevel::Info, "reached by eth1, but for 10.77.0.1"))),
            (all, "10.77.0.1/24", Some((EventLevel::Warn, "has the address 10.77.0.1"))),
            (all, "10.77.0.130/25", Some((EventLevel::Info, "10.77.0.128/25"))),
            ("'0.0.0.0/0'", "10.77.0.50/24", Some((EventLevel::Warn, "may leave by eth1"))),
            ("'192.168.1.0/24'", "192.168.1.2/24", Some((EventLevel::Warn, "`allowed-ips` has 192.168.1.0/24"))),
            ("'192.168.0.0/16'", "192.168.1.2/24", None),
        ] {
            let found = found("10.77.0.2/24", allowed_ips, device);
            let is_as_expected = match (&found[..], expected) {
                ([], None) => true,
                ([(level, text)], Some((expected, phrase))) => *level == expected && text.contains(phrase),
                _ => false,
            };
            assert!(is_as_expected, "{allowed_ips} {device}: {found:?}");
        }
    }
}
