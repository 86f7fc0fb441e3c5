//! A flow's traffic, whoever makes it.

mod own;
mod tool;

use super::{Outcome, enter, within};
use crate::plan::Traffic;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A flow under way, or about to be.
pub(super) trait Flow {
    /// The flow connects at `start`, which is yet to come.
    fn begin(&self, start: Instant) -> Outcome<()>;

    /// The source's end of the connection that carries the data, once it is known. Of MPTCP: of its first subflow.
    fn source(&self) -> Option<SocketAddr>;

    /// Bytes that the sink has read, if it tells; while it does not, the kernel's count has to do.
    fn delivered(&self) -> Option<u64>;

    /// When a flow of a size was done, from its start.
    fn completion(&self) -> Option<Duration>;

    /// There will be no more.
    fn has_ended(&self) -> bool;

    /// The source writes no more.
    fn stop(&self);

    /// The run is over. Comes back when the flow no longer needs the network; tells what went wrong with it.
    fn finish(&self) -> Outcome<()>;
}

/// A flow that is ready to begin.
pub(super) fn open(traffic: &Traffic) -> Outcome<Box<dyn Flow>> {
    Ok(match &traffic.tool {
        None => Box::new(own::Own::new(traffic)),
        Some(tool) => Box::new(tool::Tool::open(traffic, tool)?),
    })
}
