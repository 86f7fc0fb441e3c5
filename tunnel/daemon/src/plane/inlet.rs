//! What goes to the device: packets of one flow that follow each other are merged into super-packets, so that the host's
//! stack is entered once for all of them.
//!
//! Packets gather until the turn ends, or until so many are there that a run can hardly get longer.

use super::buffer::Slice;
use super::device::{Device, Written};
use std::io::IoSlice;
use wire::coalesce::{MOST_PACKETS, Merger};

/// So many packets go to the device at once; longer runs are cut here.
const MOST_GATHERED: usize = 4 * MOST_PACKETS;

/// Gathers packets for the device.
#[derive(Debug)]
pub(super) struct Inlet {
    packets: Vec<Slice>,
    merger: Merger,
}

impl Inlet {
    /// For this device.
    pub(super) fn new(device: &Device) -> Self {
        Self { packets: Vec::with_capacity(MOST_GATHERED), merger: merger(device) }
    }

    /// One packet with nothing left to do.
    pub(super) fn push(&mut self, device: &mut Device, packet: Slice) {
        self.packets.push(packet);
        if self.packets.len() == MOST_GATHERED {
            self.flush(device);
        }
    }

    /// What was gathered goes to the device.
    pub(super) fn flush(&mut self, device: &mut Device) {
        let mut at = 0;
        while at < self.packets.len() {
            let count = self.merger.take(&self.packets[at..]);
            let run = &self.packets[at..at + count];
            if let [packet] = run {
                device.write_plain(packet);
            } else if write(device, &self.merger, run) == Written::Cut {
                // From now on the device takes no super-packets: the same packets go one by one.
                self.merger = merger(device);
                continue;
            }
            at += count;
        }
        self.packets.clear();
    }
}

fn merger(device: &Device) -> Merger {
    Merger::new(device.takes_tcp(), device.takes_udp())
}

fn write(device: &mut Device, merger: &Merger, run: &[Slice]) -> Written {
    let mut parts = [IoSlice::new(&[]); 1 + MOST_PACKETS];
    parts[0] = IoSlice::new(merger.head());
    for (part, packet) in parts[1..].iter_mut().zip(run) {
        *part = IoSlice::new(&packet[merger.skip()..]);
    }
    device.write_super(&parts[..=run.len()])
}
