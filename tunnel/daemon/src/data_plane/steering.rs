//! Steering of datagrams to data threads: a classic BPF program at a group of sockets that share a port
//! (`SO_ATTACH_REUSEPORT_CBPF`, socket(7)), which returns the number of the socket, in the order in which they were bound.

use super::threads::MAX_THREADS;
use nix::errno::Errno;
use nix::libc::{self, sock_filter, sock_fprog};
use nix::sys::socket::setsockopt;
use nix::{setsockopt_impl, sockopt_impl};
use std::os::fd::AsFd;

sockopt_impl!(
    /// `SO_ATTACH_REUSEPORT_CBPF`.
    AttachReuseportCbpf, SetOnly, libc::SOL_SOCKET, libc::SO_ATTACH_REUSEPORT_CBPF, sock_fprog
);

const LOAD_BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const SHIFT_RIGHT: u16 = (libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
const RETURN_A: u16 = (libc::BPF_RET | 0x10) as u16;

/// The first byte of a sealed datagram, and where its session index begins (docs/reference/protocol.md, sections 2 and 4).
const SEALED: u32 = 0x30;
const SEALED_INDEX: u32 = 4;
/// The first byte of a handshake message, its type, and where a session index begins (section 3.1).
const HANDSHAKE: u32 = 0;
const MESSAGE_TYPE: u32 = 4;
const INITIATION: u32 = 1;
const HANDSHAKE_INDEX: u32 = 9;

/// Returns the four upper bits of the receiver's session index; 0 for initiations, and for datagrams of other
/// protocols. A datagram that is too short gives 0 as well (a load beyond its end). A number without a socket leaves
/// the choice to the kernel.
static PROGRAM: [sock_filter; 11] = [
    instruction(LOAD_BYTE, 0, 0, 0),
    instruction(JUMP_IF_EQUAL, 5, 0, SEALED),
    instruction(JUMP_IF_EQUAL, 0, 7, HANDSHAKE),
    instruction(LOAD_BYTE, 0, 0, MESSAGE_TYPE),
    instruction(JUMP_IF_EQUAL, 5, 0, INITIATION),
    instruction(LOAD_BYTE, 0, 0, HANDSHAKE_INDEX),
    instruction(JUMP, 0, 0, 1),
    instruction(LOAD_BYTE, 0, 0, SEALED_INDEX),
    instruction(SHIFT_RIGHT, 0, 0, 4),
    instruction(RETURN_A, 0, 0, 0),
    instruction(RETURN, 0, 0, 0),
];

const _: () = assert!(MAX_THREADS <= 1 << 4);

const fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Attaches the program to the group of a bound socket.
///
/// # Errors
/// The kernel's: before Linux 4.5 there is no such option.
pub(super) fn attach(socket: &impl AsFd) -> Result<(), Errno> {
    let program = sock_fprog { len: PROGRAM.len() as u16, filter: PROGRAM.as_ptr().cast_mut() };
    setsockopt(socket, AttachReuseportCbpf, &program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Protocol, Socket, Type};
    use std::net::{SocketAddr, UdpSocket};
    use testing::eventually;

    /// Sockets that share a port, in the order of their threads.
    fn group(threads: usize) -> Vec<UdpSocket> {
        let mut address = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut sockets: Vec<UdpSocket> = Vec::new();
        for _ in 0..threads {
            let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP)).unwrap();
            socket.set_reuse_port(true).unwrap();
            socket.bind(&address.into()).unwrap();
            attach(&socket).unwrap();
            let socket = UdpSocket::from(socket);
            address = socket.local_addr().unwrap();
            socket.set_nonblocking(true).unwrap();
            sockets.push(socket);
        }
        sockets
    }

    fn sealed(index: u32) -> Vec<u8> {
        wire::gre::Sealed { session: index, path: 3, packet_number: 7 }.to_bytes().to_vec()
    }

    fn handshake(message_type: u8, len: usize, index: u32) -> Vec<u8> {
        let mut message = vec![0, 0, 0x88, 0xb6, message_type, seal::VERSION, 0, 0];
        message.extend(index.to_be_bytes());
        message.resize(len, 0x5a);
        message
    }

    #[test]
    fn the_kernel_brings_every_datagram_to_the_thread_of_its_session() {
        let sockets = group(4);
        let address = sockets[0].local_addr().unwrap();
        let mut expected: Vec<Vec<Vec<u8>>> = vec![Vec::new(); 4];
        // Several sources, as the kernel would choose by their hash.
        for source in 0..8_u32 {
            let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
            for thread in 0..4_u32 {
                let index = thread << 20 | source << 8 | 0xff;
                let steered = [
                    sealed(index),
                    handshake(2, seal::RESPONSE_LEN, index),
                    handshake(3, seal::COOKIE_REPLY_LEN, index),
                ];
                for datagram in steered {
                    assert_eq!(seal::owner(&datagram), Some(thread as u8));
                    expected[thread as usize].push(datagram);
                }
                let initiation = handshake(1, seal::INITIATION_LEN, index);
                assert_eq!(seal::owner(&initiation), None);
                expected[0].push(initiation);
            }
            // Datagrams of other protocols, and truncated ones, go to the first socket.
            expected[0].extend([vec![0x45; 40], vec![0x30, 0, 0x88], vec![0], vec![0, 0, 0x88, 0xb6, 2]]);
            for (thread, datagrams) in expected.iter_mut().enumerate() {
                for datagram in &*datagrams {
                    sender.send_to(datagram, address).unwrap();
                }
                let mut buffer = [0; 256];
                for datagram in datagrams.drain(..) {
                    let mut len = None;
                    let arrived = eventually(|| {
                        len = sockets[thread].recv(&mut buffer).ok();
                        len.is_some()
                    });
                    assert!(arrived, "thread {thread}");
                    assert_eq!(&buffer[..len.unwrap()], datagram, "thread {thread}");
                }
            }
        }
        assert!(sockets.iter().all(|socket| socket.recv(&mut [0; 16]).is_err()), "each arrived once");
    }

    #[test]
    fn a_thread_that_does_not_exist_leaves_the_choice_to_the_kernel() {
        let sockets = group(2);
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.send_to(&sealed(0xf0_0000), sockets[0].local_addr().unwrap()).unwrap();
        assert!(eventually(|| sockets.iter().any(|socket| socket.recv(&mut [0; 16]).is_ok())));
    }
}
