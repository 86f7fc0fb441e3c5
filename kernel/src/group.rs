//! A control group (cgroup v2) whose TCP sockets get a congestion control, and MPTCP on request, from eBPF programs
//! attached to it. Neither the processes in it nor sockets outside it are changed.

use crate::Error;
use crate::loader::with_messages;
use libbpf_rs::{Link, ObjectBuilder};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The programs, built from `bpf/cgroup.bpf.c`.
const OBJECT: &[u8] = include_bytes!("../bpf/objects/cgroup.o");
/// The program that is attached to the group, and gives sockets their congestion control.
const CHOOSE: &str = "choose";
/// The program that replaces TCP by MPTCP, in a function that Linux has since 6.6.
const USE_MPTCP: &str = "use_mptcp";
/// Bytes of a congestion control's name (`TCP_CA_NAME_MAX`).
const NAME_SIZE: usize = 16;

/// Programs that are attached to a group. They are detached when this is dropped or its process ends.
#[derive(Debug)]
pub struct Attached(#[expect(dead_code, reason = "a link is there to be dropped")] Vec<Link>);

/// Gives new TCP sockets of the group at `folder` this congestion control, which is registered, and subflows of MPTCP that
/// join. With `mptcp`, processes of the group that ask for TCP get MPTCP.
///
/// # Errors
/// The folder cannot be opened; or the kernel refuses, for instance `mptcp` because it is older than 6.6 or forbids
/// tracing.
pub fn attach(folder: &Path, congestion: &'static str, mptcp: bool) -> Result<Attached, Error> {
    let refused = |reason: String| Error::Refused { name: congestion, reason };
    let group = File::open(folder).and_then(|file| Ok((file.metadata()?.ino(), file)));
    let (number, group) = group.map_err(|error: io::Error| refused(format!("{}: {error}", folder.display())))?;
    let attached = with_messages(|| {
        let mut object = ObjectBuilder::default().open_memory(OBJECT)?;
        for mut program in object.progs_mut().filter(|program| program.name() == USE_MPTCP) {
            program.set_autoload(mptcp);
        }
        for mut map in object.maps_mut().filter(|map| map.name().to_string_lossy().ends_with(".rodata")) {
            map.set_initial_value(&settings(number, congestion))?;
        }
        let object = object.load()?;
        let wanted = object.progs_mut().filter(|program| mptcp || program.name() != USE_MPTCP);
        wanted
            .map(
                |program| {
                    if program.name() == CHOOSE { program.attach_cgroup(group.as_raw_fd()) } else { program.attach() }
                },
            )
            .collect()
    });
    attached.map(Attached).map_err(|(error, messages)| Error::refused(congestion, &error, &messages))
}

/// The constants of the programs, laid out as `struct settings`.
fn settings(group: u64, congestion: &str) -> Vec<u8> {
    let mut name = congestion.as_bytes().to_vec();
    name.resize(NAME_SIZE, 0);
    [group.to_ne_bytes().to_vec(), name].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_a_number_and_a_name_that_ends_with_zeros() {
        let settings = settings(7, "rw_coupled_bbr");
        assert_eq!(settings.len(), 24);
        assert_eq!((&settings[..8], &settings[8..]), (&7u64.to_ne_bytes()[..], &b"rw_coupled_bbr\0\0"[..]));
        assert!(crate::PROGRAMS.iter().all(|program| program.kernel_name.len() < NAME_SIZE));
    }
}
