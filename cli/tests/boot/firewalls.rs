//! A server behind a firewall of its own that drops what it does not know: of nftables, ufw and firewalld.

use crate::debian::BOOKWORM;
use crate::pair::Pair;

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
fn behind(firewall: &str, reload: &str) {
    let pair = Pair::new(BOOKWORM, |machine| machine.write("/etc/nftables.conf", NFTABLES));
    let Some(mut pair) = pair else { return };
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
}

#[test]
fn behind_ufw_a_reload_keeps_the_tunnel_open() {
    behind("ufw --force enable; systemctl enable ufw", "ufw reload");
}

#[test]
fn behind_firewalld_a_reload_keeps_the_tunnel_open() {
    behind("systemctl enable --now firewalld", "firewall-cmd --reload");
}
