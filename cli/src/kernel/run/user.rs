//! The user that runs the program.

use crate::Failure;
use nix::unistd::{Uid, User, geteuid, initgroups, setgid, setuid};
use std::env::var;
use std::ffi::CString;
use std::process::Command;

/// The user that was asked for, or the one who called sudo, doas or pkexec; none if nothing is to change.
pub(super) fn find(wanted: Option<&str>) -> Result<Option<User>, Failure> {
    let asked = wanted.map(str::to_owned);
    let caller = || ["SUDO_UID", "PKEXEC_UID", "DOAS_USER"].iter().find_map(|name| var(name).ok());
    let Some(user) = asked.or_else(|| geteuid().is_root().then(caller).flatten()) else { return Ok(None) };
    let found = match user.parse() {
        Ok(number) => User::from_uid(Uid::from_raw(number)),
        Err(_) => User::from_name(&user),
    };
    match found {
        Ok(Some(found)) => Ok((found.uid != geteuid()).then_some(found)),
        _ => Err(Failure::Usage(format!("no user `{user}`\n  help: --user NAME, such as --user root"))),
    }
}

/// Switches this process to the user and the user's groups, and gives the command the environment that login sets.
pub(super) fn become_user(user: &User, command: &mut Command) -> Result<(), Failure> {
    let name = CString::new(user.name.as_str()).unwrap_or_default();
    initgroups(&name, user.gid)
        .and_then(|()| setgid(user.gid))
        .and_then(|()| setuid(user.uid))
        .map_err(|error| Failure::Environment(format!("cannot run as {}: {error}", user.name)))?;
    command.env("HOME", &user.dir).env("USER", &user.name).env("LOGNAME", &user.name);
    Ok(())
}
