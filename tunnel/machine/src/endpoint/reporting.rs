//! Status and self-check of an endpoint.

use super::{Endpoint, TunnelPath};
use crate::packet::Payload;
use crate::status::EndpointStatus;

impl<P: Payload> Endpoint<P> {
    /// Measurements and counters.
    #[must_use]
    pub fn status(&self) -> EndpointStatus {
        let paths = || self.paths.iter().flatten();
        EndpointStatus {
            counters: self.counters,
            paths: paths().map(TunnelPath::status).collect(),
            ingress_backlog_packets: self.ingress.packet_count,
            ingress_backlog_bytes: self.ingress.bytes,
            fragments_in_flight: self.fragments.next_number() - self.fragments.base,
            reorder_fragments: self.reorder.buffered,
            reorder_memory: self.reorder.memory,
            reorder_timeout: self.reorder.config.timeout,
            fragment_size: self.fragment_size().unwrap_or(0),
            controller_failure: self.controller_failure().map(str::to_owned),
        }
    }

    /// Checks the charged memory and the counts of held fragments by counting again.
    ///
    /// # Panics
    /// If the sums differ, or exceed the options.
    #[doc(hidden)]
    pub fn check(&self) {
        self.reorder.check();
        self.ingress.check();
        self.fragments.check();
    }
}
