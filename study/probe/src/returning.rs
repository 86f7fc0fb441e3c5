//! A UDP socket that answers from the address to which a datagram came. A host with several addresses would otherwise answer
//! from the one that its route prefers, and the client would take the answer for a stranger's.

use nix::cmsg_space;
use nix::libc::{in_pktinfo, in6_pktinfo};
use nix::sys::socket::sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

/// Where a datagram came from, and to which address.
#[derive(Debug)]
pub(crate) struct Return {
    client: SockaddrStorage,
    own: Option<Own>,
}

#[derive(Debug)]
enum Own {
    V4(in_pktinfo),
    V6(in6_pktinfo),
}

/// Asks the kernel for the addresses to which datagrams come.
pub(crate) fn prepare(socket: &UdpSocket) -> io::Result<()> {
    match socket.local_addr()?.is_ipv6() {
        true => Ok(setsockopt(socket, Ipv6RecvPacketInfo, &true)?),
        false => Ok(setsockopt(socket, Ipv4PacketInfo, &true)?),
    }
}

/// Receives one datagram.
pub(crate) fn receive(socket: &UdpSocket, bytes: &mut [u8]) -> io::Result<(usize, Return)> {
    let mut control = cmsg_space!(in6_pktinfo);
    let mut parts = [IoSliceMut::new(bytes)];
    let received = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
    let own = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::Ipv4PacketInfo(info) => Some(Own::V4(info)),
        ControlMessageOwned::Ipv6PacketInfo(info) => Some(Own::V6(info)),
        _ => None,
    });
    let client = received.address.ok_or(io::ErrorKind::InvalidData)?;
    Ok((received.bytes, Return { client, own }))
}

impl Return {
    /// Sends a datagram back. The kernel chooses the device by its routes.
    pub(crate) fn send(&self, socket: &UdpSocket, bytes: &[u8]) -> io::Result<()> {
        let parts = [IoSlice::new(bytes)];
        let send = |control: &[ControlMessage<'_>]| {
            sendmsg(socket.as_raw_fd(), &parts, control, MsgFlags::empty(), Some(&self.client))
        };
        let sent = match self.own {
            Some(Own::V4(info)) => send(&[ControlMessage::Ipv4PacketInfo(&in_pktinfo { ipi_ifindex: 0, ..info })]),
            Some(Own::V6(info)) => {
                // A link-local address needs its device.
                let ipi6_ifindex =
                    if info.ipi6_addr.s6_addr.starts_with(&[0xfe, 0x80]) { info.ipi6_ifindex } else { 0 };
                send(&[ControlMessage::Ipv6PacketInfo(&in6_pktinfo { ipi6_ifindex, ..info })])
            }
            None => send(&[]),
        };
        Ok(sent.map(drop)?)
    }
}
