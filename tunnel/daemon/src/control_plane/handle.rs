//! The control thread's interface to the data plane.

use crate::config::TunnelConfig;
use crate::data_plane::LinkEvent;
use crate::status::TunnelStatus;

/// Gets the result of a change: the paths that wait for their device, or why nothing changed.
pub type ChangeReply = Box<dyn FnOnce(Result<Vec<String>, String>) + Send>;

/// A handle to the data thread. Every call returns at once: it queues a command and wakes the thread.
pub trait DataPlaneHandle: Send + Sync + 'static {
    /// The set-up is done and this thread has dropped its privileges: the data thread does the same and starts.
    fn start(&self);
    /// Requests the status; `reply` runs on the data thread. False if the data thread has ended.
    fn request_status(&self, reply: Box<dyn FnOnce(TunnelStatus) + Send>) -> bool;
    /// Applies a configuration whose changes need no restart, all or nothing. `reply` is dropped if the data thread has ended.
    fn change(&self, new: &TunnelConfig, reply: ChangeReply);
    /// Passes on a change of a network device.
    fn link(&self, device: &str, event: LinkEvent);
    /// Tells the peers and ends the data thread.
    fn stop(&self);
}
