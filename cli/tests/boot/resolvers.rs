//! What manages the uplinks of a client.

use crate::debian::BOOKWORM;
use crate::machine::Machine;
use crate::pair::Pair;
use testing::eventually;

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
