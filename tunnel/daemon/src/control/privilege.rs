//! Giving privileges up: after the set-up the process keeps `CAP_NET_ADMIN` alone, for routes and addresses on a reload,
//! and becomes another user if the configuration names one.
//!
//! Capabilities belong to threads: each thread gives its own up, and a new one inherits what is left. A
//! change of user, though, glibc carries out in all threads, and aborts if one of them may not any more. Binding a socket to a device needs none
//! since Linux 5.7.

use caps::{CapSet, Capability, CapsHashSet};
use nix::unistd::{User, chown, setgid, setgroups, setuid};
use std::io;
use std::path::PathBuf;

/// What is to be given up.
#[derive(Clone, Debug, Default)]
pub struct Privileges {
    /// The user to become.
    pub user: Option<String>,
    /// Folders and files that must then be that user's: the run-time folder and what lies in it.
    pub hand_over: Vec<PathBuf>,
}

/// Keeps `CAP_NET_ADMIN` and nothing else.
///
/// # Errors
/// There is no such user, or the process may not do this.
pub fn drop_privileges(wanted: &Privileges) -> io::Result<()> {
    let keep: CapsHashSet = [Capability::CAP_NET_ADMIN].into();
    caps::clear(None, CapSet::Ambient).map_err(io::Error::other)?;
    for capability in caps::all() {
        // Which capabilities the bounding set has depends on the kernel: one that is not there is dropped already.
        if capability != Capability::CAP_NET_ADMIN {
            let _ = caps::drop(None, CapSet::Bounding, capability);
        }
    }
    if let Some(name) = &wanted.user {
        become_user(name, &wanted.hand_over)?;
    }
    let kept = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    let kept: CapsHashSet = kept.intersection(&keep).copied().collect();
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, &kept).map_err(io::Error::other)?;
    }
    caps::clear(None, CapSet::Inheritable).map_err(io::Error::other)
}

fn become_user(name: &str, hand_over: &[PathBuf]) -> io::Result<()> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("there is no user {name}"));
    let user = User::from_name(name)?.ok_or_else(missing)?;
    for path in hand_over {
        chown(path, Some(user.uid), Some(user.gid))?;
    }
    caps::securebits::set_keepcaps(true).map_err(io::Error::other)?;
    setgroups(&[])?;
    setgid(user.gid)?;
    setuid(user.uid)?;
    Ok(())
}
