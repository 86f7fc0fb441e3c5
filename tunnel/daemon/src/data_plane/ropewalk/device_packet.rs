//! The processing of a packet from the device, up to the peer's endpoint.

use super::RopewalkEngine;
use super::hand_over::Owner;
use super::packet::PacketSlice;
use super::relay::Steered;
use crate::data_plane::event_loop::Io;
use crate::data_plane::threads::HandOver;
use units::Instant;
use wire::delivery;
use wire::inner::{Inner, mss, protocol};
use wire::virtio::VirtioNetHeader;

impl RopewalkEngine {
    /// Handles a packet of the device in `io.read_buffer`. If `from_queue`, a packet that belongs to another thread is
    /// handed over; otherwise this one was handed over already.
    pub(super) fn offer_device_packet(&mut self, io: &mut Io, now: Instant, len: usize, from_queue: bool) {
        let Io { device, pool, read_buffer, .. } = io;
        let skip = if device.has_header() { VirtioNetHeader::LEN } else { 0 };
        let offload = if skip > 0 {
            VirtioNetHeader::parse(&read_buffer[..len]).map(|parsed| parsed.0)
        } else {
            Ok(VirtioNetHeader::default())
        };
        let parsed = offload.and_then(|offload| Ok((offload, Inner::parse(&read_buffer[skip..len])?)));
        let Ok((offload, inner)) = parsed else {
            device.report.malformed += 1;
            return;
        };
        let steered = self.relay.steer(device, &mut read_buffer[..len], &inner);
        if matches!(steered, Steered::Handled) {
            return;
        }
        let owner = self.allowed_ips.find(inner.destination);
        if let (Some(Owner::Thread(thread)), Some(others), true) = (owner, &mut self.others, from_queue) {
            return others.hand_over(thread, HandOver::Packet(read_buffer[..len].to_vec()));
        }
        let peer_id = owner.and_then(|owner| owner.peer(&self.groups));
        let Some((id, peer)) = peer_id.and_then(|id| Some((id, self.peers.get_mut(&id)?))) else {
            device.report.unrouted += 1;
            return;
        };
        if !self.node.has_session(id) {
            peer.no_session += 1;
            return;
        }
        if inner.protocol == protocol::TCP {
            mss::clamp(&mut read_buffer[skip..len], self.mtu, offload.checksum.is_some());
        }
        if let Steered::InitialSyn(addresses) = steered
            && self.relay.hold(now, id, &mut peer.relay, addresses, &read_buffer[..len])
        {
            return;
        }
        let Ok(needs_header) = delivery::prepare(&offload, &mut read_buffer[skip..len]) else {
            device.report.malformed += 1;
            return;
        };
        let Some(bytes) = pool.freeze(read_buffer, len) else { return };
        let start = if needs_header { 0 } else { skip };
        let bytes = bytes.slice(start as u32, len as u32);
        self.node.offer(now, id, self.streams.stream(&inner), PacketSlice::new(bytes, needs_header, inner.tos));
    }
}
