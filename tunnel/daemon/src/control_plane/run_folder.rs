//! The directory of sockets and state files, `/run/ropewalk`.
//!
//! A daemon that starts as root changes to another user after its set-up, and that user must not lead the next start
//! astray. So the directory stays root's, no name in it is opened through a symbolic link, and files are new when they are
//! opened for writing. After the change the daemon writes its state file by the descriptor that it has; the names that
//! it may no longer remove are left to the next start.

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, fchmod, fstat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, User, fchownat, geteuid, mkdir, unlinkat};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The directory of sockets and state files.
pub const RUNTIME_DIRECTORY: &str = "/run/ropewalk";
/// Write permission of group and others.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The directory, open.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    directory: OwnedFd,
}

impl RunFolder {
    /// Opens the directory; creates it with mode 0755 if there is none.
    ///
    /// # Errors
    /// It cannot be created or opened, it is a symbolic link, or users other than root and this one may write it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mode = Mode::from_bits_truncate(0o755);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let is_new = match mkdir(path, mode) {
            Ok(()) => true,
            Err(Errno::EEXIST) => false,
            Err(errno) => return Err(errno.into()),
        };
        let flags = OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let directory = open(path, flags, Mode::empty())?;
        if is_new {
            // The umask may have taken some of it.
            fchmod(&directory, mode)?;
        }
        check_owner(path, &fstat(&directory)?)?;
        Ok(Self { path: path.to_owned(), directory })
    }

    /// Creates a file with mode 0644; one of that name is replaced.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        self.remove(name)?;
        let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
        let file = openat(&self.directory, name, flags, Mode::from_bits_truncate(0o600))?;
        fchmod(&file, Mode::from_bits_truncate(0o644))?;
        Ok(file.into())
    }

    /// Listens on a socket with mode 0660, of `owner` if one is given; a file of that name is replaced.
    ///
    /// # Errors
    /// The directory cannot be written, or its path is too long for a socket.
    pub(super) fn listen(&self, name: &str, owner: Option<&User>) -> io::Result<UnixListener> {
        use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
        self.remove(name)?;
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        // The file that `bind` makes has the mode of the socket (unix(7)), less the umask's.
        fchmod(&socket, Mode::from_bits_truncate(0o660))?;
        bind(std::os::fd::AsRawFd::as_raw_fd(&socket), &UnixAddr::new(&self.path.join(name))?)?;
        if let Some(user) = owner {
            self.change_owner(name, user.uid, user.gid)?;
        }
        listen(&socket, Backlog::new(128)?)?;
        Ok(socket.into())
    }

    fn change_owner(&self, name: &str, user: Uid, group: Gid) -> io::Result<()> {
        Ok(fchownat(&self.directory, name, Some(user), Some(group), AtFlags::AT_SYMLINK_NOFOLLOW)?)
    }

    /// Removes a name, not what it may link to; a missing one is no error.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match unlinkat(self.directory.as_fd(), name, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(io::Error::new(
                io::Error::from(errno).kind(),
                format!("{}: {}", self.path.join(name).display(), io::Error::from(errno)),
            )),
        }
    }

    /// The path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Whether root or this user owns the directory (root, if this is root), and nobody else may write it.
fn check_owner(path: &Path, status: &FileStat) -> io::Result<()> {
    let (path, owner, mode) = (path.display(), Uid::from_raw(status.st_uid), status.st_mode & 0o7777);
    let remedy = format!("chown root: {path}; chmod 755 {path}; or name another directory in ROPEWALK_RUN");
    let reason = if !owner.is_root() && owner != geteuid() {
        let name = User::from_uid(owner).ok().flatten().map_or_else(|| owner.to_string(), |user| user.name);
        format!("{path} belongs to {name}, who could replace the files in it")
    } else if mode & WRITABLE_BY_OTHERS != 0 {
        format!("{path} has mode {mode:o}, so that others could replace the files in it")
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{reason}: {remedy}")))
}
