//! How the control thread talks to the data thread: a queue of commands, and an eventfd that wakes the loop.

use super::report::Report;
use super::setup::{Error, Update};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryIter};

/// What the data plane can be told while it runs.
pub enum Command {
    /// Leave the loop.
    Stop,
    /// Tell all numbers to this closure. It runs on the data thread, so it only hands them over.
    Report(Box<dyn FnOnce(Report) + Send>),
    /// What netlink says of a device of the system.
    Link {
        /// Its name.
        device: String,
        /// How it is.
        link: Link,
    },
    /// A person takes a path out of use, or puts it back.
    Path {
        /// Index of the path.
        path: usize,
        /// Whether it may be used.
        enabled: bool,
    },
    /// Become this, all of it or nothing. The closure runs on the data thread: it learns which sockets wait for their
    /// device, or why all is as it was.
    Update(Box<Update>, Box<dyn FnOnce(Result<Vec<String>, Error>) + Send>),
}

/// How a device is that sockets may be bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Packets pass.
    Up,
    /// It is there, and none pass.
    Down,
    /// It is not there any more.
    Gone,
    /// It has another address.
    Addressed,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stop => f.write_str("Stop"),
            Self::Report(_) => f.write_str("Report"),
            Self::Link { device, link } => write!(f, "Link {{ device: {device}, link: {link:?} }}"),
            Self::Update(update, _) => write!(f, "{update:?}"),
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
