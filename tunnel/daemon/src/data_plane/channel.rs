//! Commands from the control thread to the data thread: a queue, and an eventfd that wakes the event loop.

use super::config::{Error, Update};
use super::report::Report;
use ipnet::IpNet;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryIter};

/// A command to a running data plane. Closures run on the data thread, so they should only hand their argument over.
pub enum Command {
    /// End the event loop.
    Stop,
    /// Pass all counters to this closure.
    Report(Box<dyn FnOnce(Report) + Send>),
    /// Netlink reported a change of a network device.
    Link {
        /// The device's name.
        device: String,
        /// The change.
        event: LinkEvent,
        /// Called after the sockets have followed the change: they are opened in the order of the threads.
        next: Option<Box<dyn FnOnce() + Send>>,
    },
    /// In `mpt` mode, accept packets of these inner networks from the peer. The closure is called when it is done.
    AllowedIps(Vec<IpNet>, Box<dyn FnOnce() + Send>),
    /// In `ropewalk` mode, apply a changed configuration, all or nothing. The closure gets the names of the sockets that wait for their
    /// device, or the reason why nothing changed.
    Update(Box<Update>, Box<dyn FnOnce(Result<Vec<String>, Error>) + Send>),
    /// Of several data threads: check whether [`Command::Update`] can be applied, and close the sockets that it replaces, so
    /// that the threads open theirs in order. Nothing is closed if it cannot.
    Prepare(Arc<Update>, Box<dyn FnOnce(Result<(), Error>) + Send>),
    /// Open the sockets that are closed.
    Reopen,
}

/// A change of a network device that sockets may be bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The device is up and has a carrier.
    Up,
    /// The device is there, but down or without a carrier.
    Down,
    /// The device was removed.
    Removed,
    /// The device has a new address.
    AddressAdded,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stop => f.write_str("Stop"),
            Self::Report(_) => f.write_str("Report"),
            Self::Link { device, event, .. } => write!(f, "Link {{ device: {device}, event: {event:?} }}"),
            Self::Prepare(update, _) => write!(f, "Prepare {update:?}"),
            Self::Reopen => f.write_str("Reopen"),
            Self::AllowedIps(networks, _) => write!(f, "AllowedIps({networks:?})"),
            Self::Update(update, _) => write!(f, "{update:?}"),
        }
    }
}

/// The control thread's end of the channel.
#[derive(Clone, Debug)]
pub struct CommandSender {
    commands: Sender<Command>,
    wakeup: Arc<EventFd>,
}

/// The data thread's end of the channel.
#[derive(Debug)]
pub struct CommandReceiver {
    commands: Receiver<Command>,
    wakeup: Arc<EventFd>,
}

/// A new channel.
///
/// # Errors
/// No file descriptor is left.
pub fn channel() -> io::Result<(CommandSender, CommandReceiver)> {
    let (sender, commands) = mpsc::channel();
    let wakeup = Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?);
    Ok((CommandSender { commands: sender, wakeup: Arc::clone(&wakeup) }, CommandReceiver { commands, wakeup }))
}

impl CommandSender {
    /// Sends a command. False if the data thread has ended.
    pub fn send(&self, command: Command) -> bool {
        self.commands.send(command).is_ok() && self.wakeup.write(1).is_ok()
    }
}

impl CommandReceiver {
    /// All commands that are queued. Clears the eventfd.
    pub(super) fn drain(&self) -> TryIter<'_, Command> {
        // An eventfd that is not readable is not an error: the queue is read in any case.
        let _ = self.wakeup.read();
        self.commands.try_iter()
    }
}

impl AsFd for CommandReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }
}
