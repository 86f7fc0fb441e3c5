//! What goes into an [`Endpoint`](super::Endpoint) and what comes out.

use control::Controller;
use schedule::Scheduler;
use units::{Instant, PathId, Rate, Span};

/// Streams from this one on are unordered: a parcel of one piece goes up as it comes.
pub const FIRST_UNORDERED: u8 = 240;

/// Bytes of a sealed datagram that are not body: GRE with key and sequence number, and the cipher's tag.
pub const SEAL_BYTES: u32 = 12 + 16;

/// Bytes of the header before a piece of data.
pub const DATA_HEADER_BYTES: u32 = 6;

/// What is carried. The machine looks at no byte of it.
pub trait Payload: Clone {
    /// Bytes.
    fn len(&self) -> u32;
    /// The bytes `from..to` of it.
    #[must_use]
    fn slice(&self, from: u32, to: u32) -> Self;
    /// Shows congestion to whoever sent the packet: by a mark, or by losing a part. False if it can be shown only by
    /// dropping all of it.
    fn signal(&mut self) -> bool {
        false
    }
    /// No bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A piece of a parcel on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data<P> {
    /// The stream that it belongs to.
    pub stream: u8,
    /// Its number in the stream, modulo 2^32.
    pub sequence: u32,
    /// A parcel begins with it.
    pub first: bool,
    /// A parcel ends with it.
    pub last: bool,
    /// It was sent before.
    pub again: bool,
    /// Its bytes.
    pub payload: P,
}

/// What a datagram carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content<P> {
    /// One piece.
    Data(Data<P>),
    /// The frames of [`Endpoint::control`](super::Endpoint::control), padded to so many bytes of body if they are fewer.
    Control {
        /// Bytes.
        pad_to: u32,
    },
}

/// A datagram to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit<P> {
    /// Its path.
    pub path: PathId,
    /// Its number on the path, from 0 without gaps.
    pub number: u64,
    /// What it carries.
    pub content: Content<P>,
}

/// A datagram that arrived: authentic, and not seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Its path.
    pub path: PathId,
    /// Its number on the path.
    pub number: u64,
    /// It bears CE.
    pub marked: bool,
}

/// A piece that goes up. The pieces of a parcel come one after another, unless one was given up; a parcel of a single piece
/// may come between another's if it is not held to the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The stream.
    pub stream: u8,
    /// Its bytes.
    pub payload: P,
    /// A parcel begins with it.
    pub first: bool,
    /// A parcel ends with it.
    pub last: bool,
    /// A piece before it was given up: a parcel that was begun stays incomplete.
    pub gap: bool,
    /// It was marked on its way.
    pub marked: bool,
}

/// What happened to the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The path was found to work.
    PathUp(PathId),
    /// The path stopped working.
    PathDown(PathId),
    /// Datagrams of so many bytes (UDP payload) pass.
    LargestFound(PathId, u32),
    /// The peer has taken the path away.
    PathGone(PathId),
    /// The peer goes away.
    Closed,
}

/// How an endpoint is built.
#[derive(Debug)]
pub struct Setup {
    /// Which path carries the next piece. One that lets packets wait at the connection ([`schedule::Fill::Window`]).
    pub scheduler: Box<dyn Scheduler>,
    /// Congestion control of all paths; `None` in networks whose load is managed otherwise (RFC 8086, section 3).
    pub controller: Option<Box<dyn Controller>>,
    /// Lost pieces are sent again.
    pub repair: bool,
    /// Pieces go up in the order of their streams.
    pub order: bool,
    /// A piece that comes after its turn goes up out of order, instead of being dropped.
    pub deliver_late: bool,
    /// A missing piece is waited for no longer than this.
    pub hold_most: Span,
    /// A path that is silent for so long is probed while the tunnel is in use.
    pub probe: Span,
    /// CoDel at the entrance: the sojourn time that is meant.
    pub target: Span,
    /// CoDel at the entrance: for how long it may be exceeded.
    pub interval: Span,
    /// Bytes that may wait at the entrance, be on their way, and be held at the exit: each of the three.
    pub memory: u64,
    /// Seed of everything random.
    pub seed: u64,
}

/// How one path is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSetup {
    /// Only while no regular path works.
    pub backup: bool,
    /// Every byte costs: as a backup, and probed seldom.
    pub metered: bool,
    /// The largest datagram (UDP payload) worth trying, bytes.
    pub largest: u32,
    /// Bytes of IP and UDP header around it.
    pub headers: u32,
    /// The most that is sent on it, headers included; `None`: what its congestion control finds.
    pub most: Option<Rate>,
}

/// A path in numbers, for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathStatus {
    /// Which.
    pub path: PathId,
    /// It works.
    pub up: bool,
    /// It is a backup, for one of the ends.
    pub backup: bool,
    /// Smoothed round trip of data and acknowledgement, which may come back by another path.
    pub srtt: Span,
    /// Least of them.
    pub min_rtt: Span,
    /// Its mean deviation.
    pub deviation: Span,
    /// Round trip of the latest probe, on this path both ways.
    pub probe_rtt: Option<Span>,
    /// One-way delay to the peer beyond the fastest path's.
    pub behind: Span,
    /// Congestion window, packets.
    pub window: u32,
    /// Packets in flight.
    pub in_flight: u32,
    /// What it is paced at; zero without congestion control.
    pub pacing: Rate,
    /// The latest rate of delivery.
    pub delivery: Rate,
    /// The largest datagram that passes, bytes.
    pub largest: u32,
    /// Datagrams with data sent.
    pub sent: u64,
    /// Bytes of data sent.
    pub sent_bytes: u64,
    /// Datagrams delivered.
    pub delivered: u64,
    /// Datagrams lost.
    pub lost: u64,
    /// Found lost and came after all.
    pub spurious: u64,
    /// CE marks that the peer saw.
    pub marked: u64,
    /// Datagrams with data received.
    pub received: u64,
    /// Bytes of data received.
    pub received_bytes: u64,
    /// When anything came by it last.
    pub heard: Option<Instant>,
    /// Times that it failed.
    pub failures: u64,
}

/// What the endpoint counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Parcels from the device.
    pub parcels: u64,
    /// Parcels dropped at the entrance, for waiting too long or for want of room.
    pub dropped: u64,
    /// Parcels marked or trimmed at the entrance.
    pub signalled: u64,
    /// Pieces sent for the first time.
    pub pieces: u64,
    /// Pieces sent again because they were lost.
    pub repaired: u64,
    /// Copies that a redundant scheduler sent.
    pub copies: u64,
    /// Pieces given up by the sender.
    pub given_up: u64,
    /// Pieces delivered.
    pub delivered: u64,
    /// Pieces that waited for earlier ones.
    pub held: u64,
    /// All the time that they waited, nanoseconds.
    pub held_ns: u64,
    /// Pieces that came twice.
    pub duplicates: u64,
    /// Pieces that came after they had been given up.
    pub late: u64,
    /// Missing pieces that were waited for in vain.
    pub missed: u64,
    /// Pieces refused because too much was held already.
    pub refused: u64,
    /// Frames that made no sense.
    pub nonsense: u64,
}

/// An endpoint in numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// What was counted.
    pub counters: Counters,
    /// The paths.
    pub paths: Vec<PathStatus>,
    /// Parcels that wait at the entrance.
    pub waiting: u64,
    /// Bytes that wait at the entrance.
    pub waiting_bytes: u64,
    /// Pieces on their way.
    pub outstanding: u64,
    /// Pieces held at the exit now.
    pub held: u64,
    /// How long a missing piece is waited for.
    pub hold: Span,
    /// Payload of a full piece.
    pub piece: u32,
}
