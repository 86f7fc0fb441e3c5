//! `ropewalk kernel load` and `unload`.

use super::namespaces::{self, Namespace};
use super::state::{self, Entry};
use super::{Choice, Which, each, status};
use crate::{Failure, output};
use clap::Args;
use kernel::{Audience, Error, Loaded, Program};
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

/// The congestion control of new sockets in the caller's network namespace. Unloading does not change it.
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// A setting that only the first network namespace has.
const FIRST_ONLY: &str = "/proc/sys/net/core/bpf_jit_enable";

/// The arguments of `load`.
#[derive(Args, Debug)]
pub(crate) struct Load {
    #[command(flatten)]
    choice: Choice,
    /// Let every process choose the programs, including those that may be more aggressive than Reno and CUBIC
    #[arg(long)]
    for_everybody: bool,
    /// Accept programs that are already loaded, and replace those of another version of Ropewalk
    #[arg(long, conflicts_with = "replace")]
    ensure: bool,
    /// Replace loaded programs by these; existing connections keep the old ones
    #[arg(long)]
    replace: bool,
    /// Write the names of the loaded programs into this file, for `unload --state`
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
}

/// The arguments of `unload`.
#[derive(Args, Debug)]
pub(crate) struct Unload {
    /// Names, as `ropewalk kernel list` prints them
    #[arg(required_unless_present_any = ["all", "state"])]
    names: Vec<String>,
    /// All loaded programs
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Unload the programs that `load --state` has written into this file, except those that somebody else has loaded since,
    /// and remove the file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "all"])]
    state: Option<PathBuf>,
}

/// Loads programs.
pub(super) fn load(options: &Load) -> Result<(), Failure> {
    if kernel::leaves_programs_out() {
        let remedy = "see `ropewalk kernel check` and docs/how-to/load-into-the-kernel.md";
        output::warn(&format!("warning: this kernel leaves programs out in interrupts of process 1: {remedy}"));
    }
    let before = options.state.as_deref().map_or_else(|| Ok(Vec::new()), state::read)?;
    let entries: RefCell<Vec<Entry>> = RefCell::new(before);
    let which = if options.ensure || options.replace { Which::All } else { Which::NotLoaded };
    let outcome = each(&options.choice, which, |program| {
        let (text, loaded) = one(program, options)?;
        if let Some(loaded) = loaded {
            entries.borrow_mut().retain(|(earlier, _)| earlier.kernel_name != program.kernel_name);
            entries.borrow_mut().push((program, loaded.id));
        }
        Ok(text)
    });
    if let Some(file) = &options.state {
        state::write(file, &entries.into_inner())?;
    }
    outcome
}

/// Loads or replaces a program. Returns the message, and the program if it is newly loaded.
fn one(program: &'static Program, options: &Load) -> Result<(String, Option<Loaded>), Error> {
    let name = program.kernel_name;
    let audience = if options.for_everybody { Audience::Everybody } else { Audience::AsCatalogued };
    let present = kernel::loaded().into_iter().find(|loaded| loaded.program.kernel_name == name);
    let is_registered = kernel::registered().contains(name);
    if options.ensure && is_registered {
        match present {
            None => return Ok((format!("{name} is already loaded; only root can see its version\n"), None)),
            Some(present) if present.is_of_this_version() != Some(false) => {
                return Ok((format!("{name} is already loaded, id {}\n", present.id), None));
            }
            Some(_) => {}
        }
    }
    if !is_registered || !(options.ensure || options.replace) {
        let loaded = kernel::load_for(program, audience)?;
        return Ok((format!("{name} is loaded, id {}\n", loaded.id), Some(loaded)));
    }
    let loaded = kernel::replace(program, audience)?;
    let earlier = present.map_or_else(String::new, |present| format!(" instead of {}", present.id));
    Ok((
        format!("{name} is loaded, id {}{earlier}\n{}", loaded.id, set_defaults_again(program, audience)),
        Some(loaded),
    ))
}

/// Namespaces whose default is the program keep the previous one until their default is set again. Linux refuses a
/// restricted program outside the first namespace and then leaks a reference, so this is not tried.
fn set_defaults_again(program: &Program, audience: Audience) -> String {
    let is_open = !program.restricted || audience == Audience::Everybody;
    let set = |namespace: &Namespace| {
        let write = || {
            is_default(program).then(|| match is_open || Path::new(FIRST_ONLY).exists() {
                true => fs::write(DEFAULT, program.kernel_name),
                false => Err(std::io::Error::other("the new program is restricted; --for-everybody allows it")),
            })
        };
        let place = namespace.name.as_deref().unwrap_or("this namespace");
        match namespace.within(write).ok()?? {
            Ok(()) => Some(format!("  it is the default of {place}: set again\n")),
            Err(error) => Some(format!("  the default of {place} is still the previous program: {error}\n")),
        }
    };
    namespaces::all().iter().filter_map(set).collect()
}

fn is_default(program: &Program) -> bool {
    fs::read_to_string(DEFAULT).is_ok_and(|name| name.trim() == program.kernel_name)
}

/// Unloads programs.
pub(super) fn unload(options: &Unload) -> Result<(), Failure> {
    let act = |program: &'static Program| {
        kernel::unload(program)?;
        Ok(format!("{} is unloaded\n{}", program.kernel_name, kept(program)))
    };
    let Some(file) = &options.state else {
        return each(&Choice { names: options.names.clone(), all: options.all }, Which::Loaded, act);
    };
    let entries = state::read(file)?;
    if entries.is_empty() {
        output::print(&format!("{}: nothing was loaded\n", file.display()))?;
    }
    for (program, id) in entries {
        let present = kernel::loaded().into_iter().find(|loaded| loaded.program.kernel_name == program.kernel_name);
        match present {
            Some(present) if present.id == id => output::print(&act(program)?)?,
            Some(present) => output::print(&format!("{} stays: id {} is not ours\n", program.kernel_name, present.id))?,
            None if kernel::registered().contains(program.kernel_name) => output::print(&act(program)?)?,
            None => output::print(&format!("{} was unloaded by somebody else\n", program.kernel_name))?,
        }
    }
    state::remove(file)
}

/// The users that an unloaded program still has, in all namespaces.
fn kept(program: &Program) -> String {
    let mut text = String::new();
    for namespace in namespaces::all() {
        let found = namespace.within(|| (status::users(program).unwrap_or(0), is_default(program)));
        let place = namespace.name.as_deref().unwrap_or("this namespace");
        let (sockets, is_default) = found.unwrap_or((0, false));
        if sockets > 0 {
            text.push_str(&format!("  sockets of {place} that keep it until they close: {sockets}\n"));
        }
        if is_default {
            let remedy = "sysctl net.ipv4.tcp_congestion_control=reno";
            text.push_str(&format!("  it is still the default of {place}, for new sockets too: {remedy}\n"));
        }
    }
    text
}
