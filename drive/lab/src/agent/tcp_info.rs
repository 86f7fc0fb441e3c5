//! A connection's state, asked of the kernel as `ss -i` does it, over a socket that stays open: a new process for each
//! sample would cost the guest more than the traffic does.

use super::Outcome;
use crate::layout::PORT;
use crate::plan::TcpInfo;
use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::Nla;
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use netlink_sys::{Socket, SocketAddr};
use std::net::Ipv4Addr;

/// Asks about connections of the namespace in which it was made.
pub(super) struct Questioner {
    socket: Socket,
    addresses: [Ipv4Addr; 2],
}

impl Questioner {
    pub(super) fn new(addresses: [Ipv4Addr; 2]) -> Outcome<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, addresses })
    }

    /// The state of the connection from `port`; none if it has gone.
    pub(super) fn ask(&self, port: u16) -> Outcome<Option<TcpInfo>> {
        self.socket.send(&self.question(port), 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        let answer = NetlinkMessage::<SockDiagMessage>::deserialize(&answer)?;
        let NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(answer)) = answer.payload else {
            return Ok(None);
        };
        Ok(answer.nlas.iter().find_map(|nla| match nla {
            Nla::TcpInfo(info) => Some(read(info)),
            _ => None,
        }))
    }

    fn question(&self, port: u16) -> Vec<u8> {
        let [source, sink] = self.addresses;
        let socket_id = SocketId {
            source_port: port,
            destination_port: PORT,
            source_address: source.into(),
            destination_address: sink.into(),
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
}

fn read(info: &netlink_packet_sock_diag::inet::nlas::TcpInfo) -> TcpInfo {
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
