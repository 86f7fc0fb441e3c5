//! `ropewalk kernel run`: gives one program and its children a congestion control, and MPTCP if asked, without any change to
//! them.
//!
//! This process moves into a control group of its own, to which eBPF programs are attached, and becomes the program: exit
//! code, signals and terminal are those of the program. A keeper, which is not a child of the program, holds the eBPF
//! programs until the last process of the group has ended for whatever reason, and removes the group.

mod group;
mod keeper;
mod user;

use super::{alone, find};
use crate::{Failure, output};
use clap::Args;
use kernel::Error;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

pub(super) use keeper::keep;

/// The program that gives MPTCP to dynamically linked programs, by a preloaded library.
const MPTCPIZE: &str = "mptcpize";

/// The arguments: what to run, and how.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The congestion control, as the command `list` prints it; it is loaded if necessary
    name: String,
    /// Give MPTCP to sockets that ask for TCP: by eBPF from Linux 6.6 on, otherwise by mptcpize if it is installed
    #[arg(long)]
    mptcp: bool,
    /// Run as this user; without it, as the user who called sudo, doas or pkexec
    #[arg(long)]
    user: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Becomes the program. Returns only with the reason why it could not.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let (program, user) = (find(&options.name)?, user::find(options.user.as_deref())?);
    load(program)?;
    let group = group::make()?;
    // Its pipe is closed when this process becomes the program, or ends.
    let keeper = keeper::start(&group, program.name, options.mptcp)?;
    let words =
        if options.mptcp && !keeper.has_mptcp { with_mptcpize(&options.command)? } else { options.command.clone() };
    group::enter(&group)?;
    let [name, arguments @ ..] = &words[..] else { unreachable!("clap requires one") };
    let mut command = Command::new(name);
    command.args(arguments);
    user.iter().try_for_each(|user| user::become_user(user, &mut command))?;
    let error = command.exec();
    Err(Failure::Environment(format!("{}: {error}", name.to_string_lossy())))
}

/// The command, started by mptcpize, which gives MPTCP to dynamically linked programs.
fn with_mptcpize(command: &[OsString]) -> Result<Vec<OsString>, Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder.join(MPTCPIZE).is_file()) {
        let help =
            "Linux 6.6 or later that allows tracing; or, for dynamically linked programs: apt-get install mptcpize";
        return Err(Failure::Environment(format!("this kernel does not replace TCP by MPTCP\n  help: {help}")));
    }
    output::warn("this kernel does not replace TCP by MPTCP: mptcpize does it, except for statically linked programs");
    Ok([MPTCPIZE, "run"].map(OsString::from).into_iter().chain(command.iter().cloned()).collect())
}

/// Loads a program if it is not loaded, and says so.
fn load(program: &'static kernel::Program) -> Result<(), Failure> {
    match kernel::load(program) {
        Ok(loaded) => {
            let (name, id, words) = (program.kernel_name, loaded.id, alone::words());
            output::warn(&format!("{name} is loaded, id {id}, and stays: {words} unload {}", program.name));
            Ok(())
        }
        Err(Error::AlreadyLoaded(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
