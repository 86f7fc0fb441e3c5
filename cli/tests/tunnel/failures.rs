//! A path that fails while a transfer runs, and recovers. The times are measured in virtual time (`tunnel/machine`) and
//! by `cargo xtask bench tunnel`.

use crate::traffic::Transfer;
use crate::tunnel_pair::{IPV4, TunnelPair};
use daemon::status::PathState;
use lab::testbed::{LEFT, RIGHT};
use testing::eventually;

#[test]
fn a_path_that_fails_is_replaced_by_the_other_and_used_again_when_it_recovers() {
    let Some(mut pair) = TunnelPair::up(IPV4, &["rate=20mbit delay=10ms", "rate=10mbit delay=30ms"]) else { return };
    let transfer = Transfer::endless(&pair, LEFT);
    transfer.wait_for(1 << 20);
    pair.testbed.change(0, "both down").unwrap();
    assert!(eventually(|| pair.path(LEFT, 0).state == PathState::Down), "{:#?}", pair.path(LEFT, 0));
    let prior_bytes = pair.path(RIGHT, 1).received.bytes;
    assert!(eventually(|| pair.path(RIGHT, 1).received.bytes > prior_bytes + (1 << 20)), "the other path carries all");
    transfer.wait_for(1 << 20);
    let prior_bytes = pair.path(RIGHT, 0).received.bytes;
    pair.testbed.change(0, "both up").unwrap();
    // More than the probes have.
    let used = || pair.path(RIGHT, 0).received.bytes > prior_bytes + (256 << 10);
    assert!(eventually(used), "{:#?}", pair.path(RIGHT, 0));
    assert!(transfer.stop() > 0);
}

#[test]
fn a_start_that_fails_leaves_no_files() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &["rate=10mbit"]) else { return };
    // No device has the address.
    let token = pair.folder(LEFT).with_file_name("token");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::write(&token, daemon::keys::genpsk().as_bytes())
        .and_then(|()| std::fs::set_permissions(&token, mode))
        .unwrap();
    let keys = "user = \"nobody\"\nmetrics = \"192.0.2.1:9754\"";
    let keys = format!("{keys}\ndashboard-token-file = \"{}\"", token.display());
    pair.edit(LEFT, |text| text.replacen("\n\n[[peer]]", &format!("\n{keys}\n\n[[peer]]"), 1));
    pair.start(LEFT);
    assert_eq!(pair.wait(LEFT).code(), Some(4));
    let left: Vec<_> = std::fs::read_dir(pair.folder(LEFT)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["rw0.toml"]);
}
