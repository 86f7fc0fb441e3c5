//! A network device whose other end is this process.

use crate::namespace::within;
use std::error::Error;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;
/// Frames that wait for us to read them: 30 ms of full packets at 400 Mbit/s.
const BACKLOG: u32 = 1000;

/// A TAP device. It has no offloads: what the host sends into it arrives here packet by packet, checksummed.
pub(super) struct Tap(SyncDevice);

impl Tap {
    /// Makes the device `name` in a namespace; it lives as long as this value.
    pub(super) fn create(namespace: &str, name: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let device = within(namespace, || {
            let device = DeviceBuilder::new().name(name).layer(Layer::L2).tx_queue_len(BACKLOG).build_sync()?;
            device.set_nonblocking(true)?;
            Ok(device)
        });
        device.map(Self).map_err(|why| format!("no device {name} in {namespace}: {why}").into())
    }

    /// A frame that the host has sent, `None` if there is none or the device is down.
    pub(super) fn receive(&self, room: &mut [u8]) -> Result<Option<usize>, std::io::Error> {
        loop {
            match self.0.recv(room) {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) if is_down(&why) => return Ok(None),
                Err(why) => return Err(why),
            }
        }
    }

    /// Gives the host a frame; one that it does not take, because its device is down or full, is lost.
    pub(super) fn send(&self, frame: &[u8]) {
        let _ = self.0.send(frame);
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Nothing there; or a device that is down, which answers EIO.
fn is_down(why: &std::io::Error) -> bool {
    why.kind() == ErrorKind::WouldBlock || why.raw_os_error() == Some(nix::libc::EIO)
}
