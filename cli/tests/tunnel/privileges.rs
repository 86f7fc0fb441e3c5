//! What the user that the daemon changes to can do to the files that root opens: links planted in the directory of
//! sockets and state files, at the next start.

use crate::tunnel_pair::{DEVICE, IPV4, TunnelPair};
use daemon::control_plane::{running_tunnel, socket_path};
use lab::testbed::RIGHT;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::PathBuf;
use std::process::Stdio;
use testing::eventually;

/// A user without privileges that every system has.
const USER: &str = "nobody";
/// Files that root opens, or opened once.
const NAMES: [&str; 3] = ["rw0.state", "rw0.state.new", "rw0.sock"];
const CONTENTS: &str = "of root alone\n";

/// A pair whose right end changes to [`USER`], and a file of root's that this user can neither read nor write.
fn pair_and_target() -> Option<(TunnelPair, PathBuf)> {
    let pair = TunnelPair::configured(IPV4, &["rate=10mbit"])?;
    pair.edit(RIGHT, |text| text.replacen("[interface]\n", &format!("[interface]\nuser = \"{USER}\"\n"), 1));
    let target = pair.folder(RIGHT).with_file_name("target");
    fs::write(&target, CONTENTS).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
    Some((pair, target))
}

fn is_running(pair: &TunnelPair) -> bool {
    let folder = pair.folder(RIGHT);
    running_tunnel(&folder, DEVICE).is_some()
        && std::os::unix::net::UnixStream::connect(socket_path(&folder, DEVICE)).is_ok()
}

fn assert_untouched(target: &PathBuf) {
    let metadata = fs::symlink_metadata(target).expect("the target is there");
    let owned = (metadata.uid(), metadata.gid(), metadata.mode() & 0o7777);
    assert_eq!((owned, fs::read_to_string(target).unwrap().as_str()), ((0, 0, 0o600), CONTENTS));
}

#[test]
fn the_daemons_user_cannot_plant_links_for_the_next_start() {
    let Some((mut pair, target)) = pair_and_target() else { return };
    pair.start(RIGHT);
    assert!(eventually(|| is_running(&pair)));
    let (folder, path) = (pair.folder(RIGHT), target.display().to_string());
    for name in NAMES {
        let link = folder.join(name);
        let line = format!("setpriv --reuid={USER} --clear-groups ln -sfT {path} {}", link.display());
        assert!(pair.testbed.run(RIGHT, &line).is_err(), "{USER} planted {name}");
    }
    pair.kill(RIGHT);
    pair.start(RIGHT);
    assert!(eventually(|| is_running(&pair)));
    assert_untouched(&target);
}

#[test]
fn a_link_at_the_name_of_a_state_file_is_replaced_and_not_followed() {
    let Some((mut pair, target)) = pair_and_target() else { return };
    let folder = pair.folder(RIGHT);
    NAMES.iter().for_each(|name| symlink(&target, folder.join(name)).unwrap());
    pair.start(RIGHT);
    assert!(eventually(|| is_running(&pair)));
    assert_untouched(&target);
    assert!(fs::symlink_metadata(folder.join("rw0.state")).unwrap().is_file());
}

#[test]
fn a_directory_that_another_user_may_write_is_refused() {
    let Some((pair, target)) = pair_and_target() else { return };
    let folder = pair.folder(RIGHT);
    symlink(&target, folder.join("rw0.state.new")).unwrap();
    let assert_refused = |reason: &str| {
        let mut command = pair.command(RIGHT);
        let mut child = command.arg("up").arg(folder.join("rw0.toml")).stderr(Stdio::piped()).spawn().unwrap();
        assert!(eventually(|| child.try_wait().unwrap().is_some() || is_running(&pair)));
        // One that was not refused is running.
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && stderr.contains(reason) && stderr.contains("chown root"), "{stderr}");
        assert_untouched(&target);
    };
    let nobody = 65534;
    chown(&folder, Some(nobody), Some(nobody)).unwrap();
    assert_refused(&format!("belongs to {USER}"));
    chown(&folder, Some(0), Some(0)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).unwrap();
    assert_refused("1777");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_tunnel_that_ended_as_another_user_is_not_shown_and_starts_again() {
    let Some((mut pair, _)) = pair_and_target() else { return };
    for _ in 0..2 {
        pair.start(RIGHT);
        assert!(eventually(|| is_running(&pair)));
        pair.stop(RIGHT);
        let output = pair.command(RIGHT).arg("show").output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.contains("no tunnel is up"), "{stderr}");
    }
}
