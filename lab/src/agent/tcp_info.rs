//! Connections' state, asked of the kernel as `ss -i` does it, over a socket that stays open: a new process for each sample
//! would cost the place more than the traffic does.

use super::{Outcome, within};
use crate::plan::{Sample, Side, TcpInfo};
use netlink_packet_core::{
    DefaultNla, NLA_TYPE_MASK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload, Nla as _,
    NlasIterator,
};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::{Nla, TcpInfo as Info};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponse, SocketId, StateFlags};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use std::io::ErrorKind;
use std::net::SocketAddr;

/// `INET_DIAG_ULP_INFO`, `INET_ULP_INFO_MPTCP` and `MPTCP_SUBFLOW_ATTR_TOKEN_LOC` of the kernel's `inet_diag.h` and `mptcp.h`.
const ULP_INFO: u16 = 19;
const ULP_INFO_MPTCP: u16 = 3;
const SUBFLOW_TOKEN_LOCAL: u16 = 2;

/// `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY` of its `sock_diag.h`.
const DESTROYED: [u32; 2] = [1, 3];

/// Asks the hosts of a flow's source and of its sink.
pub(super) struct Hosts([Questioner; 2]);

/// Asks about connections of the namespace in which it was made.
struct Questioner {
    socket: Socket,
    /// The kernel sends there what it knew of connections that are gone.
    last_words: Option<Socket>,
    gone: Vec<Connection>,
}

/// A connection's end: its own address, the other one, what the kernel knows.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) here: SocketAddr,
    pub(super) there: SocketAddr,
    pub(super) info: Info,
    /// All subflows of an MPTCP connection have the same, while they are open.
    pub(super) token: Option<u32>,
}

impl Hosts {
    pub(super) fn of(sides: &[Side; 2]) -> Outcome<Self> {
        Self::with(sides, Questioner::new)
    }

    /// They also tell of connections that are gone.
    pub(super) fn that_remember(sides: &[Side; 2]) -> Outcome<Self> {
        Self::with(sides, || Questioner::new()?.remembering())
    }

    fn with([source, sink]: &[Side; 2], new: fn() -> Outcome<Questioner>) -> Outcome<Self> {
        Ok(Self([within(&source.space, new)?, within(&sink.space, new)?]))
    }

    /// All that they know.
    pub(super) fn ask(&mut self, is_v6: bool) -> Outcome<[Vec<Connection>; 2]> {
        let [source, sink] = &mut self.0;
        Ok([source.ask(is_v6)?, sink.ask(is_v6)?])
    }
}

impl Connection {
    /// What is known of a source's connection, and of its other end, one of `sinks`.
    pub(super) fn sample(&self, sinks: &[Self]) -> Sample {
        let other = sinks.iter().find(|it| it.here == self.there && it.there == self.here);
        Sample {
            tcp: Some(read(&self.info)),
            arrived: other.map_or(0, |it| it.info.data_segs_in),
            received: other.map_or(0, |it| it.info.bytes_received),
            ..Sample::default()
        }
    }
}

impl Questioner {
    fn new() -> Outcome<Self> {
        let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
        socket.bind_auto()?;
        socket.connect(&netlink_sys::SocketAddr::new(0, 0))?;
        Ok(Self { socket, last_words: None, gone: Vec::new() })
    }

    fn remembering(self) -> Outcome<Self> {
        let mut last_words = Socket::new(NETLINK_SOCK_DIAG)?;
        last_words.bind_auto()?;
        last_words.set_non_blocking(true)?;
        DESTROYED.iter().try_for_each(|group| last_words.add_membership(*group))?;
        Ok(Self { last_words: Some(last_words), ..self })
    }

    /// All TCP connections of this IP version that are open, subflows of MPTCP among them; then, as they ended, all that it
    /// remembers.
    fn ask(&mut self, is_v6: bool) -> Outcome<Vec<Connection>> {
        self.socket.send(&question(is_v6), 0)?;
        let mut all = Vec::new();
        while !read_into(&mut all, &self.socket.recv_from_full()?.0)? {}
        while let Some(last_words) = &self.last_words {
            match last_words.recv_from_full() {
                Ok((words, _)) => read_into(&mut self.gone, &words)?,
                Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                Err(why) => return Err(why.into()),
            };
        }
        all.extend(self.gone.iter().cloned());
        Ok(all)
    }
}

/// Adds the connections in a datagram; whether it was the last one.
fn read_into(all: &mut Vec<Connection>, datagram: &[u8]) -> Outcome<bool> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest)?;
        let length = (message.header.length as usize).next_multiple_of(4).clamp(4, rest.len());
        rest = &rest[length..];
        match message.payload {
            NetlinkPayload::Done(_) => return Ok(true),
            NetlinkPayload::Error(error) => return Err(error.to_io().into()),
            NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(it)) => all.extend(connection(*it)),
            _ => {}
        }
    }
    Ok(false)
}

fn connection(answer: InetResponse) -> Option<Connection> {
    let id = &answer.header.socket_id;
    let here = SocketAddr::new(id.source_address, id.source_port);
    let there = SocketAddr::new(id.destination_address, id.destination_port);
    let token = answer.nlas.iter().find_map(|nla| match nla {
        Nla::Other(other) if other.kind() == ULP_INFO => token(other),
        _ => None,
    });
    answer.nlas.into_iter().find_map(|nla| match nla {
        // One without another end has only listened.
        Nla::TcpInfo(info) if there.port() != 0 => Some(Connection { here, there, info, token }),
        _ => None,
    })
}

/// The host's own token, in what a subflow of MPTCP tells of itself.
fn token(ulp: &DefaultNla) -> Option<u32> {
    let mut value = vec![0; ulp.value_len()];
    ulp.emit_value(&mut value);
    let inside = |bytes: &[u8], kind: u16| {
        let found = NlasIterator::new(bytes).flatten().find(|it| it.kind() & NLA_TYPE_MASK == kind);
        found.map(|it| it.value().to_vec())
    };
    let token = inside(&inside(&value, ULP_INFO_MPTCP)?, SUBFLOW_TOKEN_LOCAL)?;
    Some(u32::from_ne_bytes(token.try_into().ok()?))
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
