//! What resolves names on a client, and what manages its uplinks.

use crate::debian::BOOKWORM;
use crate::internet::{PUBLIC_ANSWER, ROUTERS_ANSWER};
use crate::machine::Machine;
use crate::pair::Pair;
use testing::eventually;

/// What manages a machine's resolvers: the command that turns it on, and the one that restarts it.
const MANAGERS: [(&str, &str); 3] = [
    (
        "systemctl enable --now systemd-resolved
        ln -sf /run/systemd/resolve/stub-resolv.conf /etc/resolv.conf
        systemctl restart systemd-networkd",
        "systemctl restart systemd-resolved",
    ),
    ("apt-get install --yes /srv/packages/openresolv_*.deb; systemctl start lease", "resolvconf -u"),
    ("apt-get install --yes /srv/packages/resolvconf_*.deb; systemctl start lease", "systemctl restart resolvconf"),
];

/// Gives resolvconf the resolver of an uplink, as DHCP clients do.
const LEASE: &str = "[Unit]
After=resolvconf.service
[Service]
Type=oneshot
ExecCondition=/bin/sh -c 'readlink -f $$(command -v resolvconf) | grep -v resolvectl'
ExecStart=/bin/sh -c 'echo nameserver 192.168.1.1 | resolvconf -a eth0'
[Install]
WantedBy=multi-user.target
";

/// The address that a name has on a machine.
pub(crate) fn resolved(machine: &Machine) -> String {
    machine.output("resolvectl flush-caches");
    let lines = machine.output("getent ahostsv4 host.example").0;
    lines.split_whitespace().next().unwrap_or_default().to_owned()
}

/// Asserts that names are asked through the tunnel, or at the routers.
#[track_caller]
pub(crate) fn assert_resolved(machine: &Machine, expected: &str, when: &str) {
    let is_right = eventually(|| resolved(machine) == expected);
    assert!(is_right, "{when}: {}", machine.output("cat /etc/resolv.conf; journalctl -u 'ropewalk-keep@*' | tail").0);
}

#[test]
fn names_are_asked_through_the_tunnel_whatever_manages_the_resolvers() {
    let Some(mut pair) = Pair::new(BOOKWORM, |machine| machine.write("/etc/systemd/system/lease.service", LEASE))
    else {
        return;
    };
    pair.client.run("systemctl enable lease");
    pair.install();
    for (turn_on, restart) in MANAGERS {
        pair.client.run(turn_on);
        assert_resolved(&pair.client, ROUTERS_ANSWER, &format!("before the setup: {turn_on}"));
        pair.set_up();
        pair.wait_for_paths(2);
        let assert_tunnels = |when: &str| assert_resolved(&pair.client, PUBLIC_ANSWER, &format!("{when}: {turn_on}"));
        assert_tunnels("after the setup");
        pair.client.run("systemctl restart ropewalk@rw0");
        pair.wait_for_paths(2);
        assert_tunnels("after a restart of the daemon");
        pair.client.run(restart);
        assert_tunnels("after a restart of the resolver");
        pair.client.shut_down();
        pair.boot_client();
        pair.wait_for_paths(2);
        assert_resolved(&pair.client, PUBLIC_ANSWER, &format!("after a reboot: {turn_on}"));
        pair.client.run("systemctl stop ropewalk@rw0");
        // Nothing passes, but the uplinks' resolvers are back.
        assert!(eventually(|| !pair.client.output("cat /etc/resolv.conf").0.contains("9.9.9.9")), "{turn_on}");
        pair.client.run("ropewalk setup remove --yes");
        assert_resolved(&pair.client, ROUTERS_ANSWER, &format!("after the removal: {turn_on}"));
        pair.server.run("ropewalk setup server --revoke client1");
    }
}

#[test]
fn uplinks_and_resolvers_of_networkmanager_are_followed_through_its_restart_and_a_reboot() {
    let Some(mut pair) = Pair::new(BOOKWORM, |_| ()) else { return };
    // NetworkManager takes systemd-resolved's link `resolvconf` for a resolvconf.
    pair.client.run(
        "dpkg --remove systemd-resolved; rm /etc/systemd/network/*; systemctl disable --now systemd-networkd systemd-networkd.socket
        ip address flush dev eth0; ip address flush dev eth1
        systemctl enable --now NetworkManager",
    );
    let has_uplinks = |machine: &Machine| machine.run("ip route show default").lines().count() == 2;
    assert!(eventually(|| has_uplinks(&pair.client)), "{}", pair.client.output("nmcli device").0);
    assert_resolved(&pair.client, ROUTERS_ANSWER, "before the setup");
    pair.install();
    pair.set_up();
    pair.wait_for_paths(2);
    assert_resolved(&pair.client, PUBLIC_ANSWER, "after the setup");
    pair.client.run("systemctl restart NetworkManager");
    pair.wait_for_paths(2);
    assert_resolved(&pair.client, PUBLIC_ANSWER, "after a restart");
    pair.client.run("nmcli device disconnect eth0");
    pair.wait_for_paths(1);
    pair.client.run("nmcli device connect eth0");
    pair.wait_for_paths(2);
    pair.client.shut_down();
    pair.boot_client();
    pair.wait_for_paths(2);
    assert_resolved(&pair.client, PUBLIC_ANSWER, "after a reboot");
    pair.client.run("ropewalk setup remove --yes");
    assert_resolved(&pair.client, ROUTERS_ANSWER, "after the removal");
}
