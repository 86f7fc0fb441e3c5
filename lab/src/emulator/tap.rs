//! TAP devices.

use crate::namespace::within;
use std::error::Error;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;
/// Length of the device's queue, frames: 30 ms of full packets at 400 Mbit/s.
const BACKLOG: u32 = 1000;

/// A TAP device without offloads: frames arrive packet by packet, checksummed.
pub(super) struct Tap(SyncDevice);

impl Tap {
    /// Makes the device `name` in a namespace; it is removed when this value is dropped.
    pub(super) fn create(namespace: &str, name: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let device = within(namespace, || {
            let device = DeviceBuilder::new().name(name).layer(Layer::L2).tx_queue_len(BACKLOG).build_sync()?;
            device.set_nonblocking(true)?;
            Ok(device)
        });
        device.map(Self).map_err(|error| format!("no device {name} in {namespace}: {error}").into())
    }

    /// A frame that the host has sent, `None` if there is none or the device is down.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Result<Option<usize>, std::io::Error> {
        loop {
            match self.0.recv(buffer) {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_down(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a frame to the host; it is lost if the device is down or full.
    pub(super) fn send(&self, frame: &[u8]) {
        let _ = self.0.send(frame);
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Whether there is no frame, or the device is down (EIO).
fn is_down(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock || error.raw_os_error() == Some(nix::libc::EIO)
}
