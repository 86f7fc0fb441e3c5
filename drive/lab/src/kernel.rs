//! Which kernel there is, and what its clock is.

use crate::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable that names another kernel than Debian's.
const VARIABLE: &str = "ROPEWALK_LINUX";

/// A User-Mode Linux program.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) program: PathBuf,
    /// `6.1.176`.
    pub(crate) version: String,
    /// Built with `CONFIG_UML_TIME_TRAVEL_SUPPORT`: its time stands still while it computes, so that neither its own
    /// work nor the load of the machine changes a run.
    pub(crate) is_virtual: bool,
}

impl Kernel {
    /// The kernel that `ROPEWALK_LINUX` names, or `linux` on the path.
    pub(crate) fn find() -> Result<Self, Error> {
        let program = match std::env::var_os(VARIABLE) {
            Some(program) => PathBuf::from(program),
            None => on_path("linux").ok_or_else(|| {
                let how = "install it (Debian: apt-get install user-mode-linux), or name one in";
                Error::NoKernel(format!("there is no User-Mode Linux here: no program `linux`; {how} {VARIABLE}"))
            })?,
        };
        let version = ask(&program, "--version")?.trim().to_owned();
        if !version.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(Error::NoKernel(format!("{} is no User-Mode Linux kernel", program.display())));
        }
        let is_virtual = ask(&program, "--showconfig")?.contains("CONFIG_UML_TIME_TRAVEL_SUPPORT=y");
        Ok(Self { program, version, is_virtual })
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

fn ask(program: &Path, what: &str) -> Result<String, Error> {
    let output = Command::new(program).arg(what).output();
    let output = output.map_err(|why| Error::NoKernel(format!("cannot run {}: {why}", program.display())))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
