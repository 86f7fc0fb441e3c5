//! A server behind a firewall of its own that drops what it does not know: of nftables, ufw and firewalld.

use crate::debian::BOOKWORM;
use crate::pair::Pair;
use testing::eventually;

/// `/etc/nftables.conf` of a server that drops. Debian's begins with the same line.
const NFTABLES: &str = "flush ruleset
table inet fw {
    chain input { type filter hook input priority filter; policy drop;
        ct state established,related accept
        iif lo accept
    }
    chain forward { type filter hook forward priority filter; policy drop; }
}
";

/// Sets up behind the firewall that a command turns on. Then the tunnel carries traffic, also after the firewall is loaded
/// again, and after a reboot.
fn behind(firewall: &str, reload: &str) -> Option<Pair> {
    let mut pair = Pair::new(BOOKWORM, |machine| machine.write("/etc/nftables.conf", NFTABLES))?;
    pair.server.run(firewall);
    pair.install();
    pair.set_up();
    pair.wait_for_paths(2);
    pair.server.run(reload);
    pair.wait_for_paths(2);
    pair.server.run("systemctl restart ropewalk@rw0");
    pair.wait_for_paths(2);
    pair.server.shut_down();
    pair.boot_server();
    pair.wait_for_paths(2);
    let checked = pair.server.run("ropewalk check --live rw0");
    assert!(checked.ends_with("no problem found\n"), "{checked}");
    Some(pair)
}

#[test]
fn behind_nftables_the_tunnel_stays_open_whatever_becomes_of_the_rules() {
    let Some(pair) = behind("systemctl enable --now nftables", "systemctl restart nftables") else { return };
    let server = &pair.server;
    server.run(
        "systemctl stop ropewalk@rw0; sed -i 's/table inet fw/table inet firewall/' /etc/nftables.conf
        systemctl restart nftables; systemctl start ropewalk@rw0",
    );
    pair.wait_for_paths(2);
    // As programs for containers do, after the tunnel's start.
    server.run(
        "nft 'add table ip filter; add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }'",
    );
    server.run("sysctl -qw net.ipv4.ip_forward=0");
    assert!(eventually(|| server.run("sysctl -n net.ipv4.ip_forward") == "1\n"));
    assert!(eventually(|| server.run("nft list chain ip filter FORWARD").contains("ropewalk-rw0")));
    pair.wait_for_paths(2);
    let told = server.run("ropewalk show rw0; journalctl --unit ropewalk-keep@rw0");
    for phrase in ["chain ip filter FORWARD drops", "net.ipv4.ip_forward is 0"] {
        assert_eq!(told.matches(phrase).count().min(2), 2, "in the daemon's events and in the log: {told}");
    }
}

#[test]
fn behind_ufw_a_reload_keeps_the_tunnel_open() {
    drop(behind("ufw --force enable; systemctl enable ufw", "ufw reload"));
}

#[test]
fn behind_firewalld_a_reload_keeps_the_tunnel_open() {
    drop(behind("systemctl enable --now firewalld", "firewall-cmd --reload"));
}
