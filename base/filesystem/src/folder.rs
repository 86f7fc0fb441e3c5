//! A folder that is opened once. Its files are opened by name relative to it; owners and modes change by descriptor.

use crate::regular::check;
use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{FileStat, Mode, SFlag, fchmod, fstat, fstatat, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, fchownat, linkat, unlinkat};
use nix::{fcntl::AtFlags, libc};
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Type and permissions of a file's mode.
const PERMISSIONS: u32 = 0o7777;

/// An open folder. It stays the same folder if its path later leads elsewhere.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    directory: OwnedFd,
}

impl Folder {
    /// Opens a folder. A symbolic link is followed; [`Folder::owner`] then returns the owner of its target.
    ///
    /// # Errors
    /// The folder cannot be opened, or the path is not a folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Self::open_with(path, OFlag::empty())
    }

    /// Opens the folder of a file, and returns it with the file's name.
    ///
    /// # Errors
    /// As [`Folder::open`]; or `path` does not name a file.
    pub fn of_file(path: &Path) -> io::Result<(Self, OsString)> {
        let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
        Ok((Self::open(path.parent().unwrap_or(Path::new("")))?, name.to_owned()))
    }

    /// Opens a folder, or makes it with this mode. A symbolic link is refused. Returns whether the folder is new.
    ///
    /// # Errors
    /// The folder cannot be made or opened, or the path is not a folder.
    pub fn open_or_make(path: &Path, mode: u32) -> io::Result<(Self, bool)> {
        let (parent, name) = Self::of_file(path)?;
        let is_new = match mkdirat(&parent.directory, name.as_os_str(), Mode::from_bits_truncate(0o700)) {
            Ok(()) => true,
            Err(Errno::EEXIST) => false,
            Err(errno) => return Err(errno.into()),
        };
        let folder = Self::open_with(path, OFlag::O_NOFOLLOW)?;
        if is_new {
            folder.set_mode(mode)?;
        }
        Ok((folder, is_new))
    }

    fn open_with(path: &Path, flags: OFlag) -> io::Result<Self> {
        let flags = flags | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(Self { path: path.to_owned(), directory: open(path, flags, Mode::empty())? })
    }

    /// The path with which the folder was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder's owner: user and group.
    ///
    /// # Errors
    /// The file system's.
    pub fn owner(&self) -> io::Result<(u32, u32)> {
        let status = self.status()?;
        Ok((status.st_uid, status.st_gid))
    }

    /// The folder's permissions.
    ///
    /// # Errors
    /// The file system's.
    pub fn mode(&self) -> io::Result<u32> {
        Ok(self.status()?.st_mode & PERMISSIONS)
    }

    fn status(&self) -> io::Result<FileStat> {
        Ok(fstat(&self.directory)?)
    }

    /// Sets the folder's permissions.
    ///
    /// # Errors
    /// The file system's.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        Ok(fchmod(&self.directory, Mode::from_bits_truncate(mode))?)
    }

    /// Sets the folder's owner: user and group.
    ///
    /// # Errors
    /// The file system's.
    pub fn set_owner(&self, (user, group): (u32, u32)) -> io::Result<()> {
        Ok(fchown(&self.directory, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?)
    }

    /// Opens a file for reading and writing, or makes it with this mode.
    ///
    /// # Errors
    /// The file cannot be opened or made, is not a regular file, or has a second name.
    pub fn open_or_create(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<File> {
        let flags = OFlag::O_CREAT | OFlag::O_NONBLOCK;
        let file = self.open_file(name.as_ref(), OFlag::O_RDWR | flags, mode)?;
        check(&file.metadata()?, u64::MAX)?;
        check_single_name(&file)?;
        Ok(file)
    }

    /// Makes a new file with this mode, whatever the umask.
    ///
    /// # Errors
    /// The file exists, or cannot be made.
    pub fn create_new(&self, name: impl AsRef<OsStr>, mode: u32) -> io::Result<File> {
        let file = self.open_file(name.as_ref(), OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL, 0o600)?;
        fchmod(&file, Mode::from_bits_truncate(mode))?;
        Ok(file)
    }

    fn open_file(&self, name: &OsStr, flags: OFlag, mode: u32) -> io::Result<File> {
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        match openat(&self.directory, name, flags, Mode::from_bits_truncate(mode)) {
            Ok(file) => Ok(file.into()),
            Err(Errno::ELOOP) => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link")),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Renames a file within the folder. An existing file of the new name is replaced.
    ///
    /// # Errors
    /// The file system's.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(renameat(&self.directory, from.as_ref(), &self.directory, to.as_ref())?)
    }

    /// Gives a file of this folder a second name, which must be new.
    ///
    /// # Errors
    /// There is a file of that name; or the file system's.
    pub fn link(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> io::Result<()> {
        let flags = AtFlags::empty();
        Ok(linkat(&self.directory, from.as_ref(), &self.directory, to.as_ref(), flags)?)
    }

    /// Removes a name, but not the target of a link. A missing name is not an error.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        match unlinkat(self.directory.as_fd(), name.as_ref(), UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Gives a file of this folder to a user, if the folder belongs to that user. A file in a folder of root stays as
    /// it is.
    ///
    /// # Errors
    /// The file system's; or the file has a second name by now.
    pub fn give(&self, file: &File, (user, group): (u32, u32)) -> io::Result<()> {
        if self.owner()?.0 != user {
            return Ok(());
        }
        check_single_name(file)?;
        Ok(fchown(file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?)
    }

    /// Gives a socket of this folder to another user. The socket must belong to the user of this process.
    ///
    /// # Errors
    /// The file system's; or the name is no longer that of such a socket.
    #[expect(clippy::disallowed_methods, reason = "it changes the owner of the descriptor, which has no name")]
    pub fn give_socket(&self, name: impl AsRef<OsStr>, (user, group): (u32, u32)) -> io::Result<()> {
        let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let socket = openat(&self.directory, name.as_ref(), flags, Mode::empty())?;
        let status = fstat(&socket)?;
        if !is_socket(&status) || status.st_uid != Uid::effective().as_raw() {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "another user replaced the socket"));
        }
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        Ok(fchownat(&socket, "", Some(user), Some(group), AtFlags::AT_EMPTY_PATH)?)
    }

    /// Removes the socket that an earlier process left. A missing socket is not an error.
    ///
    /// # Errors
    /// The name is that of a file that is not a socket, or the folder cannot be written.
    pub fn remove_socket(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        match fstatat(&self.directory, name.as_ref(), AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(status) if is_socket(&status) => self.remove(name),
            Ok(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "the file is not a socket")),
            Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens or makes a file that only its owner may open (mode 0600), so that no reader of the folder can lock it, and
    /// locks it. Returns `None` if another process has locked it.
    ///
    /// # Errors
    /// As [`Folder::open_or_create`].
    pub fn open_locked(&self, name: impl AsRef<OsStr>) -> io::Result<Option<LockedFile>> {
        loop {
            let file = self.open_or_create(name.as_ref(), 0o600)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The process that had locked it may have removed it in the meantime.
            let named = fstatat(&self.directory, name.as_ref(), AtFlags::AT_SYMLINK_NOFOLLOW);
            let held = fstat(&file)?;
            if named.is_ok_and(|named| (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)) {
                return Ok(Some(LockedFile(file)));
            }
        }
    }

    /// Takes a lock on a file that [`Folder::open_locked`] makes and that is removed with the lock.
    ///
    /// # Errors
    /// As [`Folder::open_locked`].
    pub fn try_lock(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Lock>> {
        let Some(file) = self.open_locked(name.as_ref())? else { return Ok(None) };
        let folder = Self { path: self.path.clone(), directory: self.directory.try_clone()? };
        Ok(Some(Lock { folder, name: name.as_ref().to_owned(), file }))
    }
}

/// A file that is locked until this is dropped.
#[derive(Debug)]
pub struct LockedFile(File);

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a program that another thread is starting: between fork and exec that
        // program has a copy of every descriptor. On an error, the lock ends when the descriptor is closed.
        let _ = self.0.unlock();
    }
}

/// A lock of [`Folder::try_lock`], held until this is dropped.
#[derive(Debug)]
pub struct Lock {
    folder: Folder,
    name: OsString,
    file: LockedFile,
}

impl Lock {
    /// The locked file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The name is removed before the file is unlocked. If that fails, the file that stays is not locked.
        let _ = self.folder.remove(&self.name);
    }
}

fn is_socket(status: &FileStat) -> bool {
    SFlag::from_bits_truncate(status.st_mode & libc::S_IFMT) == SFlag::S_IFSOCK
}

/// Refuses a file with a second name, which would be a hard link to somebody else's file.
fn check_single_name(file: &File) -> io::Result<()> {
    if fstat(file)?.st_nlink == 1 {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it has a second name (a hard link), or none"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    #[test]
    fn no_link_is_opened_created_through_or_given() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("target"), "of root").unwrap();
        symlink(path("target"), path("link")).unwrap();
        symlink(path("nowhere"), path("dangling")).unwrap();
        fs::write(path("first"), "").unwrap();
        fs::hard_link(path("first"), path("second")).unwrap();
        let folder = Folder::open(directory.path()).unwrap();
        for (name, reason) in [("link", "symbolic link"), ("dangling", "symbolic link"), ("second", "second name")] {
            assert!(folder.open_or_create(name, 0o600).unwrap_err().to_string().contains(reason), "{name}");
            assert_eq!(folder.create_new(name, 0o600).unwrap_err().kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
        assert!(folder.remove_socket("link").unwrap_err().to_string().contains("not a socket"));
        let file = folder.open_or_create("new", 0o600).unwrap();
        fs::hard_link(path("new"), path("other")).unwrap();
        let owner = folder.owner().unwrap();
        assert!(folder.give(&file, owner).unwrap_err().to_string().contains("second name"));
        assert!(!path("nowhere").exists());
    }

    #[test]
    fn a_file_in_a_folder_of_another_user_is_not_given() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::open(directory.path()).unwrap();
        let file = folder.open_or_create("file", 0o600).unwrap();
        let (user, group) = folder.owner().unwrap();
        folder.give(&file, (user + 1, group)).unwrap();
        assert_eq!(file.metadata().unwrap().uid(), user);
    }

    #[test]
    fn a_lock_is_of_one_until_it_is_dropped_even_if_a_copy_of_its_descriptor_stays_open() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::open(directory.path()).unwrap();
        let lock = folder.try_lock(".lock").unwrap().unwrap();
        let _copy = lock.file().try_clone().unwrap(); // as a forked process has it
        assert!(folder.try_lock(".lock").unwrap().is_none());
        assert_eq!(lock.file().metadata().unwrap().mode() & 0o777, 0o600);
        drop(lock);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "the file goes with the lock");
        drop(folder.try_lock(".lock").unwrap().unwrap());
        let locked = folder.open_locked("file").unwrap().unwrap();
        let _copy = locked.try_clone().unwrap();
        assert!(folder.open_locked("file").unwrap().is_none());
        drop(locked);
        assert!(folder.open_locked("file").unwrap().is_some() && directory.path().join("file").exists());
    }
}
