//! The registrations of our programs in the kernel, and their versions.

use crate::catalogue::{PROGRAMS, Program};
use crate::hooks::{self, hooks};
use crate::loader::{Audience, open};
use libbpf_rs::MapType;
use libbpf_rs::query::{MapInfo, MapInfoIter};
use std::fs;
use std::os::fd::{AsFd, AsRawFd};

/// `BPF_STRUCT_OPS_STATE_INUSE`: registered.
const IN_USE: u32 = 1;
/// `BPF_STRUCT_OPS_STATE_TOBEFREE`: no longer registered, and kept for the sockets and namespaces that have it.
const TO_BE_FREED: u32 = 2;

/// A program that is loaded.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// The program.
    pub program: &'static Program,
    /// Id of its `struct_ops` map, as `bpftool struct_ops list` prints it.
    pub id: u32,
}

impl Loaded {
    /// Whether it is the program of this version of Ropewalk. Its functions are compared with those of the object in
    /// this process, which the kernel verifies for that. `None` if this cannot be determined.
    #[must_use]
    pub fn is_of_this_version(&self) -> Option<bool> {
        let mut theirs: Vec<String> = hooks(self.id).iter().map(|hook| hex(hook.tag)).collect();
        let object = open(self.program, Audience::AsCatalogued).ok()?.load().ok()?;
        let ours = object.progs().filter(libbpf_rs::Program::autoload).map(|function| {
            let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", function.as_fd().as_raw_fd())).ok()?;
            text.lines().find_map(|line| line.strip_prefix("prog_tag:")).map(|tag| tag.trim().to_owned())
        });
        let mut ours: Vec<String> = ours.collect::<Option<_>>()?;
        theirs.sort_unstable();
        ours.sort_unstable();
        (!theirs.is_empty()).then_some(theirs == ours)
    }
}

fn hex(bytes: [u8; 8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Our loaded programs. Only root sees them; for others the list is empty.
#[must_use]
pub fn loaded() -> Vec<Loaded> {
    in_state(IN_USE)
}

/// Our programs that are unloaded or replaced, but still held by sockets, or by namespaces whose default they are. Only
/// root sees them.
#[must_use]
pub fn kept() -> Vec<Loaded> {
    in_state(TO_BE_FREED)
}

fn in_state(wanted: u32) -> Vec<Loaded> {
    let of = |info: MapInfo| {
        let found = PROGRAMS.iter().find(|program| info.ty == MapType::StructOps && program.has_map(&info.name));
        found.filter(|_| state(info.id) == Some(wanted)).map(|program| Loaded { program, id: info.id })
    };
    MapInfoIter::default().filter_map(of).collect()
}

/// The value of a `struct_ops` map opens with its reference count and its state, four bytes each.
fn state(id: u32) -> Option<u32> {
    Some(u32::from_ne_bytes(hooks::value(id)?.get(4..8)?.try_into().ok()?))
}
