//! Dropping privileges: after the set-up the process keeps `CAP_NET_ADMIN` alone, for routes and addresses on a reload,
//! and changes to the configured user.
//!
//! Capabilities are per thread: each thread drops its own, and new threads inherit the rest. A change of user, though,
//! glibc performs in all threads, and aborts if one of them lacks the capability. Binding a socket to a device needs no
//! capability since Linux 5.7.

use caps::{CapSet, Capability, CapsHashSet};
use nix::unistd::{User, geteuid, setgid, setgroups, setuid};
use std::io;

/// The user of that name.
///
/// # Errors
/// There is none.
pub(super) fn find_user(name: &str) -> io::Result<User> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("there is no user {name}"));
    User::from_name(name)?.ok_or_else(missing)
}

/// Drops all capabilities but `CAP_NET_ADMIN`, and changes to `user`.
///
/// # Errors
/// The process lacks the capability to change the user.
pub fn drop_privileges(user: Option<&User>) -> io::Result<()> {
    let net_admin: CapsHashSet = [Capability::CAP_NET_ADMIN].into();
    caps::clear(None, CapSet::Ambient).map_err(io::Error::other)?;
    for capability in caps::all() {
        // The bounding set depends on the kernel: a capability that it does not have cannot be dropped.
        if capability != Capability::CAP_NET_ADMIN {
            let _ = caps::drop(None, CapSet::Bounding, capability);
        }
    }
    if let Some(user) = user.filter(|user| user.uid != geteuid()) {
        change_user(user)?;
    }
    let permitted = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    let capabilities: CapsHashSet = permitted.intersection(&net_admin).copied().collect();
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, &capabilities).map_err(io::Error::other)?;
    }
    caps::clear(None, CapSet::Inheritable).map_err(io::Error::other)
}

fn change_user(user: &User) -> io::Result<()> {
    caps::securebits::set_keepcaps(true).map_err(io::Error::other)?;
    setgroups(&[])?;
    setgid(user.gid)?;
    setuid(user.uid)?;
    Ok(())
}
