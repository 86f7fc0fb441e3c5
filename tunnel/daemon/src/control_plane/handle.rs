//! The control thread's interface to the data plane.

use crate::config::TunnelConfig;
use crate::data_plane::LinkEvent;
use crate::status::TunnelStatus;
use std::collections::BTreeSet;

/// The closure that gets the result of a change: the paths that wait for their device, or why nothing changed.
pub type ChangeReply = Box<dyn FnOnce(Result<Vec<String>, String>) + Send>;

/// Builds the status from the report of the data threads, off the data thread: it takes milliseconds with a thousand
/// peers, and no packet should wait for it. `None` only if this program panicked.
pub type PendingStatus = Box<dyn FnOnce() -> Option<TunnelStatus> + Send>;

/// The closure that gets the status; it runs on the data thread.
pub type StatusReply = Box<dyn FnOnce(PendingStatus) + Send>;

/// A path that does not answer: the peer's public key, and the path's name.
pub type SilentPath = (String, String);

/// The closure that gets the changes after names were resolved again, one line per endpoint.
pub type ResolveReply = Box<dyn FnOnce(Vec<String>) + Send>;

/// A handle to the data thread. Every call returns at once: it queues a command and wakes the thread.
pub trait DataPlaneHandle: Send + Sync + 'static {
    /// Lets the data thread drop its privileges and start, after the setup and after this thread has dropped its own.
    fn start(&self);
    /// Requests the status. False if the data thread has ended.
    fn request_status(&self, reply: StatusReply) -> bool;
    /// Applies a configuration whose changes need no restart, all or nothing. `reply` is dropped if the data thread has
    /// ended.
    fn change(&self, config: &TunnelConfig, reply: ChangeReply);
    /// Looks up the endpoints that have no address and those of `silent` paths again, on a thread of its own. Silent paths go
    /// on to the next address, if there is one; all others stay as they are. `reply` is dropped if the data thread has
    /// ended.
    fn resolve(&self, silent: BTreeSet<SilentPath>, reply: ResolveReply);
    /// Reports a change of a network device.
    fn on_link_event(&self, device: &str, event: LinkEvent);
    /// Announces the end of the tunnel to the peers and ends the data thread.
    fn stop(&self);
}
