//! The resolvers of a server's clients: one that runs on the server and is configured to listen on the tunnel too, or public
//! ones.

use super::host;
use super::plan::{NewFile, Step, words};
use super::record::Undo;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// Quad9, which does not store the addresses of its users.
const PUBLIC: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(9, 9, 9, 9)), IpAddr::V6(Ipv6Addr::new(0x2620, 0xfe, 0, 0, 0, 0, 0, 0xfe))];

/// The clients' resolvers.
#[derive(Debug)]
pub(super) struct Dns {
    pub(super) addresses: Vec<IpAddr>,
    /// A description of the resolvers.
    pub(super) description: String,
    /// Steps before the daemon's start.
    pub(super) before: Vec<Step>,
    /// Steps after it, when the device is there.
    pub(super) after: Vec<Step>,
}

/// A resolver program that can listen on the tunnel's device.
struct Resolver {
    /// Its unit of systemd.
    unit: &'static str,
    /// The folder of its configuration fragments.
    folder: &'static str,
    /// The fragment for a tunnel: its device, the server's inner addresses, and the inner networks.
    text: fn(&str, &[IpAddr], &[String]) -> String,
}

const RESOLVERS: [Resolver; 3] = [
    Resolver {
        unit: "unbound",
        folder: "/etc/unbound/unbound.conf.d",
        text: |_, addresses, networks| {
            let interfaces: String = addresses.iter().map(|address| format!("    interface: {address}\n")).collect();
            let access: String =
                networks.iter().map(|network| format!("    access-control: {network} allow\n")).collect();
            format!("server:\n    ip-freebind: yes\n    interface: 127.0.0.1\n{interfaces}{access}")
        },
    },
    Resolver {
        unit: "dnsmasq",
        folder: "/etc/dnsmasq.d",
        text: |device, _, _| format!("bind-dynamic\ninterface={device}\nno-dhcp-interface={device}\n"),
    },
    Resolver {
        unit: "systemd-resolved",
        folder: "/etc/systemd/resolved.conf.d",
        text: |_, addresses, _| {
            let lines: String = addresses.iter().map(|address| format!("DNSStubListenerExtra={address}\n")).collect();
            format!("[Resolve]\n{lines}")
        },
    },
];

/// The resolvers of the clients: those that were given, the first program that runs here, or public ones.
pub(super) fn choose(device: &str, given: &[IpAddr], addresses: &[IpAddr], networks: &[String], has_ipv6: bool) -> Dns {
    let fixed = |addresses: Vec<IpAddr>, description: String| Dns {
        addresses,
        description,
        before: Vec::new(),
        after: Vec::new(),
    };
    if !given.is_empty() {
        let texts: Vec<_> = given.iter().map(ToString::to_string).collect();
        return fixed(given.to_vec(), format!("{}, as given by --dns", texts.join(", ")));
    }
    let is_active = |unit: &str| host::output(&["systemctl", "is-active", unit]).is_some();
    let found = RESOLVERS.iter().find(|resolver| Path::new(resolver.folder).is_dir() && is_active(resolver.unit));
    let Some(Resolver { unit, folder, text }) = found else {
        let public: Vec<_> = PUBLIC.iter().copied().filter(|address| address.is_ipv4() || has_ipv6).collect();
        return fixed(public, "public resolvers (Quad9), as none runs here; --dns chooses others".into());
    };
    let restart = words(&["systemctl", "restart", unit]);
    let file = Path::new(folder).join(format!("ropewalk-{device}.conf"));
    let text = format!("# Of `ropewalk setup server`.\n{}", text(device, addresses, networks));
    let before = vec![Step::AtRemoval(Undo::Command(restart.clone())), Step::File(NewFile::of_root(file, 0o644, text))];
    let after = vec![Step::Command { run: restart, undo: None }];
    Dns { addresses: addresses.to_vec(), description: format!("{unit}, which runs here"), before, after }
}
