//! Programs into the kernel and out of it.

use crate::catalogue::{PROGRAMS, Program};
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, ObjectBuilder};
use std::fmt;

/// A program that is loaded.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// What is loaded.
    pub program: &'static Program,
    /// Id of its `struct_ops` map, as `bpftool struct_ops list` prints it.
    pub id: u32,
}

/// Why a program could not be loaded or unloaded.
#[derive(Debug)]
pub enum Error {
    /// A program of this name is loaded.
    AlreadyLoaded(&'static str),
    /// No program of this name is loaded.
    NotLoaded(&'static str),
    /// The kernel refused, in libbpf's words.
    Refused {
        /// The program's name in the kernel.
        name: &'static str,
        /// What the kernel said.
        reason: String,
    },
    /// The kernel's maps cannot be listed.
    Unreadable(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyLoaded(name) => write!(f, "{name} is already loaded"),
            Self::NotLoaded(name) => write!(f, "{name} is not loaded"),
            Self::Refused { name, reason } => write!(f, "{name}: the kernel refuses it: {reason}"),
            Self::Unreadable(reason) => write!(f, "what is loaded cannot be read: {reason}"),
        }
    }
}

impl std::error::Error for Error {}

/// `BPF_STRUCT_OPS_STATE_INUSE`: registered. One that is unregistered while sockets have it is kept until they close.
const IN_USE: u32 = 1;

/// The programs of ours that are loaded, in the order of [`PROGRAMS`].
pub fn loaded() -> Result<Vec<Loaded>, Error> {
    let mut loaded = Vec::new();
    for info in MapInfoIter::default() {
        let found = PROGRAMS.iter().find(|program| info.ty == MapType::StructOps && info.name == program.kernel_name);
        let registered = found.filter(|_| is_registered(info.id));
        loaded.extend(registered.map(|program| Loaded { program, id: info.id }));
    }
    Ok(loaded)
}

/// The value of a `struct_ops` map opens with its reference count and its state, four bytes each.
fn is_registered(id: u32) -> bool {
    let value = MapHandle::from_map_id(id).and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::empty()));
    let value = value.ok().flatten().unwrap_or_default();
    value.get(4..8).is_some_and(|state| state == IN_USE.to_ne_bytes())
}

/// Loads a program. It stays when this process ends.
pub fn load(program: &'static Program) -> Result<Loaded, Error> {
    let name = program.kernel_name;
    if loaded()?.iter().any(|loaded| loaded.program.kernel_name == name) {
        return Err(Error::AlreadyLoaded(name));
    }
    let refused = |error: libbpf_rs::Error| Error::Refused { name, reason: error.to_string() };
    let mut object =
        ObjectBuilder::default().open_memory(program.object).and_then(libbpf_rs::OpenObject::load).map_err(refused)?;
    for mut map in object.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
        // Without its link the registration belongs to nobody and stays.
        map.attach_struct_ops().map_err(refused)?.disconnect();
    }
    loaded()?.into_iter().find(|loaded| loaded.program.kernel_name == name).ok_or(Error::NotLoaded(name))
}

/// Unloads a program. Sockets that use it keep it until they close.
pub fn unload(program: &'static Program) -> Result<(), Error> {
    let name = program.kernel_name;
    let registration = loaded()?.into_iter().find(|loaded| loaded.program.kernel_name == name);
    let id = registration.ok_or(Error::NotLoaded(name))?.id;
    let refused = |error: libbpf_rs::Error| Error::Refused { name, reason: error.to_string() };
    MapHandle::from_map_id(id).and_then(|map| map.delete(&0u32.to_ne_bytes())).map_err(refused)
}
