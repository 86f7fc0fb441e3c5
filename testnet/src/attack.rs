//! Attacks by a hostile peer within its session. Each attack is a sequence of bodies of sealed datagrams.

use units::RngStream;
use wire::checksum::Sum;
use wire::frame::{Ack, AckRanges, DataHeader, Frame, PathState};

/// Size of a body that every path carries, bytes.
const BODY_BYTES: usize = 1150;
/// Number of ordered streams.
const STREAMS: u64 = 240;

/// An attack by a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// Packets whose virtio_net_hdr makes the receiver complete a checksum over their source address, which turns it
    /// into another peer's.
    ForeignSource,
    /// Packets with their own source and a virtio_net_hdr that the kernel refuses.
    RefusedOffload,
    /// Single bytes, as far ahead in their streams as the receiver accepts.
    FarAhead,
    /// Single bytes with a missing byte between every two.
    EverySecond,
    /// First fragments of inner packets, without the remaining fragments.
    Incomplete,
    /// As many pings as fit in a body.
    Pings,
    /// As many acknowledgements as fit in a body, for arbitrary packets.
    Acks,
    /// Frames that open, degrade and remove all paths in turn.
    Paths,
    /// Relay messages of connections that do not exist.
    RelayMessages,
    /// Frames that end within a field, and unknown ones.
    Malformed,
    /// Random bytes.
    Random,
}

impl Attack {
    /// All attacks.
    pub const ALL: [Self; 11] = [
        Self::ForeignSource,
        Self::RefusedOffload,
        Self::FarAhead,
        Self::EverySecond,
        Self::Incomplete,
        Self::Pings,
        Self::Acks,
        Self::Paths,
        Self::RelayMessages,
        Self::Malformed,
        Self::Random,
    ];

    /// The path and the body of datagram `k`. `own` and `foreign` are the inner addresses of the attacker and of
    /// another peer, `target` that of the victim.
    #[must_use]
    pub fn datagram(self, k: u64, inner: &InnerAddresses, rng: &mut RngStream) -> (u8, Vec<u8>) {
        let data = |stream: u64, sequence: u64, first: bool, last: bool, fragment: &[u8]| {
            let header = DataHeader {
                stream: stream as u8,
                sequence: sequence as u32,
                first,
                last,
                retransmission: false,
                offload: false,
            };
            [&header.to_bytes()[..], fragment].concat()
        };
        let whole = |packet: Vec<u8>, offload: bool| {
            let header =
                DataHeader { stream: 250, sequence: k as u32, first: true, last: true, retransmission: false, offload };
            [&header.to_bytes()[..], &packet].concat()
        };
        let body = match self {
            Self::ForeignSource => whole(inner.with_checksum_over_source(), true),
            Self::RefusedOffload => whole(inner.with_refused_offload(), true),
            Self::FarAhead => data(k % STREAMS, 65_535 - k / STREAMS, false, false, &[0]),
            Self::EverySecond => data(k % STREAMS, 1 + 2 * (k / STREAMS), false, false, &[0]),
            Self::Incomplete => data(k % STREAMS, k / STREAMS, k < STREAMS, false, &[0; BODY_BYTES]),
            Self::Pings => frames(|| Frame::Ping { token: rng.bits() }),
            Self::Acks => frames(|| Frame::Ack(any_ack(rng))),
            Self::Paths => frames(|| any_path_frame(k, rng)),
            Self::RelayMessages => whole(any_relay_message(rng), false),
            Self::Malformed => malformed(k, rng),
            Self::Random => (0..rng.below(BODY_BYTES as u64)).map(|_| rng.bits() as u8).collect(),
        };
        let path = if self == Self::Paths { (k % 16) as u8 } else { 0 };
        (path, body)
    }
}

/// IPv4 addresses of inner packets.
#[derive(Clone, Copy, Debug)]
pub struct InnerAddresses {
    /// The attacker's.
    pub own: [u8; 4],
    /// Another peer's, in the same /16 as the attacker's.
    pub foreign: [u8; 4],
    /// The victim's.
    pub target: [u8; 4],
    /// The UDP port on which the victim listens.
    pub port: u16,
}

impl InnerAddresses {
    /// A UDP datagram from the attacker, without a checksum. Its virtio_net_hdr asks for the checksum to be completed
    /// over bytes 14 and 15, which turns the source into the foreign address.
    fn with_checksum_over_source(&self) -> Vec<u8> {
        let mut packet = self.udp(self.foreign);
        packet[12..16].copy_from_slice(&self.own);
        // The checksum covers everything from byte 14 on, and the last word is free to choose: the complement of the
        // sum must be the low half of the foreign address.
        let last = packet.len() - 2;
        packet[last..].fill(0);
        let wanted = u16::from_be_bytes([self.foreign[2], self.foreign[3]]);
        let sum_without_last = !Sum::of(&packet[14..]).checksum();
        let missing = u32::from(!wanted) + 0xffff - u32::from(sum_without_last);
        let word = (missing % 0xffff) as u16;
        packet[last..].copy_from_slice(&word.to_be_bytes());
        let mut bytes = vec![1, 0, 0xff, 0xff, 0, 0, 14, 0, 0, 0];
        bytes.extend_from_slice(&packet);
        bytes
    }

    /// A valid UDP datagram with a virtio_net_hdr whose headers are longer than the packet.
    fn with_refused_offload(&self) -> Vec<u8> {
        let mut bytes = vec![1, 0, 0xff, 0xff, 0, 0, 20, 0, 6, 0];
        bytes.extend_from_slice(&self.udp(self.own));
        bytes
    }

    /// A UDP datagram from an address, with a correct IPv4 header checksum and no UDP checksum.
    fn udp(&self, source: [u8; 4]) -> Vec<u8> {
        let payload = b"foreign!";
        let udp_len = 8 + payload.len() as u16;
        let mut packet = vec![0x45, 0, 0, 20 + udp_len as u8, 0, 0, 0, 0, 64, 17, 0, 0];
        packet.extend_from_slice(&source);
        packet.extend_from_slice(&self.target);
        let checksum = Sum::of(&packet).checksum();
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.extend_from_slice(&40_000_u16.to_be_bytes());
        packet.extend_from_slice(&self.port.to_be_bytes());
        packet.extend_from_slice(&udp_len.to_be_bytes());
        packet.extend_from_slice(&[0, 0]);
        packet.extend_from_slice(payload);
        packet
    }
}

/// As many frames as fit in a body.
fn frames(mut frame: impl FnMut() -> Frame) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let frame = frame();
        if body.len() + frame.len() > BODY_BYTES {
            return body;
        }
        frame.write(&mut body);
    }
}

fn any_ack(rng: &mut RngStream) -> Ack {
    let mut ranges = AckRanges::default();
    for _ in 0..=rng.below(4) {
        ranges.push(1 + rng.below(3) as u32, 1 + rng.below(1000) as u32);
    }
    Ack {
        path: rng.below(2) as u8,
        largest: rng.below(2000) as u32,
        ack_delay_us: rng.below(1 << 30) as u32,
        receive_timestamp_us: rng.bits() as u32,
        ce_count: rng.below(1 << 30) as u32,
        ranges,
    }
}

fn any_path_frame(k: u64, rng: &mut RngStream) -> Frame {
    let states = PathState::ALL;
    match rng.below(3) {
        0 => Frame::Ping { token: rng.bits() },
        1 => Frame::Path { path: k as u8, state: states[rng.below(5) as usize] },
        _ => Frame::ReorderTimeout { micros: rng.bits() as u32 },
    }
}

fn any_relay_message(rng: &mut RngStream) -> Vec<u8> {
    let kind = 1 + rng.below(6) as u8;
    let mut message = vec![kind, rng.below(4) as u8];
    message.extend((0..rng.below(60)).map(|_| rng.bits() as u8));
    message
}

fn malformed(k: u64, rng: &mut RngStream) -> Vec<u8> {
    let mut body = frames(|| any_path_frame(k, rng));
    body.truncate(1 + rng.below(body.len() as u64 - 1) as usize);
    let position = rng.below(body.len() as u64) as usize;
    body[position] = rng.bits() as u8;
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_over_the_source_is_the_foreign_address() {
        let inner = InnerAddresses { own: [10, 77, 0, 3], foreign: [10, 77, 0, 1], target: [10, 77, 0, 2], port: 9000 };
        let bytes = inner.with_checksum_over_source();
        let packet = &bytes[10..];
        assert_eq!(packet[12..16], inner.own);
        assert_eq!(Sum::of(&packet[14..]).checksum().to_be_bytes(), inner.foreign[2..]);
        let mut completed = packet.to_vec();
        completed[14..16].copy_from_slice(&inner.foreign[2..]);
        assert_eq!(Sum::of(&completed[..20]).checksum(), 0, "the IPv4 header is valid then");
    }
}
