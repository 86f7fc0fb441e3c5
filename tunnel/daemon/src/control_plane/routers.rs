//! Finds the first routers on the path to a peer: each returns an ICMP error for a datagram whose hop limit ends there.

use super::diagnosis::Subject;
use nix::cmsg_space;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt::Ipv4RecvErr};
use socket2::Socket;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;

/// Number of routers to find: those of a home, and the first one of its provider.
const COUNT: u32 = 3;

/// The sockets of the datagrams to the first routers, by hop limit.
pub(super) struct RouterProbes(Vec<Socket>);

impl RouterProbes {
    /// Sends the datagrams by IPv4; over IPv6 nothing is translated.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn send(subject: &Subject) -> io::Result<Self> {
        let hops = (1..=COUNT).filter(|_| subject.remote.is_ipv4());
        let probe = |hops: u32| {
            let socket = subject.socket()?;
            setsockopt(&socket, Ipv4RecvErr, &true)?;
            socket.set_ttl_v4(hops)?;
            socket.connect(&subject.remote.into())?;
            socket.send(&[])?;
            Ok(socket)
        };
        hops.map(probe).collect::<io::Result<_>>().map(Self)
    }

    /// The routers that have answered so far, the nearest first.
    pub(super) fn answers(&self) -> Vec<IpAddr> {
        self.0.iter().filter_map(expired_at).collect()
    }
}

/// The router at which a datagram of a socket could go no further (ICMP time exceeded).
fn expired_at(socket: &Socket) -> Option<IpAddr> {
    let mut control = cmsg_space!(libc::sock_extended_err, libc::sockaddr_in);
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<SockaddrIn>(socket.as_raw_fd(), &mut [], Some(&mut control), flags).ok()?;
    message.cmsgs().ok()?.find_map(|message| match message {
        ControlMessageOwned::Ipv4RecvErr(error, Some(router)) if error.ee_errno == libc::EHOSTUNREACH as u32 => {
            Some(IpAddr::V4(Ipv4Addr::from(u32::from_be(router.sin_addr.s_addr))))
        }
        _ => None,
    })
}
