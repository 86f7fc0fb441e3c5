//! Owners and permissions of the setup's files and folders, which are changed by descriptor.

use super::host;
use filesystem::Folder;
use nix::unistd::{Gid, Uid, User};
use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;

/// ` (0750, ropewalk)`.
pub(super) fn access(mode: u32, owner: Option<&str>) -> String {
    owner.map_or_else(|| format!(" ({mode:04o})"), |owner| format!(" ({mode:04o}, {owner})"))
}

/// The ids of a user, and of its group.
pub(super) fn user_ids(name: &str) -> Option<(u32, u32)> {
    User::from_name(name).ok().flatten().map(|user| (Uid::as_raw(user.uid), Gid::as_raw(user.gid)))
}

/// The ids of an owner: of a user, `USER`, or of root and the group of a user, `root:USER`.
pub(super) fn owner_ids(owner: &str) -> Result<(u32, u32), String> {
    let (name, is_group_only) = owner.strip_prefix("root:").map_or((owner, false), |name| (name, true));
    let (user, group) = user_ids(name).ok_or_else(|| format!("there is no user {name}"))?;
    Ok((if is_group_only { 0 } else { user }, group))
}

/// An owner as [`owner_ids`] reads it, `root`, or numbers.
pub(super) fn owner_name((user, group): (u32, u32)) -> String {
    let name = |id: u32| User::from_uid(Uid::from_raw(id)).ok().flatten();
    match (user, group, name(user), name(group)) {
        (0, 0, ..) => "root".to_owned(),
        (0, _, _, Some(of_group)) if of_group.gid.as_raw() == group => format!("root:{}", of_group.name),
        (_, _, Some(of_user), _) if of_user.gid.as_raw() == group => of_user.name,
        _ => format!("user {user}, group {group}"),
    }
}

/// Gives a file to an owner, as [`owner_ids`] reads it.
pub(super) fn give(file: &File, owner: Option<&str>) -> Result<(), String> {
    let Some(owner) = owner else { return Ok(()) };
    let (user, group) = owner_ids(owner)?;
    fchown(file, Some(user), Some(group)).map_err(|error| error.to_string())
}

/// Sets owner and permissions of a folder.
pub(super) fn set_access(folder: &Folder, mode: u32, owner: Option<(u32, u32)>) -> io::Result<()> {
    owner.map_or(Ok(()), |owner| folder.set_owner(owner))?;
    folder.set_mode(mode)
}

/// The permissions and the owner of an existing folder.
pub(super) fn of_folder(path: &Path) -> Option<(u32, (u32, u32))> {
    let metadata = path.metadata().ok().filter(std::fs::Metadata::is_dir)?;
    Some((metadata.mode() & 0o7777, (metadata.uid(), metadata.gid())))
}

/// Whether a folder exists with these permissions and this owner.
pub(super) fn is_as_wanted(path: &Path, mode: u32, owner: Option<&str>) -> bool {
    let wanted = owner.map(owner_ids).transpose();
    let is_owner = |found| wanted.is_ok_and(|wanted| wanted.is_none_or(|wanted| wanted == found));
    of_folder(path).is_some_and(|(found_mode, found)| found_mode == mode && is_owner(found))
}

/// Makes a folder, or changes the access of an existing one. A folder of a third user stays as it is: that user could
/// replace its contents, and may need it.
pub(super) fn make_folder(path: &Path, mode: u32, owner: Option<&str>) -> Result<(), String> {
    let at_path = |error: io::Error| format!("{}: {error}", path.display());
    let wanted = owner.map(owner_ids).transpose()?;
    if let Some((_, found)) = of_folder(path) {
        let known = [0, nix::unistd::geteuid().as_raw(), wanted.map_or(0, |(user, _)| user)];
        if !known.contains(&found.0) {
            let (path, owner) = (path.display(), owner_name(found));
            return Err(format!("{path} belongs to {owner}: move it away, or `chown root {path}`"));
        }
        return Folder::open(path).and_then(|folder| set_access(&folder, mode, wanted)).map_err(at_path);
    }
    let made = Folder::open_or_make(path, 0o700);
    made.and_then(|(folder, _)| set_access(&folder, mode, wanted)).map_err(at_path)
}

/// The access of an existing folder, in words.
pub(super) fn difference(path: &Path) -> String {
    of_folder(path).map_or_else(String::new, |(mode, owner)| {
        let owner = if host::program("useradd").is_some() { owner_name(owner) } else { owner.0.to_string() };
        format!(", now {mode:04o}, {owner}")
    })
}
