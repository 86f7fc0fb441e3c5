//! Removal and purge of the package while a setup is there.

use crate::debian::BOOKWORM;
use crate::pair::{Pair, changes, traces};

/// A tunnel that somebody has made by hand, next to that of the setup.
const BY_HAND: &str = "umask 077
ropewalk genkey > /etc/ropewalk/rw9.key
echo '[interface]
address = \"10.99.0.1/24\"
private-key-file = \"rw9.key\"
listen-port = 4999
[[peer]]
public-key = \"'$(ropewalk genkey | ropewalk pubkey)'\"
allowed-ips = \"10.99.0.2/32\"' > /etc/ropewalk/rw9.toml
chown ropewalk /etc/ropewalk/rw9.*
systemctl enable --now ropewalk@rw9";

#[test]
fn a_purge_undoes_the_set_up_first_and_leaves_nothing() {
    let Some(pair) = Pair::new(BOOKWORM, |_| ()) else { return };
    let (server, client) = (&pair.server, &pair.client);
    server.run("ufw --force enable");
    let before = [server, client].map(traces);
    pair.install();
    pair.set_up();
    pair.wait_for_paths(2);
    server.run(BY_HAND);

    // A package that is only removed keeps configurations, and works again when it is back.
    client.run("apt-get remove --yes ropewalk");
    assert!(!client.succeeds("ip link show rw0"));
    client.run("apt-get install --yes /srv/ropewalk.deb");
    client.run("systemctl is-active ropewalk-keep@rw0 && systemctl start ropewalk@rw0");
    pair.wait_for_paths(2);

    server.run("apt-get remove --yes ropewalk");
    for (machine, before) in [server, client].into_iter().zip(&before) {
        machine.run("apt-get purge --yes ropewalk");
        let left = changes(before, &traces(machine));
        // Debian's packages leave their users: files elsewhere may belong to one, whose number another would get.
        assert!(left.iter().all(|line| line.starts_with("+ ropewalk:x:")), "{left:#?}");
    }
}
