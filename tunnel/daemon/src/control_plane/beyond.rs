//! Checks whether the network beyond the server answers. It sends a query to a resolver there, and datagrams with a
//! small hop limit. An answer of the resolver proves that the network is reachable, and so does an ICMP error of a
//! router that is not the server.

use nix::cmsg_space;
use nix::libc;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// The time for an answer.
const TIMEOUT: Duration = Duration::from_millis(7500);
/// The time of each datagram, milliseconds, and its hop limit: the first two routers beyond the server should refuse
/// it. The gaps respect the routers' rate limit of ICMP errors (Linux: one per second, each at twice the cost).
const SCHEDULE: [(u64, Option<u32>); 5] = [(0, None), (700, Some(2)), (1400, Some(3)), (3900, None), (6400, None)];
/// A query for the name servers of the root (RFC 1035, section 4.1): recursion desired, one question, type NS, class IN.
const QUERY: [u8; 17] = [0x52, 0x57, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];
/// The port of resolvers.
const DNS_PORT: u16 = 53;

/// The parameters of the check.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The tunnel's device.
    pub device: &'a str,
    /// The source address of the query.
    pub source: IpAddr,
    /// The resolver, of the same family.
    pub resolver: IpAddr,
    /// Addresses whose answers prove nothing: the server's.
    pub server: &'a [IpAddr],
}

/// An answer from beyond the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The address of the sender.
    pub from: IpAddr,
    /// Whether that was the resolver's answer, and not an ICMP error.
    pub is_name: bool,
}

/// The answer of the resolver, or otherwise the first ICMP error from beyond the server; `None` if there was no answer.
///
/// # Errors
/// The query cannot be sent.
pub fn ask_beyond(question: &Question<'_>) -> io::Result<Option<Answer>> {
    let mut sockets = Vec::new();
    let mut schedule = SCHEDULE.into_iter().peekable();
    let mut first = None;
    let start = Instant::now();
    while start.elapsed() < TIMEOUT {
        if let Some((_, hops)) = schedule.next_if(|(at, _)| start.elapsed() >= Duration::from_millis(*at)) {
            let socket = socket(question, hops)?;
            socket.send(&QUERY)?;
            sockets.push(socket);
        }
        for answerer in sockets.iter().filter_map(|socket| answer(socket, question)) {
            if answerer.is_name {
                return Ok(Some(answerer));
            }
            first = first.or(Some(answerer));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(first)
}

/// A socket to the resolver, whose datagrams pass at most `hops` routers.
fn socket(question: &Question<'_>, hops: Option<u32>) -> io::Result<Socket> {
    let remote = SocketAddr::new(question.resolver, DNS_PORT);
    let socket = Socket::new(Domain::for_address(remote), Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    socket.bind_device(Some(question.device.as_bytes()))?;
    socket.bind(&SocketAddr::new(question.source, 0).into())?;
    if remote.is_ipv4() {
        setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?;
        hops.map_or(Ok(()), |hops| socket.set_ttl_v4(hops))?;
    } else {
        setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?;
        hops.map_or(Ok(()), |hops| socket.set_unicast_hops_v6(hops))?;
    }
    socket.connect(&remote.into())?;
    Ok(socket)
}

/// The answer to the query of a socket, if it is from beyond the server.
fn answer(socket: &Socket, question: &Question<'_>) -> Option<Answer> {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 512];
    if socket.recv(&mut buffer).is_ok() {
        return Some(Answer { from: question.resolver, is_name: true });
    }
    let is_beyond = |router: &IpAddr| *router != question.source && !question.server.contains(router);
    refusing_router(socket).filter(is_beyond).map(|from| Answer { from, is_name: false })
}

/// The sender of an ICMP error about a datagram of a socket.
fn refusing_router(socket: &Socket) -> Option<IpAddr> {
    let mut control = cmsg_space!(libc::sock_extended_err, libc::sockaddr_in6);
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut [], Some(&mut control), flags).ok()?;
    // A refusal by this host's own kernel has no offender.
    let is_icmp =
        |error: &libc::sock_extended_err| matches!(error.ee_origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6);
    message.cmsgs().ok()?.find_map(|message| match message {
        ControlMessageOwned::Ipv4RecvErr(error, Some(router)) if is_icmp(&error) => {
            Some(IpAddr::V4(Ipv4Addr::from(u32::from_be(router.sin_addr.s_addr))))
        }
        ControlMessageOwned::Ipv6RecvErr(error, Some(router)) if is_icmp(&error) => {
            Some(IpAddr::V6(Ipv6Addr::from(router.sin6_addr.s6_addr)))
        }
        _ => None,
    })
}
