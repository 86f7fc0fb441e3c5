//! A control group (cgroup v2) for the processes of one run, within the caller's: limits that hold for the caller hold
//! for them too.

use crate::Failure;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// The prefix of the names of groups; the id of the process that made the group follows.
const PREFIX: &str = "ropewalk-run-";

/// Makes a group, and removes those that a killed keeper has left behind.
pub(super) fn make() -> Result<PathBuf, Failure> {
    let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let parent = own(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup")).ok_or_else(|| {
        let help = "mount -t cgroup2 cgroup2 /sys/fs/cgroup; with ip netns, `run NAME -- ip netns exec ...` instead";
        Failure::Environment(format!("no cgroup2 is mounted\n  help: {help}"))
    })?;
    sweep(&parent);
    let group = parent.join(format!("{PREFIX}{}", std::process::id()));
    fs::create_dir(&group).map_err(|error| failure(&group, &error))?;
    Ok(group)
}

/// Moves this process into a group.
pub(super) fn enter(group: &Path) -> Result<(), Failure> {
    fs::write(group.join("cgroup.procs"), "0").map_err(|error| failure(group, &error))
}

fn failure(group: &Path, error: &io::Error) -> Failure {
    let help = "as root, where control groups can be written: a container's are often read-only";
    Failure::Environment(format!("control group {}: {error}\n  help: {help}", group.display()))
}

/// The folder of this process's group, from `/proc/self/mountinfo` and `/proc/self/cgroup` (proc(5), cgroups(7)). For a
/// mount that does not show it, the group that is mounted.
fn own(mounts: &str, groups: &str) -> Option<PathBuf> {
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let mut words = mount.split(' ').skip(3);
    let (root, point) = (words.next()?, Path::new(words.next()?));
    let path = Path::new(groups.lines().find_map(|line| line.strip_prefix("0::"))?);
    Some(path.strip_prefix(root).map_or_else(|_| point.to_owned(), |path| point.join(path)))
}

/// Removes the groups of runs that have ended.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX);
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            remove(&entry.path());
        }
    }
}

/// Removes a group and those within it; one that has processes stays.
pub(super) fn remove(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}

/// Waits until no process is in the group or in one within it.
///
/// # Errors
/// The group does not exist any more, or a system call fails.
pub(super) fn wait_until_empty(group: &Path) -> io::Result<()> {
    let mut events = File::open(group.join("cgroup.events"))?;
    loop {
        let mut text = String::new();
        events.rewind()?;
        events.read_to_string(&mut text)?;
        if text.contains("populated 0") {
            return Ok(());
        }
        poll(&mut [PollFd::new(events.as_fd(), PollFlags::POLLPRI)], PollTimeout::NONE)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found_in_either_hierarchy_and_in_containers() {
        let mounts = |root: &str, point: &str| {
            format!(
                "25 1 0:22 / /sys rw - sysfs sysfs rw\n31 25 0:27 {root} {point} rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
            )
        };
        let unified = mounts("/", "/sys/fs/cgroup");
        let expected = Some(PathBuf::from("/sys/fs/cgroup/user.slice/session-1.scope"));
        assert_eq!(own(&unified, "0::/user.slice/session-1.scope\n"), expected);
        let hybrid = mounts("/", "/sys/fs/cgroup/unified");
        assert_eq!(own(&hybrid, "3:cpu:/x\n0::/\n"), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        let container = mounts("/docker/1", "/sys/fs/cgroup");
        assert_eq!(own(&container, "0::/docker/1/a\n"), Some(PathBuf::from("/sys/fs/cgroup/a")));
        assert_eq!(own(&container, "0::/elsewhere\n"), Some(PathBuf::from("/sys/fs/cgroup")));
        assert_eq!(own("25 1 0:22 / /sys rw - sysfs sysfs rw\n", "0::/\n"), None);
    }
}
