//! The system calls that a thread may make after its setup: a seccomp filter (seccomp(2)) for the data thread, and one
//! for the control thread and those that it starts.
//!
//! A call that is not in the list, or whose arguments are not allowed, fails with ENOSYS, as on a kernel that does not
//! have it. Libraries handle that: glibc falls back from `clone3`, whose flags a filter cannot see, to `clone`, and a
//! module of the name service that makes an unforeseen call gets an error. Killing the process instead would end a
//! tunnel because of a name. No program can be executed, no process started, no namespace, device, packet socket or
//! tracing opened, and no memory can be both writable and executable.

use super::privileges::ThreadRole;
use nix::libc::{self, c_long};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// Calls of every thread: memory, locks, time, the end of a thread, open descriptors and sockets.
const COMMON: &[c_long] = &[
    libc::SYS_bind,
    libc::SYS_brk,
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_connect,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fcntl,
    libc::SYS_futex,
    libc::SYS_getpeername,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_getsockname,
    libc::SYS_getsockopt,
    libc::SYS_gettid,
    libc::SYS_gettimeofday,
    libc::SYS_madvise,
    libc::SYS_membarrier,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_ppoll,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
    libc::SYS_set_robust_list,
    libc::SYS_setsockopt,
    libc::SYS_shutdown,
    libc::SYS_sigaltstack,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Calls of [`COMMON`] that only this architecture has in addition to their successors; musl makes some of them.
#[cfg(target_arch = "x86_64")]
const COMMON_OLD: &[c_long] = &[libc::SYS_epoll_wait, libc::SYS_poll, libc::SYS_time];
#[cfg(not(target_arch = "x86_64"))]
const COMMON_OLD: &[c_long] = &[];

/// Further calls of the data thread.
const DATA: &[c_long] = &[libc::SYS_timerfd_create, libc::SYS_timerfd_gettime, libc::SYS_timerfd_settime];

/// Further calls of the control thread: files, threads, the sockets of the server and the resolution of names.
const CONTROL: &[c_long] = &[
    libc::SYS_accept4,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_eventfd2,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fadvise64,
    libc::SYS_fchmod,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getuid,
    libc::SYS_listen,
    libc::SYS_lseek,
    libc::SYS_newfstatat,
    libc::SYS_openat,
    libc::SYS_pipe2,
    libc::SYS_pread64,
    libc::SYS_prlimit64,
    libc::SYS_pwrite64,
    libc::SYS_readlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_set_tid_address,
    libc::SYS_socketpair,
    libc::SYS_statx,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    libc::SYS_unlinkat,
];

/// Calls of [`CONTROL`] that only this architecture has in addition to their successors.
#[cfg(target_arch = "x86_64")]
const CONTROL_OLD: &[c_long] = &[
    libc::SYS_accept,
    libc::SYS_access,
    libc::SYS_dup2,
    libc::SYS_lstat,
    libc::SYS_open,
    libc::SYS_pipe,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_stat,
    libc::SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const CONTROL_OLD: &[c_long] = &[];

/// Requests of `ioctl`: modes of descriptors, the check whether the log is a terminal, names and indices of network
/// devices.
#[allow(clippy::unnecessary_cast, reason = "their type depends on the C library")]
const IOCTLS: &[u64] = &[
    libc::FIONBIO as u64,
    libc::FIONREAD as u64,
    libc::TCGETS as u64,
    libc::TIOCGWINSZ as u64,
    libc::SIOCGIFINDEX as u64,
    libc::SIOCGIFNAME as u64,
];

/// Commands of `bpf`, on the relay's map: lookup, update and delete of an element (`enum bpf_cmd`).
const BPF_COMMANDS: [u64; 3] = [1, 2, 3];

/// Flags that a new thread must have (`CLONE_VM`, `CLONE_THREAD`), and the flags for new namespaces, which it must not
/// have.
const CLONE_REQUIRED: u64 = (libc::CLONE_VM | libc::CLONE_THREAD) as u64;
const CLONE_FORBIDDEN: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_PTRACE) as u64;

const WRITE: u64 = libc::PROT_WRITE as u64;
const EXECUTE: u64 = libc::PROT_EXEC as u64;

/// Restricts this thread, and those that it starts from now on, to the calls of its role.
///
/// # Errors
/// The kernel has no seccomp, or the filter does not know this architecture.
pub(super) fn restrict(role: ThreadRole) -> Result<(), Box<dyn std::error::Error>> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH)?;
    let refuse = SeccompAction::Errno(libc::ENOSYS as u32);
    let program: BpfProgram =
        SeccompFilter::new(rules(role)?, refuse, SeccompAction::Allow, architecture)?.try_into()?;
    Ok(seccompiler::apply_filter(&program)?)
}

/// The rules by call: a call is allowed if one of its rules matches, or if it has no rules.
fn rules(role: ThreadRole) -> Result<BTreeMap<c_long, Vec<SeccompRule>>, seccompiler::BackendError> {
    let own = if role == ThreadRole::Data { [DATA, &[]] } else { [CONTROL, CONTROL_OLD] };
    let calls = [COMMON, COMMON_OLD].into_iter().chain(own).flatten();
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> = calls.map(|call| (*call, Vec::new())).collect();
    let one_of = |argument: u8, values: &[u64]| {
        values.iter().map(|value| rule(argument, SeccompCmpOp::Eq, *value)).collect::<Result<Vec<_>, _>>()
    };
    let without = |argument: u8, bits: u64| rule(argument, SeccompCmpOp::MaskedEq(bits), 0);
    let [inet, inet6, unix, netlink] =
        [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX, libc::AF_NETLINK].map(|family| family as u64);
    rules.insert(libc::SYS_ioctl, one_of(1, IOCTLS)?);
    // A panic ends the process by a signal to itself.
    rules.insert(libc::SYS_tgkill, one_of(0, &[std::process::id().into()])?);
    match role {
        ThreadRole::Data => {
            rules.insert(libc::SYS_bpf, one_of(0, &BPF_COMMANDS)?);
            // glibc gets the index of a device by a socket of AF_UNIX.
            rules.insert(libc::SYS_socket, one_of(0, &[inet, inet6, unix])?);
            rules.insert(libc::SYS_mmap, vec![without(2, EXECUTE)?]);
            rules.insert(libc::SYS_mprotect, vec![without(2, EXECUTE)?]);
        }
        ThreadRole::Control => {
            rules.insert(libc::SYS_socket, one_of(0, &[inet, inet6, unix, netlink])?);
            // Modules of the name service are mapped when the first name is resolved.
            rules.insert(libc::SYS_mmap, vec![without(2, WRITE)?, without(2, EXECUTE)?]);
            rules.insert(libc::SYS_mprotect, vec![without(2, EXECUTE)?]);
            let threads = SeccompCmpOp::MaskedEq(CLONE_REQUIRED | CLONE_FORBIDDEN);
            rules.insert(libc::SYS_clone, vec![rule(0, threads, CLONE_REQUIRED)?]);
            rules.insert(libc::SYS_prctl, one_of(0, &[libc::PR_SET_NAME as u64])?);
        }
    }
    Ok(rules)
}

/// A rule with one condition. The upper half of a 32-bit argument may hold anything, so only the lower half is
/// compared.
fn rule(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;
    use nix::sched::{CloneFlags, unshare};
    use std::fs::File;
    use std::io;
    use std::net::{ToSocketAddrs, UdpSocket};
    use std::process::Command;
    use testing::{Reason, skip};

    /// Runs `test` on a thread with the filter of `role`.
    fn on_restricted_thread(role: ThreadRole, test: impl FnOnce() + Send + 'static) {
        let run = move || match restrict(role) {
            Ok(()) => test(),
            Err(error) => skip(Reason::Kernel, &format!("no seccomp filter: {error}")),
        };
        std::thread::spawn(run).join().unwrap();
    }

    #[track_caller]
    fn assert_refused<T>(result: io::Result<T>) {
        assert_eq!(result.map(drop).unwrap_err().raw_os_error(), Some(libc::ENOSYS));
    }

    #[test]
    fn no_thread_executes_a_program_starts_a_process_or_enters_a_namespace() {
        for role in [ThreadRole::Control, ThreadRole::Data] {
            on_restricted_thread(role, move || {
                assert_refused(Command::new("/bin/true").spawn());
                assert_refused(std::os::unix::process::CommandExt::exec(&mut Command::new("/bin/true")).into_result());
                assert_eq!(unshare(CloneFlags::CLONE_NEWUSER), Err(Errno::ENOSYS));
                assert_refused(socket2::Socket::new(socket2::Domain::PACKET, socket2::Type::RAW, None));
            });
        }
    }

    /// A call that returns its error alone has failed.
    trait IntoResult {
        fn into_result(self) -> io::Result<()>;
    }

    impl IntoResult for io::Error {
        fn into_result(self) -> io::Result<()> {
            Err(self)
        }
    }

    #[test]
    fn the_data_thread_opens_no_file_and_starts_no_thread() {
        on_restricted_thread(ThreadRole::Data, || {
            assert_refused(File::open("/etc/passwd"));
            assert_refused(std::thread::Builder::new().spawn(|| ()));
            UdpSocket::bind("127.0.0.1:0").unwrap();
        });
    }

    #[test]
    fn the_control_thread_reads_files_and_resolves_names_on_a_thread_of_its_own() {
        on_restricted_thread(ThreadRole::Control, || {
            File::open("/proc/self/status").unwrap();
            let resolve = || ("localhost", 4754).to_socket_addrs().map(Iterator::count);
            assert!(std::thread::spawn(resolve).join().unwrap().unwrap() > 0);
        });
    }
}
