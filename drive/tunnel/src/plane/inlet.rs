//! What goes to the device.

use super::buffer::Slice;
use super::device::Device;

/// Gathers packets for the device.
#[derive(Debug, Default)]
pub(super) struct Inlet {}

impl Inlet {
    /// One packet with nothing left to do.
    pub(super) fn push(&mut self, device: &mut Device, packet: Slice) {
        device.write_plain(&packet);
    }

    /// What was gathered goes to the device.
    pub(super) fn flush(&mut self, _device: &mut Device) {}
}
