//! An end that is killed and started again.

use crate::ends::{DEVICE, Ends, USUAL};
use crate::traffic::{Echo, Transfer};
use daemon::control_plane::{StateFile, running, socket_path};
use lab::testbed::{LEFT, RIGHT};
use testing::eventually;

#[test]
fn traffic_flows_again_after_a_killed_end_is_started_again() {
    let Some(mut ends) = Ends::up(USUAL, &["rate=20mbit delay=5ms", "rate=10mbit delay=10ms"]) else { return };
    let mut echo = Echo::start(&ends, LEFT);
    assert!(echo.answers());
    for (host, name) in [(RIGHT, "server"), (LEFT, "client")] {
        ends.kill(host);
        left_behind(&ends, host);
        ends.start(host);
        assert!(echo.answers(), "nothing flows after the {name}'s restart");
        repaired(&ends, host);
        [LEFT, RIGHT].into_iter().for_each(|host| ends.wait_until_up(host));
        assert_eq!(Transfer::start(&ends, host, 1 << 20).finish(), 1 << 20);
    }
}

/// The socket and the state file lie there still; the device went with its process.
fn left_behind(ends: &Ends, host: usize) {
    let folder = ends.folder(host);
    assert!(StateFile::read(&folder, DEVICE).is_some() && running(&folder, DEVICE).is_none());
    assert!(socket_path(&folder, DEVICE).exists());
    let gone = || ends.testbed.run(host, &format!("ip link show {DEVICE}")).is_err();
    assert!(eventually(gone), "the device outlives its process");
}

fn repaired(ends: &Ends, host: usize) {
    let state = running(&ends.folder(host), DEVICE).expect("a state file of a process that runs");
    assert_eq!(state.pid, ends.pid(host));
    let addresses = ends.testbed.run(host, &format!("ip address show dev {DEVICE}")).unwrap();
    assert!(addresses.contains(&ends.plan.inside(host).to_string()), "{addresses}");
    let routes = ends.testbed.run(host, &format!("ip route show dev {DEVICE}")).unwrap();
    assert!(routes.lines().any(|line| line.starts_with(&format!("{} ", ends.plan.inside(1 - host)))), "{routes}");
}
