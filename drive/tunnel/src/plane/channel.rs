//! How the control thread talks to the data thread: a queue of commands, and an eventfd that wakes the loop.

use super::report::Report;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryIter};

/// What the data plane can be told while it runs.
pub enum Command {
    /// Leave the loop.
    Stop,
    /// Tell all numbers to this closure. It runs on the data thread, so it only hands them over.
    Report(Box<dyn FnOnce(Report) + Send>),
    /// A socket's interface went up or down, as netlink says.
    Link {
        /// Index of the socket.
        socket: usize,
        /// Whether the link works.
        up: bool,
    },
    /// A person takes a path out of use, or puts it back.
    Path {
        /// Index of the path.
        path: usize,
        /// Whether it may be used.
        enabled: bool,
    },
    /// A peer has other networks from now on. In `mpt` mode everything goes to the one peer.
    Networks {
        /// Index of the peer.
        peer: usize,
        /// Inner networks that are its own: address and prefix length.
        networks: Vec<(IpAddr, u8)>,
    },
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stop => f.write_str("Stop"),
            Self::Report(_) => f.write_str("Report"),
            Self::Link { socket, up } => write!(f, "Link {{ socket: {socket}, up: {up} }}"),
            Self::Networks { peer, networks } => write!(f, "Networks {{ peer: {peer}, networks: {networks:?} }}"),
            Self::Path { path, enabled } => write!(f, "Path {{ path: {path}, enabled: {enabled} }}"),
        }
    }
}

/// The control thread's end.
#[derive(Clone, Debug)]
pub struct Commander {
    commands: Sender<Command>,
    wake: Arc<EventFd>,
}

/// The data thread's end.
#[derive(Debug)]
pub struct Inbox {
    commands: Receiver<Command>,
    wake: Arc<EventFd>,
}

/// Both ends.
///
/// # Errors
/// No file descriptor is left.
pub fn channel() -> io::Result<(Commander, Inbox)> {
    let (sender, commands) = mpsc::channel();
    let wake = Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?);
    Ok((Commander { commands: sender, wake: Arc::clone(&wake) }, Inbox { commands, wake }))
}

impl Commander {
    /// Hands a command over. False if the data plane is gone.
    pub fn send(&self, command: Command) -> bool {
        self.commands.send(command).is_ok() && self.wake.write(1).is_ok()
    }
}

impl Inbox {
    /// What has come; the descriptor is quiet until more does.
    pub(super) fn drain(&self) -> TryIter<'_, Command> {
        // Not readable means nobody woke us: the queue is looked at all the same.
        let _ = self.wake.read();
        self.commands.try_iter()
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
