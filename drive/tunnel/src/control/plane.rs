//! What the control thread asks of the data plane.

use crate::config::Change;
use crate::status::Status;

/// The data plane as the control thread sees it. Every call returns at once: it hands over, and wakes.
pub trait DataPlane: Send + Sync + 'static {
    /// The set-up is done and this thread has given its privileges up: the data thread does so too, and begins.
    fn start(&self);
    /// Asks for the numbers of this moment; `answer` runs on the data thread and only hands them over. False if the data
    /// plane is gone.
    fn ask(&self, answer: Box<dyn FnOnce(Status) + Send>) -> bool;
    /// Whether it can carry out this step of a changed configuration while it runs.
    ///
    /// # Errors
    /// Why not, in words for people.
    fn check(&self, change: &Change) -> Result<(), String>;
    /// Carries out a step that it [can](Self::check).
    fn change(&self, change: &Change);
    /// A device of the system, which paths may be bound to, went up or down.
    fn link(&self, device: &str, up: bool);
    /// Tells the peers, and ends.
    fn stop(&self);
}
