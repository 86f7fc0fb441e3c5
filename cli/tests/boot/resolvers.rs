//! What resolves names on a client, and what manages its uplinks.

use crate::debian::BOOKWORM;
use crate::internet::{PUBLIC_ANSWER, ROUTERS_ANSWER};
use crate::machine::Machine;
use crate::pair::Pair;
use testing::eventually;

/// The address that a name has here.
fn resolved(machine: &Machine) -> String {
    machine.output("resolvectl flush-caches");
    let lines = machine.output("getent ahostsv4 host.example").0;
    lines.split_whitespace().next().unwrap_or_default().to_owned()
}

#[test]
fn with_systemd_resolved_names_are_resolved_through_the_tunnel_after_restarts_and_reboots_too() {
    let Some(mut pair) = Pair::new(BOOKWORM, |_| ()) else { return };
    pair.client
        .run("systemctl enable --now systemd-resolved; ln -sf /run/systemd/resolve/stub-resolv.conf /etc/resolv.conf");
    pair.client.run("systemctl restart systemd-networkd");
    assert!(eventually(|| resolved(&pair.client) == ROUTERS_ANSWER));
    pair.install();
    pair.set_up();
    pair.wait_for_paths(2);
    assert!(eventually(|| resolved(&pair.client) == PUBLIC_ANSWER), "after the set-up");
    pair.client.run("systemctl restart ropewalk@rw0");
    pair.wait_for_paths(2);
    assert!(eventually(|| resolved(&pair.client) == PUBLIC_ANSWER), "after a restart of the daemon");
    pair.client.run("systemctl restart systemd-resolved");
    assert!(eventually(|| resolved(&pair.client) == PUBLIC_ANSWER), "after a restart of the resolver");
    pair.client.shut_down();
    pair.boot_client();
    pair.wait_for_paths(2);
    assert!(eventually(|| resolved(&pair.client) == PUBLIC_ANSWER), "after a reboot");
    pair.client.run("ropewalk setup remove --yes");
    assert!(eventually(|| resolved(&pair.client) == ROUTERS_ANSWER), "after the removal");
}

#[test]
fn uplinks_of_networkmanager_are_followed_through_its_restart_and_a_reboot() {
    let Some(mut pair) = Pair::new(BOOKWORM, |_| ()) else { return };
    pair.client.run(
        "rm /etc/systemd/network/*; systemctl disable --now systemd-networkd systemd-networkd.socket
        ip address flush dev eth0; ip address flush dev eth1
        systemctl enable --now NetworkManager",
    );
    let has_uplinks = |machine: &Machine| machine.run("ip route show default").lines().count() == 2;
    assert!(eventually(|| has_uplinks(&pair.client)), "{}", pair.client.output("nmcli device").0);
    pair.install();
    pair.set_up();
    pair.wait_for_paths(2);
    pair.client.run("systemctl restart NetworkManager");
    pair.wait_for_paths(2);
    pair.client.run("nmcli device disconnect eth0");
    pair.wait_for_paths(1);
    pair.client.run("nmcli device connect eth0");
    pair.wait_for_paths(2);
    pair.client.shut_down();
    pair.boot_client();
    pair.wait_for_paths(2);
}
