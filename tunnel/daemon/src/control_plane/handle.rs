//! The control thread's interface to the data plane.

use crate::config::TunnelConfig;
use crate::data_plane::LinkEvent;
use crate::status::TunnelStatus;

/// The closure that gets the result of a change: the paths that wait for their device, or why nothing changed.
pub type ChangeReply = Box<dyn FnOnce(Result<Vec<String>, String>) + Send>;

/// A handle to the data thread. Every call returns at once: it queues a command and wakes the thread.
pub trait DataPlaneHandle: Send + Sync + 'static {
    /// Lets the data thread drop its privileges and start, after the set-up and after this thread has dropped its own.
    fn start(&self);
    /// Requests the status; `reply` runs on the data thread. False if the data thread has ended.
    fn request_status(&self, reply: Box<dyn FnOnce(TunnelStatus) + Send>) -> bool;
    /// Applies a configuration whose changes need no restart, all or nothing. `reply` is dropped if the data thread has
    /// ended.
    fn change(&self, config: &TunnelConfig, reply: ChangeReply);
    /// Reports a change of a network device.
    fn on_link_event(&self, device: &str, event: LinkEvent);
    /// Announces the end to the peers and ends the data thread.
    fn stop(&self);
}
