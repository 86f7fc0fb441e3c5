//! How the daemon is confined, and what the user that it changes to can do to the files that root opens: links planted in
//! the directory of sockets and state files, at the next start.

use crate::traffic::Transfer;
use crate::tunnel_pair::{DEVICE, IPV4, TunnelPair};
use daemon::control_plane::{running_tunnel, socket_path};
use daemon::status::ProcessStatus;
use lab::testbed::{LEFT, RIGHT};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::PathBuf;
use std::process::Stdio;
use testing::eventually;

/// A user without privileges that every system has.
const USER: &str = "nobody";
const USER_ID: u32 = 65534;
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
    chown(&folder, Some(USER_ID), Some(USER_ID)).unwrap();
    assert_refused(&format!("belongs to {USER}"));
    chown(&folder, Some(0), Some(0)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).unwrap();
    assert_refused("1777");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The lines of a thread's status that begin with one of `keys`.
fn lines(status: &str, keys: &[&str]) -> Vec<String> {
    let has_key = |line: &&str| keys.iter().any(|key| line.starts_with(key));
    status.lines().filter(has_key).map(|line| line.replace(char::is_whitespace, "")).collect()
}

#[test]
fn every_thread_is_confined_after_the_set_up() {
    let Some(mut pair) = TunnelPair::configured(IPV4, &["rate=10mbit"]) else { return };
    pair.edit(RIGHT, |text| text.replacen("[interface]\n", &format!("[interface]\nuser = \"{USER}\"\n"), 1));
    [RIGHT, LEFT].into_iter().for_each(|host| pair.start(host));
    [RIGHT, LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
    for (host, user_id) in [(LEFT, 0), (RIGHT, USER_ID)] {
        let process = PathBuf::from(format!("/proc/{}", pair.pid(host)));
        // The control thread, the data thread, and the one that hears routers; one that looks addresses up ends soon.
        let threads = || fs::read_dir(process.join("task")).unwrap().flatten().collect::<Vec<_>>();
        assert!(eventually(|| threads().len() == 3), "{:?}", threads());
        for thread in threads() {
            let status = fs::read_to_string(thread.path().join("status")).unwrap();
            // CAP_NET_ADMIN is capability 12.
            let expected = ["CapInh:0000000000000000", "CapPrm:0000000000001000", "CapEff:0000000000001000"];
            assert_eq!(lines(&status, &["CapInh", "CapPrm", "CapEff"]), expected);
            let expected = ["CapBnd:0000000000001000", "CapAmb:0000000000000000", "NoNewPrivs:1", "Seccomp:2"];
            assert_eq!(lines(&status, &["CapBnd", "CapAmb", "NoNewPrivs:", "Seccomp:"]), expected);
        }
        let limits = fs::read_to_string(process.join("limits")).unwrap();
        assert_eq!(lines(&limits, &["Max core file size"]), ["Maxcorefilesize00bytes"]);
        // The files of a process that leaves no dump belong to root (proc(5)).
        assert_eq!(fs::metadata(process.join("environ")).unwrap().uid(), 0);
        let status = pair.status(host).process;
        assert_eq!(status, ProcessStatus { user_id, no_new_privileges: true, seccomp: true });
    }
}

/// The capabilities of a daemon that the systemd unit starts.
fn unit_capabilities() -> Vec<String> {
    let unit = include_str!("../../../packaging/ropewalk@.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("AmbientCapabilities=")).expect("the unit has some");
    line.split(' ').map(|name| format!("+{}", name.trim_start_matches("CAP_").to_lowercase())).collect()
}

#[test]
fn a_daemon_that_never_is_root_has_all_that_the_unit_gives_it_relays_reloads_and_removes_its_files() {
    let Some((mut pair, _)) = pair_and_target() else { return };
    [LEFT, RIGHT].iter().for_each(|host| pair.edit(*host, |text| format!("{text}\n[tunnel]\nrelay = \"tcp\"\n")));
    let (folder, capabilities) = (pair.folder(RIGHT), unit_capabilities().join(","));
    chown(&folder, Some(USER_ID), Some(USER_ID)).unwrap();
    let [bounding, inheritable, ambient] =
        ["bounding-set=-all,", "inh-caps=", "ambient-caps="].map(|option| format!("--{option}{capabilities}"));
    let user = [&format!("--reuid={USER}"), "--regid=nogroup", "--clear-groups"];
    pair.start_with(RIGHT, &[&user[..], &[&bounding, &inheritable, &ambient]].concat());
    pair.start(LEFT);
    [RIGHT, LEFT].into_iter().for_each(|host| pair.wait_until_up(host));
    assert!(eventually(|| pair.status(LEFT).peers[0].relay.is_some_and(|relay| relay.peer_relays)));
    assert_eq!(Transfer::start(&pair, LEFT, 1 << 20).finish(), 1 << 20);
    let [left, right] = [LEFT, RIGHT].map(|host| pair.status(host));
    assert_eq!(right.process, ProcessStatus { user_id: USER_ID, no_new_privileges: true, seccomp: true });
    assert_eq!(right.peers[0].relay.unwrap().kernel_translation, left.peers[0].relay.unwrap().kernel_translation);

    let file = folder.join("rw0.toml");
    pair.edit(RIGHT, |text| {
        text.replace("allowed-ips = \"10.77.0.1/32\"", "allowed-ips = [\"10.77.0.1/32\", \"10.9.0.0/16\"]")
    });
    assert!(pair.reload(RIGHT).unwrap_err().contains("ermission denied"), "the file is root's");
    chown(&file, Some(USER_ID), Some(USER_ID)).unwrap();
    assert!(pair.reload(RIGHT).unwrap().contains("allowed-ips changed"));
    assert!(pair.testbed.run(RIGHT, &format!("ip route show dev {DEVICE}")).unwrap().contains("10.9.0.0/16"));
    pair.stop(RIGHT);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "the configuration alone");
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
