//! The memory of this kernel for the headers of a packet (`MAX_TCP_HEADER`), which its configuration decides.

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Possible values: whole cache lines.
const CANDIDATES: [u32; 5] = [128, 192, 256, 320, 384];
/// Memory of `skb_shared_info`, bytes.
const SHARED_INFO: u32 = 320;
/// The memory of a segment is rounded up to a power of two, bytes.
const POWER: u32 = 1024;

/// Measures it: the first send buffer of a connection jumps where MSS, headers and `skb_shared_info` exceed a power of two.
pub(super) fn measure() -> io::Result<u32> {
    for candidate in CANDIDATES {
        let largest = POWER - SHARED_INFO - candidate;
        if send_buffer(largest)? < send_buffer(largest + 1)? {
            return Ok(candidate);
        }
    }
    Err(io::Error::other("the send buffer grows at none of the expected sizes of a segment"))
}

/// The send buffer of a new connection whose ends offer this MSS, bytes.
fn send_buffer(mss: u32) -> io::Result<usize> {
    let socket = || -> io::Result<Socket> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_tcp_mss(mss)?;
        Ok(socket)
    };
    let (server, client) = (socket()?, socket()?);
    server.bind(&SockAddr::from(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)))?;
    server.listen(1)?;
    client.connect(&server.local_addr()?)?;
    client.send_buffer_size()
}
