//! Connections' state, asked of the kernel as `ss -i` does it, over a socket that stays open: a new process for each sample
//! would cost the place more than the traffic does.

use super::{Outcome, within};
use crate::plan::{Sample, Side, TcpInfo};
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::{Nla, TcpInfo as Info};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use std::net::SocketAddr;

/// Asks the hosts of a flow's source and of its sink.
pub(super) struct Hosts([Questioner; 2]);

/// Asks about connections of the namespace in which it was made.
struct Questioner {
    socket: Socket,
}

/// A connection's end: its own address, the other one, what the kernel knows.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) here: SocketAddr,
    pub(super) there: SocketAddr,
    pub(super) info: Info,
}

impl Hosts {
    pub(super) fn of([source, sink]: &[Side; 2]) -> Outcome<Self> {
        Ok(Self([within(&source.space, Questioner::new)?, within(&sink.space, Questioner::new)?]))
    }

    /// All that they know.
    pub(super) fn ask(&self, is_v6: bool) -> Outcome<[Vec<Connection>; 2]> {
        let [source, sink] = &self.0;
        Ok([source.ask(is_v6)?, sink.ask(is_v6)?])
    }
}

/// What is known of the source's connection that `is_it`, and of its other end.
pub(super) fn take(
    sample: &mut Sample,
    sources: &[Connection],
    sinks: &[Connection],
    is_it: impl Fn(&Connection) -> bool,
) {
    let Some(source) = sources.iter().find(|it| is_it(it)) else { return };
    sample.tcp = Some(read(&source.info));
    let other = sinks.iter().find(|it| it.here == source.there && it.there == source.here);
    sample.arrived = other.map_or(0, |it| it.info.data_segs_in);
    sample.received = other.map_or(0, |it| it.info.bytes_received);
}

impl Questioner {
    fn new() -> Outcome<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&netlink_sys::SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// All TCP connections of this IP version that are open, subflows of MPTCP among them.
    fn ask(&self, is_v6: bool) -> Outcome<Vec<Connection>> {
        self.socket.send(&question(is_v6), 0)?;
        let mut all = Vec::new();
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            let mut rest = answer.as_slice();
            while !rest.is_empty() {
                let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest)?;
                let length = (message.header.length as usize).next_multiple_of(4).clamp(4, rest.len());
                rest = &rest[length..];
                match message.payload {
                    NetlinkPayload::Done(_) => return Ok(all),
                    NetlinkPayload::Error(error) => return Err(error.to_io().into()),
                    NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(it)) => all.extend(connection(*it)),
                    _ => {}
                }
            }
        }
    }
}

fn connection(answer: InetResponse) -> Option<Connection> {
    let id = &answer.header.socket_id;
    let here = SocketAddr::new(id.source_address, id.source_port);
    let there = SocketAddr::new(id.destination_address, id.destination_port);
    answer.nlas.into_iter().find_map(|nla| match nla {
        Nla::TcpInfo(info) => Some(Connection { here, there, info }),
        _ => None,
    })
}

fn question(is_v6: bool) -> Vec<u8> {
    let (family, socket_id) = if is_v6 { (AF_INET6, SocketId::new_v6()) } else { (AF_INET, SocketId::new_v4()) };
    let request = InetRequest {
        family,
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::INFO,
        states: StateFlags::all() - StateFlags::LISTEN,
        socket_id,
    };
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    bytes
}

/// What a record needs of it.
fn read(info: &Info) -> TcpInfo {
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
