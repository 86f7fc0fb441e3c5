//! A capture on each uplink of a machine with an exclusive tunnel, which is booted, killed and led astray.

use crate::debian::BOOKWORM;
use crate::internet::PUBLIC_ANSWER;
use crate::pair::{Pair, UPLINKS};
use crate::resolvers::assert_resolved;
use crate::uplink_capture::Capture;
use testing::eventually;

/// What programs of the client try all the time, from before there is a network: names, the time, connections, the uplinks'
/// routers, and the tunnel's port of the server.
const TALK: &str = "#!/bin/bash
while :; do
    for target in 9.9.9.9/53 198.51.100.7/123 198.51.100.7/443 2001:db8:a::1/53 192.168.1.1/53 192.168.2.1/80 \
        203.0.113.1/4754; do
        echo leak > /dev/udp/$target
        timeout 0.1 bash -c \"exec 3<> /dev/tcp/$target\"
    done
    sleep 0.2
done 2> /dev/null
";
const TALK_UNIT: &str = "[Unit]
DefaultDependencies=no
After=local-fs.target
Before=network-pre.target
[Service]
ExecStart=/usr/local/bin/talk
[Install]
WantedBy=sysinit.target
";

/// A DHCP server of router 1 whose leases lead traffic around the tunnel: a route (option 121), a resolver that is the
/// tunnel's too, to which networkd makes a host route, and a network of IPv6, which the server has not.
const HOSTILE: [&str; 5] = [
    "--dhcp-range=192.168.1.50,192.168.1.99,1h",
    "--dhcp-option=121,0.0.0.0/0,192.168.1.1,198.51.100.0/25,192.168.1.1",
    "--dhcp-option=6,9.9.9.9",
    "--enable-ra",
    "--dhcp-range=2001:db8:a::,ra-only,64",
];
/// The same in another network.
const ELSEWHERE: [&str; 2] = ["--dhcp-range=192.168.7.50,192.168.7.99,1h", "--dhcp-option=6,9.9.9.9"];

/// Boots the client with captures on its uplinks from the first frame on.
fn boot(pair: &mut Pair) -> Vec<Capture> {
    let mut captures = Vec::new();
    pair.client.boot(|pid| {
        for (device, socket) in UPLINKS {
            pair.internet.plug_in(pid, device, socket);
            captures.push(pair.internet.capture(device, socket));
        }
    });
    captures
}

#[test]
fn nothing_but_the_tunnel_leaves_an_uplink_at_boot_after_a_crash_and_on_hostile_networks() {
    let Some(mut pair) = Pair::new(BOOKWORM, |machine| {
        machine.write("/usr/local/bin/talk", TALK);
        machine.write("/etc/systemd/system/talk.service", TALK_UNIT);
    }) else {
        return;
    };
    pair.install();
    pair.set_up();
    pair.wait_for_paths(2);
    pair.client.run("chmod 755 /usr/local/bin/talk; systemctl enable talk");
    pair.client.shut_down();
    pair.internet.run(1, "ip address add 2001:db8:a::1/64 dev br0");
    pair.internet.serve_client(1, &HOSTILE);

    let captures = boot(&mut pair);
    let leaked = || captures.iter().flat_map(Capture::others).collect::<Vec<_>>();
    pair.wait_for_paths(2);
    assert_eq!(leaked(), [""; 0], "boot");
    let client = &pair.client;
    for route in ["198.51.100.0/25 via 192.168.1.1", "9.9.9.9 via 192.168.1.1"] {
        assert!(eventually(|| client.run("ip route").contains(route)), "{route}: {}", client.run("ip route"));
    }
    assert!(eventually(|| client.run("ip -6 route show default").contains("eth0")));
    assert_resolved(client, PUBLIC_ANSWER, "the uplink's lease names the tunnel's resolver");
    let checked = client.output("ropewalk check --live rw0").0;
    assert!(checked.contains("problem: a route leads 198.51.100.0/25 around the tunnel, by eth0"), "{checked}");
    assert!(checked.contains("error: 1 problem found"), "{checked}");

    client.run("systemctl kill --signal KILL ropewalk@rw0");
    assert!(eventually(|| client.output("systemctl show --property NRestarts --value ropewalk@rw0").0 == "1\n"));
    pair.wait_for_paths(2);
    client.run("systemctl restart ropewalk@rw0");
    pair.wait_for_paths(2);
    client.run("systemctl restart ropewalk-keep@rw0");
    assert_eq!(leaked(), [""; 0], "killed and restarted");

    let (device, socket) = UPLINKS[0];
    pair.internet.set_carrier(device, socket, false);
    pair.wait_for_paths(1);
    pair.internet.run(1, "ip address add 192.168.7.1/24 dev br0");
    pair.internet.serve_client(1, &ELSEWHERE);
    pair.internet.set_carrier(device, socket, true);
    assert!(eventually(|| client.run("ip address show eth0").contains("192.168.7.")), "{}", client.run("ip address"));
    pair.wait_for_paths(2);
    client.run("systemctl stop ropewalk@rw0");
    assert!(!client.succeeds("ping -c 2 -W 1 198.51.100.7"));
    assert_eq!(leaked(), [""; 0], "elsewhere, and stopped");
    assert!(captures.iter().all(|capture| capture.tunnel_datagrams() > 0));

    client.run("ropewalk setup remove --yes");
    assert!(eventually(|| captures.iter().any(|capture| !capture.others().is_empty())), "the captures see what leaves");
}
