//! What the control thread asks of the data plane.

use crate::config::Config;
use crate::plane::Link;
use crate::status::Status;

/// Takes what came of a change: the paths that wait for their device, or why all is as it was.
pub type Answer = Box<dyn FnOnce(Result<Vec<String>, String>) + Send>;

/// The data plane as the control thread sees it. Every call returns at once: it hands over, and wakes.
pub trait DataPlane: Send + Sync + 'static {
    /// The set-up is done and this thread has given its privileges up: the data thread does so too, and begins.
    fn start(&self);
    /// Asks for the numbers of this moment; `answer` runs on the data thread and only hands them over. False if the data
    /// plane is gone.
    fn ask(&self, answer: Box<dyn FnOnce(Status) + Send>) -> bool;
    /// Goes over to a configuration that differs from the present one in nothing that needs a restart: all or nothing.
    /// Nobody answers if the data plane is gone.
    fn change(&self, wanted: &Config, answer: Answer);
    /// Something happened to a device of the system, which paths may be bound to.
    fn link(&self, device: &str, link: Link);
    /// Tells the peers, and ends.
    fn stop(&self);
}
