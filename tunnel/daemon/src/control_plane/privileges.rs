//! Dropping privileges: after the setup the process keeps only `CAP_NET_ADMIN`, for routes, addresses and socket
//! buffers on a reload, and changes to the configured user. It gains no privileges by executing a program, leaves no
//! core dump, and cannot be traced by its own user. On 64-bit processors it makes only the system calls in
//! `system_calls`.
//!
//! Capabilities are per thread: each thread drops its own, and new threads inherit the rest. But glibc changes the user
//! in all threads, and aborts if one of them lacks the capability. Binding a socket to a device needs no capability
//! since Linux 5.7.

#[cfg(target_pointer_width = "64")]
use super::system_calls::restrict;
use crate::status::ProcessStatus;
use caps::{CapSet, Capability, CapsHashSet};
use nix::sys::prctl::{set_dumpable, set_no_new_privs};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{User, geteuid, setgid, setgroups, setuid};
use std::{fs, io};
use tracing::warn;

/// A thread of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadRole {
    /// Handles requests, reloads, netlink and signals; threads that resolve names inherit its filter.
    Control,
    /// Carries packets.
    Data,
}

/// 32-bit processors have other system calls, among them two versions of each call with a time.
#[cfg(not(target_pointer_width = "64"))]
fn restrict(_role: ThreadRole) -> Result<(), &'static str> {
    Err("the list of system calls is that of processors of 64 bits")
}

/// The user of that name.
///
/// # Errors
/// There is none.
pub(super) fn find_user(name: &str) -> io::Result<User> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, format!("there is no user {name}"));
    User::from_name(name)?.ok_or_else(missing)
}

/// Confines this thread for good, after its setup: drops its privileges and restricts its system calls. Changes the whole
/// process to `user`.
///
/// # Errors
/// The process lacks the capability to change the user.
pub fn confine(role: ThreadRole, user: Option<&User>) -> io::Result<()> {
    drop_privileges(user)?;
    set_no_new_privs()?;
    set_dumpable(false)?;
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    // Not every kernel has seccomp, and the filter does not know every architecture.
    restrict(role).unwrap_or_else(|error| warn!("system calls are not restricted: {error}"));
    Ok(())
}

/// How this process is confined according to the kernel (proc_pid_status(5)): the properties that all of its threads
/// have.
pub(super) fn process_status() -> ProcessStatus {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    // A thread that has ended has no status.
    let statuses: Vec<String> =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok()).collect();
    let all_have = |line: &str| !statuses.is_empty() && statuses.iter().all(|status| status.lines().any(|l| l == line));
    ProcessStatus {
        user_id: geteuid().as_raw(),
        no_new_privileges: all_have("NoNewPrivs:\t1"),
        seccomp: all_have("Seccomp:\t2"),
    }
}

/// Drops all capabilities except `CAP_NET_ADMIN`, and changes to `user`.
fn drop_privileges(user: Option<&User>) -> io::Result<()> {
    let net_admin: CapsHashSet = [Capability::CAP_NET_ADMIN].into();
    caps::clear(None, CapSet::Ambient).map_err(io::Error::other)?;
    // A change of user by another thread has cleared the effective ones.
    let permitted = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    caps::set(None, CapSet::Effective, &permitted).map_err(io::Error::other)?;
    for capability in caps::all() {
        // The bounding set depends on the kernel: a capability that it does not have cannot be dropped.
        if capability != Capability::CAP_NET_ADMIN {
            let _ = caps::drop(None, CapSet::Bounding, capability);
        }
    }
    if let Some(user) = user.filter(|user| user.uid != geteuid()) {
        let to_error = |error| io::Error::other(format!("changing to the user {}: {error}", user.name));
        change_user(user).map_err(to_error)?;
    }
    let permitted = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    let capabilities: CapsHashSet = permitted.intersection(&net_admin).copied().collect();
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, &capabilities).map_err(io::Error::other)?;
    }
    caps::clear(None, CapSet::Inheritable).map_err(io::Error::other)
}

/// Lets this thread keep its capabilities when another thread changes the user, until it confines itself.
///
/// # Errors
/// The kernel's.
pub fn keep_capabilities() -> io::Result<()> {
    caps::securebits::set_keepcaps(true).map_err(io::Error::other)
}

fn change_user(user: &User) -> io::Result<()> {
    keep_capabilities()?;
    setgroups(&[])?;
    setgid(user.gid)?;
    setuid(user.uid)?;
    Ok(())
}
