//! A daemon that is killed and started again.

use crate::traffic::{EchoClient, Transfer};
use crate::tunnel_pair::{DEVICE, IPV4, TunnelPair};
use daemon::control_plane::{StateFile, running_tunnel, socket_path};
use lab::testbed::{LEFT, RIGHT};
use testing::eventually;

#[test]
fn traffic_flows_again_after_a_killed_daemon_is_started_again() {
    let Some(mut pair) = TunnelPair::up(IPV4, &["rate=20mbit delay=5ms", "rate=10mbit delay=10ms"]) else { return };
    let mut echo = EchoClient::start(&pair, LEFT);
    assert!(echo.gets_answer());
    for (host, name) in [(RIGHT, "server"), (LEFT, "client")] {
        pair.kill(host);
        assert_files_remain(&pair, host);
        pair.start(host);
        assert!(echo.gets_answer(), "nothing flows after the {name}'s restart");
        assert_restored(&pair, host);
        [LEFT, RIGHT].into_iter().for_each(|host| pair.wait_until_up(host));
        assert_eq!(Transfer::start(&pair, host, 1 << 20).finish(), 1 << 20);
    }
}

/// The socket and the state file remain; the device is removed with its process.
fn assert_files_remain(pair: &TunnelPair, host: usize) {
    let folder = pair.folder(host);
    assert!(StateFile::read(&folder, DEVICE).is_some() && running_tunnel(&folder, DEVICE).is_none());
    assert!(socket_path(&folder, DEVICE).exists());
    let is_gone = || pair.testbed.run(host, &format!("ip link show {DEVICE}")).is_err();
    assert!(eventually(is_gone), "the device outlives its process");
}

fn assert_restored(pair: &TunnelPair, host: usize) {
    let state = running_tunnel(&pair.folder(host), DEVICE).expect("a state file of a process that runs");
    assert_eq!(state.pid, pair.pid(host));
    let addresses = pair.testbed.run(host, &format!("ip address show dev {DEVICE}")).unwrap();
    assert!(addresses.contains(&pair.families.inner_address(host).to_string()), "{addresses}");
    let routes = pair.testbed.run(host, &format!("ip route show dev {DEVICE}")).unwrap();
    assert!(
        routes.lines().any(|line| line.starts_with(&format!("{} ", pair.families.inner_address(1 - host)))),
        "{routes}"
    );
}
