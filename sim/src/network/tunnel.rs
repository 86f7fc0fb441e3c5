//! What stands between the hosts and the paths: a tunnel.

use super::{Component, Network};
use crate::packet::{Direction, PacketDescriptor};
use crate::tunnel::relay::RelayEnd;
use record::{Distribution, PathSender};
use std::fmt::Debug;

/// Both ends of a tunnel. An end is named by the direction in which it sends.
pub(crate) trait Tunnel: Debug + Send {
    /// Called once, before the run.
    fn start(&mut self, network: &mut Network);

    /// A host's packet enters at an end.
    fn enter(&mut self, direction: Direction, descriptor: PacketDescriptor, network: &mut Network);

    /// A packet of the tunnel has crossed its path. Packets for hosts are added to [`Network::delivered`].
    fn receive(&mut self, descriptor: PacketDescriptor, network: &mut Network);

    /// Called at the time to which one of the tunnel's timers was set, or earlier; otherwise as [`receive`](Self::receive).
    fn wake(&mut self, timer: Component, network: &mut Network);

    /// Packets of the slab that are queued in the tunnel.
    fn queued(&self) -> u64;

    /// The record of the run.
    fn record(&self) -> record::Tunnel;

    /// The record of the sender of a path, by its number in the experiment; none if the tunnel measures none.
    fn path_record(&self, _path: usize) -> Option<PathSender> {
        None
    }

    /// The distributions of the record, each with its column.
    fn distributions(&self) -> Vec<(&'static str, &Distribution)> {
        Vec::new()
    }

    /// Why the controllers of its ends failed.
    fn controller_failures(&self) -> Vec<String> {
        Vec::new()
    }

    /// Keeps what a trace has from now on.
    fn start_trace(&mut self) {}

    /// The relay of an end, if it has one.
    fn relay(&mut self, _direction: Direction) -> Option<&mut RelayEnd> {
        None
    }

    /// Transmits what the relay of an end has offered.
    fn transmit(&mut self, _direction: Direction, _network: &mut Network) {}
}

impl Network {
    /// Calls the tunnel, if there is one, which may use the network.
    pub(crate) fn with_tunnel(&mut self, call: impl FnOnce(&mut dyn Tunnel, &mut Self)) {
        if let Some(mut tunnel) = self.tunnel.take() {
            call(&mut *tunnel, self);
            self.tunnel = Some(tunnel);
        }
    }

    /// The relay of the tunnel's end that sends in `direction`, if there is one.
    pub(crate) fn relay(&mut self, direction: Direction) -> Option<&mut RelayEnd> {
        self.tunnel.as_mut()?.relay(direction)
    }

    /// Transmits what the relay has offered at an end.
    pub(crate) fn transmit(&mut self, direction: Direction) {
        self.with_tunnel(|tunnel, network| tunnel.transmit(direction, network));
    }
}
