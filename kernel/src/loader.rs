//! Loading programs into the kernel, and unloading them.

use crate::catalogue::Program;
use crate::check::{Condition, conditions};
use crate::generation::{Loaded, loaded};
use crate::hooks;
use libbpf_rs::{MapCore, MapHandle, MapType, Object, ObjectBuilder, OpenObject, PrintLevel, set_print};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::sync::{Mutex, PoisonError};
use std::{fmt, fs, mem};

/// Lines of libbpf's messages in an error: the verifier's last instructions and its reason.
const MESSAGE_LINES: usize = 12;

/// Why a program could not be loaded or unloaded.
#[derive(Debug)]
pub enum Error {
    /// A program of this name is loaded.
    AlreadyLoaded(&'static str),
    /// No program of this name is loaded.
    NotLoaded(&'static str),
    /// The kernel or this process does not meet the conditions for loading.
    Lacks {
        /// The program's name in the kernel.
        name: &'static str,
        /// The conditions that are not met.
        obstacles: Vec<Condition>,
    },
    /// The kernel refused for another reason.
    Refused {
        /// The program's name in the kernel.
        name: &'static str,
        /// The reason from libbpf, with the end of the kernel verifier's log.
        reason: String,
    },
}

impl Error {
    /// The error of a refused request: the unmet conditions, or otherwise libbpf's reason.
    pub(crate) fn refused(name: &'static str, error: &libbpf_rs::Error, messages: &str) -> Self {
        let obstacles: Vec<Condition> = conditions().into_iter().filter(Condition::is_obstacle).collect();
        if !obstacles.is_empty() {
            return Self::Lacks { name, obstacles };
        }
        let lines: Vec<&str> = messages.lines().filter(|line| !line.trim().is_empty()).collect();
        let end = lines[lines.len().saturating_sub(MESSAGE_LINES)..].iter().map(|line| format!("\n  {line}"));
        Self::Refused { name, reason: format!("{error}{}", end.collect::<String>()) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyLoaded(name) => write!(f, "{name} is already loaded"),
            Self::NotLoaded(name) => write!(f, "{name} is not loaded"),
            Self::Lacks { name, obstacles } => {
                write!(f, "{name} cannot be loaded or unloaded here")?;
                obstacles.iter().try_for_each(|obstacle| {
                    let remedy = obstacle.remedy.as_deref().unwrap_or_default();
                    write!(f, "\n  {}: {}\n  help: {remedy}", obstacle.name, obstacle.found)
                })
            }
            Self::Refused { name, reason } => write!(f, "{name}: the kernel refuses it: {reason}"),
        }
    }
}

impl std::error::Error for Error {}

/// The congestion controls in the kernel: its own and loaded ones.
#[must_use]
pub fn registered() -> HashSet<String> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

fn find(program: &Program) -> Option<Loaded> {
    loaded().into_iter().find(|loaded| loaded.program.kernel_name == program.kernel_name)
}

/// Who may choose a loaded program, by the socket option or as a namespace's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audience {
    /// For a [restricted](Program::restricted) program, processes with CAP_NET_ADMIN; and only the first namespace as
    /// its default.
    #[default]
    AsCatalogued,
    /// Every process, in every namespace.
    Everybody,
}

/// `TCP_CONG_NON_RESTRICTED`, in the flags at the beginning of a registration's value in the object (`kernel.bpf.h`).
const NON_RESTRICTED: u8 = 1;

/// Loads a program for the catalogue's audience. It stays loaded when this process ends.
pub fn load(program: &'static Program) -> Result<Loaded, Error> {
    load_for(program, Audience::AsCatalogued)
}

/// As [`load`], for the given audience.
pub fn load_for(program: &'static Program, audience: Audience) -> Result<Loaded, Error> {
    let name = program.kernel_name;
    if registered().contains(name) {
        return Err(Error::AlreadyLoaded(name));
    }
    match with_messages(|| register(program, audience)) {
        Ok(id) => Ok(Loaded { program, id }),
        // Another process was faster.
        Err(_) if registered().contains(name) => Err(Error::AlreadyLoaded(name)),
        Err((error, messages)) => Err(Error::refused(name, &error, &messages)),
    }
}

/// Replaces a loaded program by this version; existing sockets keep the old one. Loads the program if none is loaded.
/// The kernel verifies the new one before the old one is removed, so that the name is missing for milliseconds only.
/// Namespaces whose default it is keep the old one until their default is set again.
pub fn replace(program: &'static Program, audience: Audience) -> Result<Loaded, Error> {
    let name = program.kernel_name;
    if !registered().contains(name) {
        return load_for(program, audience);
    }
    let Some(old) = find(program) else {
        return Err(Error::Lacks { name, obstacles: vec![Condition::finding_programs()] });
    };
    let exchange = || {
        let object = open(program, audience)?.load()?;
        unregister(old.id)?;
        attach(object)
    };
    with_messages(exchange)
        .map(|id| Loaded { program, id })
        .map_err(|(error, messages)| Error::refused(name, &error, &messages))
}

/// Checks whether the kernel accepts a program, without registering or keeping it; otherwise returns the kernel's
/// message.
pub(crate) fn try_load(program: &Program) -> Result<(), String> {
    with_messages(|| open(program, Audience::AsCatalogued)?.load().map(drop))
        .map_err(|(error, messages)| messages.lines().last().map_or_else(|| error.to_string(), str::to_owned))
}

/// Registers the program and returns the id of its `struct_ops` map.
fn register(program: &'static Program, audience: Audience) -> libbpf_rs::Result<u32> {
    attach(open(program, audience)?.load()?)
}

fn attach(mut object: Object) -> libbpf_rs::Result<u32> {
    let mut id = 0;
    for mut map in object.maps_mut().filter(|map| map.map_type() == MapType::StructOps && map.autocreate()) {
        id = map.info()?.info.id;
        // Without its link the registration has no owner and stays.
        map.attach_struct_ops()?.disconnect();
    }
    Ok(id)
}

/// Opens a program's object, with the registration that suits the running kernel.
pub(crate) fn open(program: &Program, audience: Audience) -> libbpf_rs::Result<OpenObject> {
    let mut object = ObjectBuilder::default().open_memory(program.object)?;
    let is_second = |name: &OsStr| name.as_encoded_bytes().ends_with(b"_");
    let takes_second = hooks::kernel_has(hooks::TX_START) && object.maps().any(|map| is_second(map.name()));
    for mut map in object.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
        let is_chosen = is_second(map.name()) == takes_second;
        map.set_autocreate(is_chosen)?;
        if let Some(flags) = map.initial_value_mut().and_then(|value| value.first_mut())
            && audience == Audience::Everybody
        {
            *flags |= NON_RESTRICTED;
        }
    }
    Ok(object)
}

/// Unloads a program, which needs more privileges than loading it (CAP_SYS_ADMIN). Sockets that use it keep it until
/// they close.
pub fn unload(program: &'static Program) -> Result<(), Error> {
    let name = program.kernel_name;
    if !registered().contains(name) {
        return Err(Error::NotLoaded(name));
    }
    let Some(loaded) = find(program) else {
        return Err(Error::Lacks { name, obstacles: vec![Condition::finding_programs()] });
    };
    match with_messages(|| unregister(loaded.id)) {
        Ok(()) => Ok(()),
        Err(_) if !registered().contains(name) => Err(Error::NotLoaded(name)),
        Err((error, messages)) => Err(Error::refused(name, &error, &messages)),
    }
}

fn unregister(id: u32) -> libbpf_rs::Result<()> {
    MapHandle::from_map_id(id)?.delete(&0u32.to_ne_bytes())
}

/// The messages that libbpf prints while they are collected.
static MESSAGES: Mutex<String> = Mutex::new(String::new());

/// Calls libbpf; an error includes the messages that libbpf would have printed. One call at a time.
pub(crate) fn with_messages<T>(call: impl FnOnce() -> libbpf_rs::Result<T>) -> Result<T, (libbpf_rs::Error, String)> {
    static CALLS: Mutex<()> = Mutex::new(());
    let messages = || MESSAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let _call = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    messages().clear();
    let previous = set_print(Some((PrintLevel::Warn, |_, text| {
        MESSAGES.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
    })));
    let result = call();
    set_print(previous);
    result.map_err(|error| (error, mem::take(&mut *messages())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PROGRAMS;

    /// The flags of an object's registrations.
    fn flags(program: &Program, audience: Audience) -> Vec<u8> {
        let mut object = open(program, audience).unwrap();
        let mut registrations: Vec<_> = object.maps_mut().filter(|map| map.map_type() == MapType::StructOps).collect();
        registrations.iter_mut().map(|map| map.initial_value_mut().unwrap()[0]).collect()
    }

    #[test]
    fn an_object_is_restricted_as_the_catalogue_says_and_open_for_everybody() {
        for program in PROGRAMS {
            let is_open = |flags: Vec<u8>| !flags.is_empty() && flags.iter().all(|flags| flags & NON_RESTRICTED != 0);
            let is_closed = |flags: Vec<u8>| !flags.is_empty() && flags.iter().all(|flags| flags & NON_RESTRICTED == 0);
            let declared = flags(program, Audience::AsCatalogued);
            assert!(if program.restricted { is_closed(declared) } else { is_open(declared) }, "{}", program.name);
            assert!(is_open(flags(program, Audience::Everybody)), "{}", program.name);
        }
    }
}
