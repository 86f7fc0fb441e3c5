//! A connection on which the kernel receives: the peer's side of it, and the recording.

use super::Outcome;
use super::clock::Clock;
use super::packet::{ACK, CWR, ECE, KernelPacket, PSH, PeerPacket, RST, SYN};
use super::player::{Conversation, Ends};
use super::stamps::Stamps;
use replay::receiving::{Arrival, Event, Kind, Recording, Script, SentAck};
use sock_diag::SockDiag;
use std::io::Read;
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use tun_rs::SyncDevice;

/// The peer's port, and its first sequence number.
const PORT: u16 = 5001;
const PEER_ISS: u32 = 1000;
/// The peer's window, which does not matter, and its window scale.
const WINDOW: u16 = 60_000;
const SCALE: u8 = 7;
/// The MSS that the peer offers: with Ethernet's MTU.
const MSS: u16 = 1460;
/// ECN codepoints (RFC 3168 section 5).
const ECT_0: u8 = 2;
const CE: u8 = 3;
/// Size of a read of an application that waits for data, bytes: more than any window.
const LARGE: usize = 1 << 23;

/// The next step of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Syn,
    Handshake,
    Segment(usize),
    End,
}

pub(super) struct Receiving<'a> {
    script: &'a Script,
    clock: Clock,
    /// The instant of the script's zero.
    zero_ns: u64,
    ends: Ends,
    next: Next,
    listener: Option<TcpListener>,
    /// The kernel's port; zero before it listens.
    port: u16,
    /// The socket, which the reader uses too.
    socket: Option<TcpStream>,
    reader: Option<JoinHandle<()>>,
    /// The kernel's first sequence number, and its window scale.
    iss: u32,
    scale: u8,
    stamps: Stamps,
    recording: Recording,
}

impl<'a> Conversation<'a> for Receiving<'a> {
    type Script = Script;
    type Recording = Recording;

    fn times_us(script: &Script) -> [u64; 2] {
        [script.setup.tick_us, script.setup.syn_us]
    }

    fn setting(script: &Script) -> (&'static str, String) {
        let [initial, most] = script.setup.buffer;
        ("tcp_rmem", format!("4096 {initial} {most}"))
    }

    fn device(_: &Script) -> usize {
        0
    }

    fn new(script: &'a Script, clock: Clock, zero_ns: u64, ends: Ends) -> Self {
        Self {
            script,
            clock,
            zero_ns,
            ends,
            next: Next::Syn,
            listener: None,
            port: 0,
            socket: None,
            reader: None,
            iss: 0,
            scale: 0,
            stamps: Stamps::default(),
            recording: Recording::default(),
        }
    }

    fn due_ns(&self) -> u64 {
        let setup = &self.script.setup;
        let at_us = match self.next {
            Next::Syn => setup.syn_us,
            Next::Handshake => setup.established_us,
            Next::Segment(index) => self.script.events[index].at_us,
            Next::End => self.script.end_us,
        };
        self.zero_ns + at_us * 1000
    }

    fn take(&mut self, now_ns: u64, packet: &KernelPacket) {
        let at_us = now_ns.saturating_sub(self.zero_ns) / 1000;
        if let Some(tsval) = packet.tsval {
            self.stamps.add(at_us, tsval);
        }
        if packet.flags & SYN != 0 {
            self.iss = packet.seq;
            self.scale = packet.scale.unwrap_or(0);
        } else if packet.flags & RST == 0 {
            self.record(at_us, packet);
        }
    }

    fn step(&mut self, device: &SyncDevice, _: &mut SockDiag) -> Outcome<bool> {
        let late_us = self.clock.now_ns().saturating_sub(self.due_ns()) / 1000;
        self.recording.late_us = self.recording.late_us.max(late_us);
        if self.next == Next::Syn {
            self.listen()?;
        }
        device.send(&self.packet().encode((self.ends.peer, PORT), (self.ends.local, self.port)))?;
        let step = self.next;
        if step == Next::Handshake {
            self.begin_reading()?;
        }
        self.next = match step {
            Next::Syn => Next::Handshake,
            Next::Handshake => self.segment_from(0),
            Next::Segment(index) => self.segment_from(index + 1),
            Next::End => Next::End,
        };
        Ok(step == Next::End)
    }

    fn finish(mut self) -> Recording {
        if let Some((socket, reader)) = self.socket.take().zip(self.reader.take()) {
            let _ = socket.shutdown(Shutdown::Both);
            let _ = reader.join();
        }
        let end_us = self.script.end_us;
        self.recording.acks.retain(|ack| ack.at_us < end_us);
        self.recording
    }
}

impl Receiving<'_> {
    /// The step of the first packet of the script from this event on; the reader has the other events.
    fn segment_from(&self, first: usize) -> Next {
        let rest = self.script.events[first..].iter();
        let index = rest.map(|event| event.kind).position(|kind| !matches!(kind, Kind::Read(_)));
        index.map_or(Next::End, |index| Next::Segment(first + index))
    }

    fn record(&mut self, at_us: u64, packet: &KernelPacket) {
        let mss = self.script.setup.mss();
        let segment = |number: u32| u64::from(number.wrapping_sub(PEER_ISS + 1).div_ceil(mss));
        self.recording.acks.push(SentAck {
            at_us,
            ack: segment(packet.ack),
            window: u64::from(packet.window) << self.scale,
            sack: packet.sack.iter().map(|(start, end)| (segment(*start), segment(*end))).collect(),
            ece: packet.flags & ECE != 0,
        });
    }

    fn listen(&mut self) -> Outcome<()> {
        let listener = TcpListener::bind(SocketAddrV4::new(self.ends.local, 0))?;
        listener.set_nonblocking(true)?;
        self.port = listener.local_addr()?.port();
        self.listener = Some(listener);
        Ok(())
    }

    /// The packet of the step that is due.
    fn packet(&self) -> PeerPacket {
        let setup = &self.script.setup;
        let packet = PeerPacket {
            flags: ACK,
            seq: PEER_ISS + 1,
            ack: self.iss.wrapping_add(1),
            window: WINDOW,
            ..PeerPacket::default()
        };
        let stamp = |us: u64| if setup.timestamps { (us / 1000) as u32 } else { 0 };
        match self.next {
            Next::Syn => {
                let flags = SYN | if setup.ecn { ECE | CWR } else { 0 };
                let syn = PeerPacket { flags, seq: PEER_ISS, ack: 0, ..packet }.offers(MSS, setup.sack, SCALE);
                if setup.timestamps { syn.stamped(stamp(setup.syn_us), 0) } else { syn }
            }
            Next::Handshake => self.stamped(packet, stamp(setup.established_us), self.stamps.last()),
            Next::Segment(index) => self.segment(packet, &self.script.events[index]),
            Next::End => {
                let acknowledged = self.recording.acks.last().map_or(0, |ack| ack.ack as u32);
                PeerPacket { flags: RST, seq: PEER_ISS + 1 + acknowledged * setup.mss(), ..packet }
            }
        }
    }

    fn segment(&self, packet: PeerPacket, event: &Event) -> PeerPacket {
        let (arrival, payload) = match &event.kind {
            Kind::Data(arrival) => (arrival, self.script.setup.mss()),
            Kind::Probe(arrival) => (arrival, 0),
            Kind::Read(_) => unreachable!("a read is the reader's"),
        };
        let Arrival { seq, psh, is_marked, cwr, tsval, tsecr } = *arrival;
        let flags = ACK | if psh { PSH } else { 0 } | if cwr { CWR } else { 0 };
        let start = PEER_ISS + 1 + seq as u32 * self.script.setup.mss();
        // A probe has the number of the byte before the window (RFC 9293 section 3.8.6.1, as Linux sends it).
        let seq = if payload == 0 { start - 1 } else { start };
        let ecn = match (self.script.setup.ecn && payload > 0, is_marked) {
            (false, _) => 0,
            (true, false) => ECT_0,
            (true, true) => CE,
        };
        let packet = PeerPacket { flags, seq, payload: payload as usize, ecn, ..packet };
        self.stamped(packet, tsval, self.stamps.echo(tsecr))
    }

    fn stamped(&self, packet: PeerPacket, tsval: u32, tsecr: u32) -> PeerPacket {
        if self.script.setup.timestamps { packet.stamped(tsval, tsecr) } else { packet }
    }

    /// The connection is established: the application begins to read.
    fn begin_reading(&mut self) -> Outcome<()> {
        let Some(listener) = self.listener.take() else { return Ok(()) };
        let (stream, _) = listener.accept()?;
        self.socket = Some(stream.try_clone()?);
        let (clock, zero_ns, mss) = (self.clock, self.zero_ns, u64::from(self.script.setup.mss()));
        if self.script.setup.reads_at_once {
            self.reader = Some(thread::Builder::new().spawn(move || read_at_once(stream))?);
            return Ok(());
        }
        let reads = self.script.events.iter().filter_map(|event| match event.kind {
            Kind::Read(segments) => {
                Some((zero_ns + event.at_us * 1000, segments.saturating_mul(mss).min(LARGE as u64)))
            }
            _ => None,
        });
        let reads: Vec<_> = reads.collect();
        self.reader = Some(thread::Builder::new().spawn(move || read_later(stream, clock, &reads))?);
        Ok(())
    }
}

/// Reads until the end of the connection.
fn read_at_once(mut stream: TcpStream) {
    let mut buffer = vec![0; LARGE];
    while stream.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
}

/// Reads so many bytes at these times.
fn read_later(mut stream: TcpStream, clock: Clock, reads: &[(u64, u64)]) {
    let _ = nix::sys::prctl::set_timerslack(1); // otherwise each may be 50 us late
    let mut buffer = vec![0; LARGE];
    let _ = stream.set_nonblocking(true);
    for (at_ns, bytes) in reads {
        thread::sleep(clock.until(*at_ns));
        let _ = stream.read(&mut buffer[..*bytes as usize]);
    }
}
