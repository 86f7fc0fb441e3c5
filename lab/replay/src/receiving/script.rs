//! A script: the settings of the hosts, the segments that arrive at the receiver, and the reads of its application.
//!
//! Times are microseconds from the script's zero, which is a tick of the receiver's timers. Every segment is full.

use crate::kernel::{Release, is_default};
use control::LinuxRelease;
use serde::{Deserialize, Serialize};

/// The settings of both hosts, and the options that they negotiate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Setup {
    /// The series of the kernel.
    #[serde(with = "Release", default, skip_serializing_if = "is_default")]
    pub release: LinuxRelease,
    /// The receiver's timer tick, microseconds.
    pub tick_us: u64,
    /// Initial and maximum size of the receive buffer, bytes (the second and third value of `tcp_rmem`).
    pub buffer: [u64; 2],
    /// RFC 2018 selective acknowledgements.
    pub sack: bool,
    /// RFC 7323 timestamps.
    pub timestamps: bool,
    /// RFC 3168 ECN.
    pub ecn: bool,
    /// Whether the application waits in a read at all times; otherwise it reads when the script says so.
    pub reads_at_once: bool,
    /// Time at which the SYN arrives.
    pub syn_us: u64,
    /// Time at which the third packet of the handshake arrives.
    pub established_us: u64,
}

/// Payload of a segment without options, bytes: what fills an Ethernet frame.
const MSS: u32 = 1460;
/// Bytes of TCP's timestamps.
const TIMESTAMPS: u32 = 12;

impl Setup {
    /// Payload of a segment, bytes.
    #[must_use]
    pub fn mss(&self) -> u32 {
        MSS - if self.timestamps { TIMESTAMPS } else { 0 }
    }
}

/// A segment that arrives. It is stored as a list of these values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, bool, bool, bool, u32, u32)", into = "(u64, bool, bool, bool, u32, u32)")]
pub struct Arrival {
    /// Its number.
    pub seq: u64,
    /// PSH flag.
    pub psh: bool,
    /// CE mark.
    pub is_marked: bool,
    /// CWR flag.
    pub cwr: bool,
    /// TSval, milliseconds of the sender's clock; 0 without timestamps.
    pub tsval: u32,
    /// TSecr, milliseconds since the script's zero: the time at which the receiver sent the echoed timestamp.
    pub tsecr: u32,
}

impl From<(u64, bool, bool, bool, u32, u32)> for Arrival {
    fn from((seq, psh, is_marked, cwr, tsval, tsecr): (u64, bool, bool, bool, u32, u32)) -> Self {
        Self { seq, psh, is_marked, cwr, tsval, tsecr }
    }
}

impl From<Arrival> for (u64, bool, bool, bool, u32, u32) {
    fn from(arrival: Arrival) -> Self {
        (arrival.seq, arrival.psh, arrival.is_marked, arrival.cwr, arrival.tsval, arrival.tsecr)
    }
}

/// What happens at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A segment arrives.
    Data(Arrival),
    /// A probe of the window arrives, without data; `Arrival::seq` is the first segment that is not acknowledged.
    Probe(Arrival),
    /// The application reads up to this many segments of those that wait.
    Read(u64),
}

/// An event at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its time.
    pub at_us: u64,
    /// What happens.
    pub kind: Kind,
}

/// A script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// Settings.
    pub setup: Setup,
    /// Events, in their order.
    pub events: Vec<Event>,
    /// The end of the script: acknowledgements sent later are not compared.
    pub end_us: u64,
}

impl Script {
    /// The interval from an event to the next one; before the first event for zero.
    pub(super) fn interval(&self, index: usize) -> [u64; 2] {
        let start = index.checked_sub(1).map_or(self.setup.established_us, |before| self.events[before].at_us);
        [start, self.events.get(index).map_or(self.end_us, |event| event.at_us)]
    }
}
