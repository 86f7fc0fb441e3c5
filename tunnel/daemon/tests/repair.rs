//! A second start, and a start after `kill -9`.

use ropewalk_daemon::control::{Error, State, repair, socket_path};
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ropewalk-repair-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn what_a_killed_tunnel_left_is_cleared_away_and_another_tunnels_is_not() {
    let folder = folder("killed");
    let mut state = State::of_this_process(Path::new("/etc/ropewalk/rw0.toml"), "rw0");
    state.started += 1;
    state.write(&folder).unwrap();
    let [ours, other] = ["rw0", "rw1"].map(|name| socket_path(&folder, name));
    std::fs::write(&ours, "").unwrap();
    std::fs::write(&other, "").unwrap();
    repair(&folder, "rw0").unwrap();
    assert!(State::read(&folder, "rw0").is_none() && !ours.exists() && other.exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_tunnel_that_runs_is_not_started_again() {
    let folder = folder("running");
    State::of_this_process(Path::new("/etc/ropewalk/rw0.toml"), "rw0").write(&folder).unwrap();
    let refused = repair(&folder, "rw0").unwrap_err();
    assert!(matches!(refused, Error::Running(_)) && refused.to_string().contains("ropewalk down rw0"), "{refused}");
    std::fs::remove_dir_all(folder).unwrap();
}
