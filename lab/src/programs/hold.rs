//! Programs that are loaded while runs use them.
//!
//! A file per program in [`FOLDER`], which is empty after a restart as the kernel is, holds the id of the registration that
//! a lab has made. A user of the program holds a shared lock on the file. When it stops, it tries to get the exclusive lock
//! without waiting. If that succeeds, nobody else uses the program, and the registration is removed if it is still the one
//! in the file. A lock ends with its process. A run holds it twice, itself and in its reaper, so that a program is also
//! unloaded when the run is killed. If both are killed, the next run that uses the program unloads it. Loading and
//! unloading, and taking and returning the shared lock, happen one at a time, under the lock of one more file.

use super::Programs;
use kernel::{Condition, PROGRAMS, Program};
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The folder of the locks.
const FOLDER: &str = "/run/ropewalk-lab";

/// The programs that the machine's kernel can load, if this process is allowed to.
pub(crate) fn find() -> Programs {
    if let Some(obstacle) = kernel::check().into_iter().find(Condition::is_obstacle) {
        let Condition { name, found, remedy, .. } = obstacle;
        let reason = format!("{name}: {found} (`ropewalk kernel check`): {}", remedy.unwrap_or_default());
        return Programs { names: Vec::new(), unavailable_reason: Some(reason) };
    }
    let names = PROGRAMS.iter().map(|program| (program.name, program.kernel_name)).collect();
    Programs { names, unavailable_reason: None }
}

/// Programs that a run uses.
#[derive(Debug)]
pub(crate) struct Hold(Vec<Held>);

/// A program, and its file with a shared lock.
#[derive(Debug)]
struct Held {
    program: &'static Program,
    file: File,
}

impl Hold {
    /// Loads those of these programs that are not loaded, by their names in the kernel.
    pub(crate) fn load(names: &[&str]) -> Result<Self, String> {
        if names.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let _one_at_a_time = one_at_a_time().map_err(|error| format!("{FOLDER}: {error}"))?;
        let held = names.iter().filter_map(|name| kernel::program(name)).map(|program| {
            let held = Held::new(program).map_err(|error| format!("{FOLDER}: {error}"))?;
            held.load().map(|()| held)
        });
        held.collect::<Result<_, _>>().map(Self)
    }

    /// Adds a user of these programs, which are already loaded.
    pub(crate) fn join(names: &[&str]) -> Self {
        let Some(_one_at_a_time) = one_at_a_time().ok().filter(|_| !names.is_empty()) else { return Self(Vec::new()) };
        let programs = names.iter().filter_map(|name| kernel::program(name));
        Self(programs.filter_map(|program| Held::new(program).ok()).collect())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let Some(_one_at_a_time) = one_at_a_time().ok().filter(|_| !self.0.is_empty()) else { return };
        self.0.iter_mut().for_each(|held| drop(held.release()));
    }
}

impl Held {
    fn new(program: &'static Program) -> io::Result<Self> {
        let file = open(program.kernel_name)?;
        file.lock_shared()?;
        Ok(Self { program, file })
    }

    /// Loads the program if it is not loaded, and records that a lab did.
    fn load(&self) -> Result<(), String> {
        if !kernel::registered().contains(self.program.kernel_name) {
            // The hosts of a run are namespaces, and a restricted program could not become the default of one.
            let loaded =
                kernel::load_for(self.program, kernel::Audience::Everybody).map_err(|error| error.to_string())?;
            self.write(&loaded.id.to_string()).map_err(|error| format!("{FOLDER}: {error}"))?;
        }
        Ok(())
    }

    /// Unloads the program if a lab has loaded it and no run uses it any more.
    fn release(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        self.file.unlock()?;
        if self.file.try_lock().is_err() {
            return Ok(()); // another run uses it
        }
        let mut text = String::new();
        self.file.rewind()?;
        self.file.read_to_string(&mut text)?;
        let id = id(self.program);
        if id.is_some() && text.parse().ok() == id {
            kernel::unload(self.program)?;
        }
        Ok(self.write("")?)
    }

    fn write(&self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        (&self.file).rewind()?;
        (&self.file).write_all(text.as_bytes())
    }
}

/// The id of a program's registration, if it is loaded.
fn id(program: &Program) -> Option<u32> {
    let is_it = |loaded: &kernel::Loaded| loaded.program.kernel_name == program.kernel_name;
    kernel::loaded().into_iter().find(is_it).map(|loaded| loaded.id)
}

/// The lock under which programs are loaded and unloaded. It is held only briefly.
fn one_at_a_time() -> io::Result<File> {
    fs::create_dir_all(FOLDER)?;
    let file = open("lock")?;
    file.lock()?;
    Ok(file)
}

/// Opens a lock, which only root can do: a process that may read the file could lock out all others.
fn open(name: &str) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(Path::new(FOLDER).join(name))?;
    file.set_permissions(PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::{Reason, skip};

    /// A program that no other test loads, unless it cannot be loaded here or is in use.
    fn free_program() -> Option<&'static str> {
        if let Some(obstacle) = kernel::check().into_iter().find(Condition::is_obstacle) {
            skip(Reason::Kernel, &format!("{}: {}", obstacle.name, obstacle.found));
            return None;
        }
        let name = "rw_illinois";
        if is_registered(name) {
            skip(Reason::Disturbed, &format!("{name} is loaded for somebody else"));
            return None;
        }
        Some(name)
    }

    fn is_registered(name: &str) -> bool {
        kernel::registered().contains(name)
    }

    #[test]
    fn the_last_user_unloads_what_a_lab_has_loaded_and_nothing_else() {
        let Some(name) = free_program() else { return };
        let first = Hold::load(&[name]).unwrap();
        let reaper = Hold::join(&[name]);
        let second = Hold::load(&[name]).unwrap();
        assert!(is_registered(name));
        drop((first, reaper));
        assert!(is_registered(name), "another run uses it");
        drop(second);
        assert!(!is_registered(name), "it was the last");

        let program = kernel::program(name).unwrap();
        kernel::load(program).unwrap();
        drop(Hold::load(&[name]).unwrap());
        assert!(is_registered(name), "no lab has loaded it");
        kernel::unload(program).unwrap();
    }
}
