//! A second start, and a start after `kill -9`.

use ropewalk_daemon::control_plane::{Error, RunFolder, StateFile, clean_up, socket_path};
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("ropewalk-repair-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn the_files_of_a_killed_tunnel_are_removed_and_those_of_another_are_not() {
    let folder = folder("killed");
    let mut state = StateFile::of_this_process(Path::new("/etc/ropewalk/rw0.toml"), "rw0");
    state.started += 1;
    state.create(&RunFolder::open(&folder).unwrap()).unwrap();
    let [removed, kept] = ["rw0", "rw1"].map(|name| socket_path(&folder, name));
    std::fs::write(&removed, "").unwrap();
    std::fs::write(&kept, "").unwrap();
    clean_up(&folder, "rw0").unwrap();
    assert!(StateFile::read(&folder, "rw0").is_none() && !removed.exists() && kept.exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_running_tunnel_is_not_started_again() {
    let folder = folder("running");
    let state = StateFile::of_this_process(Path::new("/etc/ropewalk/rw0.toml"), "rw0");
    state.create(&RunFolder::open(&folder).unwrap()).unwrap();
    let error = clean_up(&folder, "rw0").unwrap_err();
    assert!(matches!(error, Error::Running(_)) && error.to_string().contains("ropewalk down rw0"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}
