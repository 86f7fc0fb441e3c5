//! The batch of packets to be written to the TUN device. Consecutive packets of one flow are merged into super-packets,
//! as GRO does, so that the host's network stack handles them at once.

use super::buffer::BufferSlice;
use super::device::{Device, WriteOutcome};
use std::io::IoSlice;
use wire::coalesce::{Coalescer, MAX_PACKETS};

/// Maximum number of packets gathered before they are written.
const MAX_GATHERED: usize = 4 * MAX_PACKETS;

/// Packets gathered for the device.
#[derive(Debug)]
pub(super) struct ReceiveBatch {
    packets: Vec<BufferSlice>,
    coalescer: Coalescer,
}

impl ReceiveBatch {
    /// An empty batch for `device`.
    pub(super) fn new(device: &Device) -> Self {
        Self { packets: Vec::with_capacity(MAX_GATHERED), coalescer: coalescer(device) }
    }

    /// Adds a whole packet with a complete checksum.
    pub(super) fn push(&mut self, device: &mut Device, packet: BufferSlice) {
        self.packets.push(packet);
        if self.packets.len() == MAX_GATHERED {
            self.flush(device);
        }
    }

    /// Writes everything to the device.
    pub(super) fn flush(&mut self, device: &mut Device) {
        let mut start = 0;
        while start < self.packets.len() {
            let count = self.coalescer.coalesce(&self.packets[start..]);
            let run = &self.packets[start..start + count];
            if let [packet] = run {
                device.write_packet(packet);
            } else if write(device, &self.coalescer, run) == WriteOutcome::NeedsSegmentation {
                run.iter().for_each(|packet| device.write_packet(packet));
                self.coalescer = coalescer(device);
            }
            start += count;
        }
        self.packets.clear();
    }
}

fn coalescer(device: &Device) -> Coalescer {
    Coalescer::new(device.accepts_tcp(), device.accepts_udp())
}

fn write(device: &mut Device, coalescer: &Coalescer, run: &[BufferSlice]) -> WriteOutcome {
    let mut parts = [IoSlice::new(&[]); 1 + MAX_PACKETS];
    parts[0] = IoSlice::new(coalescer.header());
    for (part, packet) in parts[1..].iter_mut().zip(run) {
        *part = IoSlice::new(&packet[coalescer.skip()..]);
    }
    device.write_super_packet(&parts[..=run.len()])
}
