//! A connection on which the kernel sends: the peer's side of it, and the recording.

use super::Outcome;
use super::clock::Clock;
use super::packet::{ACK, CWR, ECE, KernelPacket, PeerPacket, RST, SYN};
use super::player::{Conversation, Ends};
use super::stamps::Stamps;
use replay::{Layout, PeerAck, Played, Recording, Script, Sent, SentKind, State};
use sock_diag::SockDiag;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::thread::{self, JoinHandle};
use tun_rs::SyncDevice;

/// The peer's port, and its first sequence number.
const PORT: u16 = 5001;
const PEER_ISS: u32 = 1000;
/// The peer's window scale.
const SCALE: u8 = 7;
/// Bytes of TCP's timestamps, which the MSS includes.
const TIMESTAMPS: u32 = 12;

/// The next step of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Connect,
    SynAck,
    Ack(usize),
    End,
}

pub(super) struct Sending<'a> {
    script: &'a Script,
    layout: Layout,
    clock: Clock,
    /// The instant of the script's zero.
    zero_ns: u64,
    peer: Ipv4Addr,
    next: Next,
    socket: Option<Socket>,
    /// Returns the times of its writes.
    writer: Option<JoinHandle<Vec<u64>>>,
    local: SocketAddrV4,
    /// The kernel's first sequence number.
    iss: u32,
    /// The highest byte that was sent, and the highest byte that was acknowledged.
    sent_end: u64,
    acknowledged: u64,
    stamps: Stamps,
    recording: Recording,
    played: Played,
}

impl<'a> Conversation<'a> for Sending<'a> {
    type Script = Script;
    type Recording = Recording;

    fn times_us(script: &Script) -> [u64; 2] {
        [script.setup.tick_us, script.setup.connect_us]
    }

    fn setting(script: &Script) -> (&'static str, String) {
        let send_buffer = script.setup.send_buffer;
        let initial = send_buffer.min(16 << 10);
        ("tcp_wmem", format!("4096 {initial} {send_buffer}"))
    }

    fn device(script: &Script) -> usize {
        usize::from(!script.setup.tso)
    }

    fn new(script: &'a Script, clock: Clock, zero_ns: u64, ends: Ends) -> Self {
        Self {
            script,
            layout: Layout::new(script),
            clock,
            zero_ns,
            peer: ends.peer,
            next: Next::Connect,
            socket: None,
            writer: None,
            local: SocketAddrV4::new(ends.local, 0),
            iss: 0,
            sent_end: 0,
            acknowledged: 0,
            stamps: Stamps::default(),
            recording: Recording::default(),
            played: Played::default(),
        }
    }

    fn due_ns(&self) -> u64 {
        let setup = &self.script.setup;
        let at_us = match self.next {
            Next::Connect => setup.connect_us,
            Next::SynAck => setup.established_us,
            Next::Ack(index) => self.script.acks[index].at_us,
            Next::End => self.script.end_us,
        };
        self.zero_ns + at_us * 1000
    }

    fn take(&mut self, now_ns: u64, packet: &KernelPacket) {
        let at_us = now_ns.saturating_sub(self.zero_ns) / 1000;
        if packet.flags & SYN != 0 {
            self.iss = packet.seq;
            self.local.set_port(packet.source_port);
        }
        if let Some(tsval) = packet.tsval {
            self.stamps.add(at_us, tsval);
        }
        if packet.flags & (SYN | RST) == 0 && self.next != Next::SynAck {
            self.record(at_us, packet);
        }
    }

    fn step(&mut self, device: &SyncDevice, diag: &mut SockDiag) -> Outcome<bool> {
        if self.next == Next::Connect {
            return self.connect().map(|()| false);
        }
        let is_acknowledging = matches!(self.next, Next::Ack(_));
        let before = if is_acknowledging { self.state(diag)? } else { State::default() };
        let (packet, is_last) = self.next_packet();
        let at_us = self.script_us();
        device.send(&packet)?;
        if is_acknowledging {
            let after = self.state(diag)?;
            self.played.acks_us.push(at_us);
            self.acknowledged([before, after]);
        } else if !is_last {
            self.played.handshake_us[1] = at_us;
            self.begin_writing()?;
        }
        Ok(is_last)
    }

    fn finish(mut self) -> Recording {
        if let Some(writer) = self.writer.take() {
            self.played.writes_us = writer.join().unwrap_or_default();
        }
        self.recording.played = Some(self.played);
        let end_us = self.script.end_us;
        self.recording.sent.retain(|sent| sent.at_us < end_us);
        self.recording
    }
}

impl Sending<'_> {
    /// Now, microseconds since the script's zero.
    fn script_us(&self) -> u64 {
        self.clock.now_ns().saturating_sub(self.zero_ns) / 1000
    }

    fn record(&mut self, at_us: u64, packet: &KernelPacket) {
        // The first byte has the number after the SYN's; what precedes it is the probe of an empty connection.
        let relative = i64::from(packet.seq.wrapping_sub(self.iss.wrapping_add(1)).cast_signed());
        let cwr = packet.flags & CWR != 0;
        if packet.payload == 0 {
            if relative == self.acknowledged.cast_signed() - 1 {
                let seq = self.layout.segment_at(self.acknowledged);
                self.recording.sent.push(Sent { at_us, seq, bytes: 0, kind: SentKind::Probe, cwr });
            }
            return;
        }
        let start = relative.max(0).cast_unsigned();
        let kind = if start < self.sent_end { SentKind::Retransmission } else { SentKind::New };
        self.sent_end = self.sent_end.max(start + u64::from(packet.payload));
        let seq = self.layout.segment_at(start);
        self.recording.sent.push(Sent { at_us, seq, bytes: packet.payload, kind, cwr });
    }

    /// Connects. The SYN is handled by [`take`](Self::take).
    fn connect(&mut self) -> Outcome<()> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        let name = &self.script.setup.congestion;
        let set = socket.set_tcp_congestion(name.as_bytes());
        set.map_err(|error| format!("no congestion control {name}: {error}"))?;
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        self.played.handshake_us[0] = self.script_us();
        match socket.connect(&SockAddr::from(SocketAddrV4::new(self.peer, PORT))) {
            Err(error) if error.raw_os_error() != Some(nix::libc::EINPROGRESS) => return Err(error.into()),
            _ => {}
        }
        self.socket = Some(socket);
        self.next = Next::SynAck;
        Ok(())
    }

    /// The peer's next packet, and whether it is the last one.
    fn next_packet(&mut self) -> (Vec<u8>, bool) {
        let late_us = self.clock.now_ns().saturating_sub(self.due_ns()) / 1000;
        self.recording.late_us = self.recording.late_us.max(late_us);
        let ack = self.iss.wrapping_add(1);
        let packet = match self.next {
            Next::Ack(index) => self.acknowledgement(&self.script.acks[index]),
            Next::End => PeerPacket { flags: RST, seq: PEER_ISS + 1, ..PeerPacket::default() },
            Next::Connect | Next::SynAck => self.syn_ack(ack),
        };
        let is_last = self.next == Next::End;
        self.next = match self.next {
            Next::Ack(index) if index + 1 < self.script.acks.len() => Next::Ack(index + 1),
            Next::SynAck if !self.script.acks.is_empty() => Next::Ack(0),
            _ => Next::End,
        };
        (packet.encode((self.peer, PORT), (*self.local.ip(), self.local.port())), is_last)
    }

    fn syn_ack(&self, ack: u32) -> PeerPacket {
        let setup = &self.script.setup;
        let flags = SYN | ACK | if setup.ecn { ECE } else { 0 };
        let packet = PeerPacket { flags, seq: PEER_ISS, ack, window: setup.window, ..PeerPacket::default() };
        let mss = setup.mss + if setup.timestamps { TIMESTAMPS } else { 0 };
        let packet = packet.offers(mss as u16, setup.sack, SCALE);
        if setup.timestamps { packet.stamped(1, self.stamps.last()) } else { packet }
    }

    fn acknowledgement(&self, ack: &PeerAck) -> PeerPacket {
        let wire = |segment: u64| self.iss.wrapping_add(1).wrapping_add(self.layout.start(segment) as u32);
        let packet = PeerPacket {
            flags: ACK | if ack.ece { ECE } else { 0 },
            seq: PEER_ISS + 1,
            ack: wire(ack.ack),
            window: (ack.window >> SCALE) as u16,
            ..PeerPacket::default()
        };
        let blocks: Vec<_> = ack.sack.iter().map(|(start, end)| (wire(*start), wire(*end))).collect();
        let packet =
            if self.script.setup.timestamps { packet.stamped(ack.tsval, self.stamps.echo(ack.tsecr)) } else { packet };
        packet.sacking(&blocks)
    }

    /// Called when the kernel has taken an acknowledgement; `states` are those before and after it.
    fn acknowledged(&mut self, states: [State; 2]) {
        let ack = &self.script.acks[self.recording.states.len()];
        self.acknowledged = self.acknowledged.max(self.layout.start(ack.ack).min(self.sent_end));
        self.recording.states.push(states);
    }

    /// The connection is established: the application begins to write.
    fn begin_writing(&mut self) -> Outcome<()> {
        let Some(socket) = self.socket.take() else { return Ok(()) };
        socket.set_nonblocking(false)?;
        let (clock, zero_ns) = (self.clock, self.zero_ns);
        let writes: Vec<_> = self.script.writes.iter().map(|write| (write.at_us, write.bytes)).collect();
        let writer = thread::Builder::new().spawn(move || {
            let _ = nix::sys::prctl::set_timerslack(1); // otherwise each may be 50 us late
            let mut stream = TcpStream::from(socket);
            let mut begun_us = Vec::new();
            for (at_us, bytes) in writes {
                let wait = clock.until(zero_ns + at_us * 1000);
                thread::sleep(wait);
                // A write that the one before has held up begins, as in the script, once that one is complete.
                let now_us = clock.now_ns().saturating_sub(zero_ns) / 1000;
                begun_us.push(if wait.is_zero() { at_us } else { now_us });
                // The whole write at once: if its end can be sent, a segment ends there.
                if stream.write_all(&vec![0; bytes as usize]).is_err() {
                    return begun_us; // the script has ended
                }
            }
            // The socket lives until the peer's reset.
            let _ = io::Read::read(&mut stream, &mut [0]);
            begun_us
        })?;
        self.writer = Some(writer);
        Ok(())
    }

    fn state(&self, diag: &mut SockDiag) -> Outcome<State> {
        let remote = SocketAddr::from((self.peer, PORT));
        let Some(socket) = diag.find(self.local.into(), remote)? else { return Ok(State::default()) };
        let info = socket.info;
        Ok(State {
            cwnd: info.snd_cwnd,
            ssthresh: info.snd_ssthresh,
            ca_state: info.ca_state,
            unacked: info.unacked,
            sacked: info.sacked,
            lost: info.lost,
            retrans: info.retrans,
            reordering: info.reordering,
        })
    }
}
