//! A connection's state, asked of the kernel as `ss -i` does it, over a socket that stays open: a new process for each
//! sample would cost the guest more than the traffic does.

use super::Outcome;
use crate::plan::TcpInfo;
use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::{Nla, TcpInfo as Info};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use std::net::SocketAddr;

/// Asks about connections of the namespace in which it was made.
pub(super) struct Questioner {
    socket: Socket,
}

impl Questioner {
    pub(super) fn new() -> Outcome<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&netlink_sys::SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// The state of the connection's end `here`; none if it has gone.
    pub(super) fn ask(&self, here: SocketAddr, there: SocketAddr) -> Outcome<Option<Info>> {
        self.socket.send(&question(here, there), 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        let answer = NetlinkMessage::<SockDiagMessage>::deserialize(&answer)?;
        let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(answer)) = answer.payload else {
            return Ok(None);
        };
        Ok(answer.nlas.into_iter().find_map(|nla| match nla {
            Nla::TcpInfo(info) => Some(info),
            _ => None,
        }))
    }
}

fn question(here: SocketAddr, there: SocketAddr) -> Vec<u8> {
    let socket_id = SocketId {
        source_port: here.port(),
        destination_port: there.port(),
        source_address: here.ip(),
        destination_address: there.ip(),
        interface_id: 0,
        cookie: [0xff; 8], // any
    };
    let request = InetRequest {
        family: AF_INET,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::INFO,
        states: StateFlags::all(),
        socket_id,
    };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// What a record needs of it.
pub(super) fn read(info: &Info) -> TcpInfo {
    TcpInfo {
        window: info.snd_cwnd,
        threshold: info.snd_ssthresh,
        rtt: info.rtt,
        min_rtt: info.min_rtt,
        // As `tcp_packets_in_flight` counts.
        in_flight: (info.unacked + info.retrans).saturating_sub(info.sacked + info.lost),
        sent: info.data_segs_out,
        retransmitted: info.total_retrans,
        pacing_rate: info.pacing_rate,
        delivery_rate: info.delivery_rate,
        state: info.ca_state,
        receive_window_limited: info.rwnd_limited,
        send_buffer_limited: info.sndbuf_limited,
    }
}
