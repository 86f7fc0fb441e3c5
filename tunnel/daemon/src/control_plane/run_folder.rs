//! The directory of sockets and state files, `/run/ropewalk`.
//!
//! A daemon that starts as root changes to another user after its setup, and that user must not be able to manipulate
//! the next start. So root keeps the directory, no name in it is opened through a symbolic link, and files opened for
//! writing are always new ones. After the change the daemon writes its state file by the open descriptor. The next
//! start removes the names that the daemon may no longer remove.

use filesystem::Folder;
use nix::unistd::{Uid, User, geteuid};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::net::UnixListener;
use std::path::Path;

/// The directory of sockets and state files.
pub const RUNTIME_DIRECTORY: &str = "/run/ropewalk";
/// Write permission of group and others.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// The mode of a tunnel's sockets: for their owner and its group.
const SOCKET_MODE: u32 = 0o660;

/// The directory, open.
#[derive(Debug)]
pub struct RunFolder(Folder);

impl RunFolder {
    /// Opens the directory; creates it with mode 0755 if there is none.
    ///
    /// # Errors
    /// It cannot be created or opened, it is a symbolic link, or users other than root and this one may write it.
    pub fn open(path: &Path) -> io::Result<Self> {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        let (folder, _) = Folder::open_or_make(path, 0o755)?;
        check_owner(&folder)?;
        Ok(Self(folder))
    }

    /// Creates a file with mode 0644, and replaces an existing one.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        self.remove(name)?;
        self.0.create_new(name, 0o644)
    }

    /// Listens on a socket with mode 0660, of `owner` if one is given; a file of that name is replaced.
    ///
    /// # Errors
    /// The directory cannot be written, or its path is too long for a socket.
    pub(super) fn listen(&self, name: &str, owner: Option<&User>) -> io::Result<UnixListener> {
        self.remove(name)?;
        listen(&self.0, name, owner)
    }

    /// Removes a name, not the target of a link; a missing name is not an error.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        let with_path =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", self.path().join(name).display()));
        self.0.remove(name).map_err(with_path)
    }

    /// The path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Listens on a new socket of a folder, which its owner and its group may open from the first moment on.
///
/// # Errors
/// The folder cannot be written, its path is too long for a socket, it has a file of that name, or another writer of
/// the folder replaced the socket.
pub(super) fn listen(folder: &Folder, name: impl AsRef<OsStr>, owner: Option<&User>) -> io::Result<UnixListener> {
    use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket};
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    // The file that `bind` makes has the mode of the socket (unix(7)), without the bits of the umask.
    nix::sys::stat::fchmod(&socket, nix::sys::stat::Mode::from_bits_truncate(SOCKET_MODE))?;
    bind(std::os::fd::AsRawFd::as_raw_fd(&socket), &UnixAddr::new(&folder.path().join(name.as_ref()))?)?;
    if let Some(user) = owner {
        folder.give_socket(name, (user.uid.as_raw(), user.gid.as_raw()))?;
    }
    // Nobody can connect before this.
    listen(&socket, Backlog::new(128)?)?;
    Ok(socket.into())
}

/// Checks that root or this user owns the directory (root, if this is root), and that nobody else may write it.
fn check_owner(folder: &Folder) -> io::Result<()> {
    let (path, owner, mode) = (folder.path().display(), Uid::from_raw(folder.owner()?.0), folder.mode()?);
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
