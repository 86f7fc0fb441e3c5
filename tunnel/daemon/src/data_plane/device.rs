//! The TUN device: packets and super-packets of the host, each behind a virtio-net header.
//!
//! With segmentation offload (`IFF_VNET_HDR` and `TUNSETOFFLOAD`) the host hands over TCP super-packets of up to 64
//! KiB, and accepts such segments. UDP super-packets need Linux 6.2, which is probed. Without offload packets have no
//! header and are never larger than the MTU. A super-packet that the kernel refuses with EINVAL is segmented. Some stable
//! kernels refuse valid ones: then a probe of our own is refused as well, and super-packets of that protocol are no
//! longer written.

use super::config::{DeviceConfig, Error};
use super::report::DeviceReport;
use nix::errno::Errno;
use nix::sys::uio::{readv, writev};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, SyncDevice};
use wire::virtio::{self, Gso, GsoType, VirtioNetHeader};

/// Bytes of a virtio-net header (`struct virtio_net_hdr`, version 0).
pub(super) const HEADER_LEN: usize = 10;
/// The header of a packet that needs neither a checksum nor segmentation.
const NO_OFFLOAD: [u8; HEADER_LEN] = [0; HEADER_LEN];
/// The device's transmit queue, packets (`txqueuelen`). A super-packet counts as one.
const TX_QUEUE_LEN: u32 = 1000;

/// The result of writing a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    /// Written, or dropped and counted.
    Written,
    /// The kernel refused it, or the device takes no virtio-net header: the packet must be segmented.
    NeedsSegmentation,
}

/// The TUN device.
pub(super) struct Device {
    tun: SyncDevice,
    name: String,
    has_header: bool,
    /// Counters.
    pub(super) report: DeviceReport,
}

impl Device {
    /// Creates the device, or attaches to an existing one that no process uses, and brings it up, without addresses.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open(config: &DeviceConfig) -> Result<Self, Error> {
        let mut queues = Self::open_queues(config, 1)?;
        queues.pop().ok_or_else(|| Error::config(format!("TUN device {}: it has no queue", config.name)))
    }

    /// As [`Self::open`], with several queues (`IFF_MULTI_QUEUE`) if `count` is more than one.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn open_queues(config: &DeviceConfig, count: usize) -> Result<Vec<Self>, Error> {
        let build = |offload: bool| {
            let builder = DeviceBuilder::new().name(&config.name).mtu(config.mtu).tx_queue_len(TX_QUEUE_LEN);
            builder.offload(offload).multi_queue(count > 1).build_sync()
        };
        let to_error = |error| Error::new(format!("TUN device {}", config.name), error);
        let (tun, has_header) = match config.offload.then(|| build(true)) {
            Some(Ok(tun)) => (tun, true),
            // If privileges are missing or the name is in use, this fails as well.
            _ => (build(false).map_err(to_error)?, false),
        };
        let mut queues = vec![tun];
        while queues.len() < count {
            queues.push(queues[0].try_clone().map_err(to_error)?);
        }
        let queue = |tun: SyncDevice| {
            tun.set_nonblocking(true).map_err(to_error)?;
            let (tcp_offload, udp_offload) = (has_header && tun.tcp_gso(), has_header && tun.udp_gso());
            let report = DeviceReport { tcp_offload, udp_offload, ..DeviceReport::default() };
            Ok(Self { tun, name: config.name.clone(), has_header, report })
        };
        queues.into_iter().map(queue).collect()
    }

    /// The name, as in `ip link`.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether packets begin with a virtio-net header.
    pub(super) fn has_header(&self) -> bool {
        self.has_header
    }

    /// Whether TCP super-packets can be written.
    pub(super) fn accepts_tcp(&self) -> bool {
        self.report.tcp_offload
    }

    /// Whether UDP super-packets can be written.
    pub(super) fn accepts_udp(&self) -> bool {
        self.report.udp_offload
    }

    /// Reads a virtio-net header and a packet, without offload the packet alone. `None` if the queue is empty.
    ///
    /// # Errors
    /// The device was removed.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, Errno> {
        loop {
            match readv(&self.tun, &mut [IoSliceMut::new(buffer)]) {
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
        if self.has_header { HEADER_LEN } else { 0 }
    }

    /// Writes one packet with a complete checksum.
    pub(super) fn write_packet(&mut self, packet: &[u8]) {
        let parts = [IoSlice::new(&NO_OFFLOAD), IoSlice::new(packet)];
        let parts = if self.has_header { &parts[..] } else { &parts[1..] };
        if self.write(parts).is_err() {
            self.report.write_errors += 1;
        }
    }

    /// Writes a super-packet, or a packet whose checksum is to be completed. `parts` are its bytes, which begin with a
    /// virtio-net header.
    pub(super) fn write_super_packet(&mut self, parts: &[IoSlice<'_>]) -> WriteOutcome {
        if !self.has_header {
            return WriteOutcome::NeedsSegmentation;
        }
        match self.write(parts) {
            Ok(()) => WriteOutcome::Written,
            Err(Errno::EINVAL) => {
                self.report.refused_super_packets += 1;
                self.probe(parts.first().map_or(&[], |part| part));
                WriteOutcome::NeedsSegmentation
            }
            Err(_) => {
                self.report.write_errors += 1;
                WriteOutcome::Written
            }
        }
    }

    /// Finds out whether the kernel refuses every super-packet like `refused`, or only this one.
    fn probe(&mut self, refused: &[u8]) {
        let Ok((VirtioNetHeader { gso: Some(gso), .. }, _)) = VirtioNetHeader::parse(refused) else { return };
        let is_tcp = gso.gso_type != GsoType::UdpL4;
        if writev(&self.tun, &[IoSlice::new(&virtio::probe(is_tcp))]) == Err(Errno::EINVAL) {
            *if is_tcp { &mut self.report.tcp_offload } else { &mut self.report.udp_offload } = false;
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

impl wire::delivery::Device for Device {
    fn has_header(&self) -> bool {
        self.has_header
    }

    fn accepts(&self, gso: Gso) -> bool {
        if gso.gso_type == GsoType::UdpL4 { self.accepts_udp() } else { self.accepts_tcp() }
    }

    fn write_packet(&mut self, packet: &[u8]) {
        self.write_packet(packet);
    }

    fn write_super_packet(&mut self, bytes: &[u8]) -> bool {
        self.write_super_packet(&[IoSlice::new(bytes)]) == WriteOutcome::Written
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CloneFlags, unshare};
    use testing::{Reason, skip};

    /// A device in a network namespace of its own; `None`, and the test is skipped, without root.
    fn device() -> Option<Device> {
        if unshare(CloneFlags::CLONE_NEWNET).is_err() {
            skip(Reason::Missing, "a network namespace needs root");
            return None;
        }
        Some(Device::open(&DeviceConfig { name: "rw0".into(), mtu: 1500, offload: true }).expect("root may open it"))
    }

    #[test]
    fn a_super_packet_that_the_kernel_refuses_stops_no_others() {
        let Some(mut device) = device() else { return };
        assert!(device.accepts_tcp());
        let valid = [true, false].map(virtio::probe);
        for valid in valid {
            let is_tcp = valid[1] == 1;
            let mut refused = valid.clone();
            refused[2..4].copy_from_slice(&[0xff, 0xff]);
            let accepted = (device.accepts_tcp(), device.accepts_udp());
            assert_eq!(device.write_super_packet(&[IoSlice::new(&refused)]), WriteOutcome::NeedsSegmentation);
            assert_eq!((device.accepts_tcp(), device.accepts_udp()), accepted, "TCP: {is_tcp}");
            if is_tcp || device.accepts_udp() {
                assert_eq!(device.write_super_packet(&[IoSlice::new(&valid)]), WriteOutcome::Written);
            }
        }
        assert_eq!((device.report.refused_super_packets, device.report.write_errors), (2, 0));
    }
}
