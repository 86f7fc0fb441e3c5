//! The TUN device: packets and super-packets of the host, each with its virtio-net header.
//!
//! With segmentation offload (`IFF_VNET_HDR` and `TUNSETOFFLOAD`) the host hands over TCP segments of up to 64 KiB uncut,
//! and takes such ones. UDP super-packets need Linux 6.2, which is probed. Without offload every packet is whole and has
//! no header. Some stable kernels refused valid super-packets with EINVAL; where that happens, none is written any more.

use super::report::DeviceReport;
use super::setup::{DeviceSetup, Error};
use nix::errno::Errno;
use nix::sys::uio::{readv, writev};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, SyncDevice};
use wire::offload::{Cut, Kind};

/// Bytes of a virtio-net header (`struct virtio_net_hdr`, version 0).
pub(super) const HEADER: usize = 10;
/// Nothing to be done: neither checksum nor segmentation.
const PLAIN: [u8; HEADER] = [0; HEADER];
/// Packets that wait in the kernel until we read them. Super-packets count as one.
const QUEUE: u32 = 1000;

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The host has it, or it was dropped and counted.
    Done,
    /// The host takes no super-packets, now or from now on: it must be cut.
    Cut,
}

/// The TUN device.
pub(super) struct Device {
    tun: SyncDevice,
    has_header: bool,
    /// What was counted.
    pub(super) report: DeviceReport,
}

impl Device {
    /// Makes the device, or attaches to it if it is there and nobody has it, and brings it up. It has no addresses yet.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(super) fn open(setup: &DeviceSetup) -> Result<Self, Error> {
        let build = |offload: bool| {
            let builder = DeviceBuilder::new().name(&setup.name).mtu(setup.mtu).tx_queue_len(QUEUE);
            builder.offload(offload).build_sync()
        };
        let fail = |error| Error::new(format!("TUN device {}", setup.name), error);
        let (tun, has_header) = match setup.offload.then(|| build(true)) {
            Some(Ok(tun)) => (tun, true),
            // Privileges are missing or the name is taken: the same without offload.
            _ => (build(false).map_err(fail)?, false),
        };
        tun.set_nonblocking(true).map_err(fail)?;
        let (tcp_offload, udp_offload) = (has_header && tun.tcp_gso(), has_header && tun.udp_gso());
        let report = DeviceReport { tcp_offload, udp_offload, ..DeviceReport::default() };
        Ok(Self { tun, has_header, report })
    }

    /// Whether what is read begins with a virtio-net header.
    pub(super) fn has_header(&self) -> bool {
        self.has_header
    }

    /// Whether such a super-packet can be written.
    pub(super) fn takes(&self, cut: Option<Cut>) -> bool {
        cut.is_some_and(|cut| if cut.kind == Kind::Udp { self.takes_udp() } else { self.takes_tcp() })
    }

    /// Whether super-packets of TCP can be written.
    pub(super) fn takes_tcp(&self) -> bool {
        self.report.tcp_offload
    }

    /// Whether super-packets of UDP can be written.
    pub(super) fn takes_udp(&self) -> bool {
        self.report.udp_offload
    }

    /// Reads a virtio-net header and a packet, without offload the packet alone. `None` if nothing is there.
    ///
    /// # Errors
    /// The device is gone.
    pub(super) fn read(&mut self, into: &mut [u8]) -> Result<Option<usize>, Errno> {
        loop {
            match readv(&self.tun, &mut [IoSliceMut::new(into)]) {
                Ok(len) => {
                    self.report.read.add(1, len - self.header_len());
                    return Ok(Some(len));
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(errno) => return Err(errno),
            }
        }
    }

    fn header_len(&self) -> usize {
        if self.has_header { HEADER } else { 0 }
    }

    /// Writes one packet that lies in `parts`, with nothing left to be done to it.
    pub(super) fn write_plain(&mut self, packet: &[u8]) {
        let parts = [IoSlice::new(&PLAIN), IoSlice::new(packet)];
        let parts = if self.has_header { &parts[..] } else { &parts[1..] };
        if self.write(parts).is_err() {
            self.report.refused += 1;
        }
    }

    /// Writes one super-packet (or one with a checksum to be completed) that lies in `parts`, the first of which begins
    /// with its virtio-net header.
    pub(super) fn write_super(&mut self, parts: &[IoSlice<'_>]) -> Written {
        if !self.has_header {
            return Written::Cut;
        }
        match self.write(parts) {
            Ok(()) => Written::Done,
            Err(Errno::EINVAL) => {
                (self.report.tcp_offload, self.report.udp_offload) = (false, false);
                Written::Cut
            }
            Err(_) => {
                self.report.refused += 1;
                Written::Done
            }
        }
    }

    fn write(&mut self, parts: &[IoSlice<'_>]) -> Result<(), Errno> {
        loop {
            match writev(&self.tun, parts) {
                Ok(len) => {
                    self.report.written.add(1, len - self.header_len());
                    return Ok(());
                }
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
