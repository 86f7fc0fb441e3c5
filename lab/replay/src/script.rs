//! A script: the settings of the hosts, the application's writes, and the acknowledgements that arrive at the sender, with
//! their times.
//!
//! Times are microseconds from the script's zero, which is a tick of the sender's timers. Data is counted in segments from
//! zero, as the machines count it; a [`Layout`] says which bytes a segment holds.

use crate::kernel::{Release, default_max_header, is_default};
use crate::recording::{Played, Recording};
use control::LinuxRelease;
use serde::{Deserialize, Serialize};

/// The settings of both hosts, and the options that they negotiate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Setup {
    /// The series of the kernel.
    #[serde(with = "Release", default, skip_serializing_if = "is_default")]
    pub release: LinuxRelease,
    /// The sender's timer tick, microseconds.
    pub tick_us: u64,
    /// The kernel's memory for the headers of a packet, bytes.
    #[serde(default = "default_max_header")]
    pub max_header: u32,
    /// Maximum size of the send buffer, bytes (the third value of `tcp_wmem`).
    pub send_buffer: u64,
    /// The congestion control, by the kernel's name.
    pub congestion: String,
    /// Payload of a full segment, bytes: a multiple of 128, so that windows are whole segments despite scaling.
    pub mss: u32,
    /// RFC 2018 selective acknowledgements.
    pub sack: bool,
    /// RFC 7323 timestamps.
    pub timestamps: bool,
    /// RFC 3168 ECN.
    pub ecn: bool,
    /// Whether data leaves in super-segments; otherwise the device takes one segment at a time (`gso_max_segs 1`).
    pub tso: bool,
    /// Time at which the sender connects.
    pub connect_us: u64,
    /// Time at which the SYN-ACK arrives.
    pub established_us: u64,
    /// The window of the SYN-ACK, bytes.
    pub window: u16,
}

/// A write of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Write {
    /// Time of the write.
    pub at_us: u64,
    /// Size, bytes. If it is not a whole number of segments, the next write comes after all bytes have been sent.
    pub bytes: u64,
}

/// An arriving acknowledgement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerAck {
    /// Time of arrival.
    pub at_us: u64,
    /// The first segment that the peer lacks.
    pub ack: u64,
    /// The window, bytes: a multiple of 128.
    pub window: u64,
    /// SACK blocks `[start, end)`, at most three, the first of which may report a duplicate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sack: Vec<(u64, u64)>,
    /// ECN echo.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ece: bool,
    /// TSval, milliseconds of the peer's clock; 0 without timestamps.
    #[serde(default)]
    pub tsval: u32,
    /// TSecr, milliseconds since the script's zero: the time at which the sender sent the echoed timestamp.
    #[serde(default)]
    pub tsecr: u32,
}

/// A script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// Settings.
    pub setup: Setup,
    /// Writes, in their order.
    pub writes: Vec<Write>,
    /// Acknowledgements, in their order.
    pub acks: Vec<PeerAck>,
    /// The end of the script: packets sent later are not compared.
    pub end_us: u64,
}

impl Script {
    /// The script with the times at which a kernel in real time took its events.
    #[must_use]
    pub fn as_played(&self, recording: &Recording) -> Self {
        let mut script = self.clone();
        let Some(Played { handshake_us: [connect_us, established_us], writes_us, acks_us }) = &recording.played else {
            return script;
        };
        (script.setup.connect_us, script.setup.established_us) = (*connect_us, *established_us);
        script.writes.iter_mut().zip(writes_us).for_each(|(write, at_us)| write.at_us = *at_us);
        script.acks.iter_mut().zip(acks_us).for_each(|(ack, at_us)| ack.at_us = *at_us);
        script
    }
}

/// The boundaries of segments in the stream of bytes.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The end of each segment, bytes.
    ends: Vec<u64>,
}

impl Layout {
    /// The layout of the data that a script's application writes.
    #[must_use]
    pub fn new(script: &Script) -> Self {
        let mss = u64::from(script.setup.mss);
        let mut ends = Vec::new();
        let mut start = 0;
        for write in &script.writes {
            ends.extend((1..=write.bytes.div_ceil(mss)).map(|count| start + (count * mss).min(write.bytes)));
            start += write.bytes;
        }
        Self { ends }
    }

    /// The byte at which a segment begins. For a segment after the last one, the end of the data.
    #[must_use]
    pub fn start(&self, segment: u64) -> u64 {
        let last = self.ends.last().copied().unwrap_or(0);
        segment.checked_sub(1).map_or(0, |before| self.ends.get(before as usize).copied().unwrap_or(last))
    }

    /// The segment that holds a byte.
    #[must_use]
    pub fn segment_at(&self, byte: u64) -> u64 {
        self.ends.partition_point(|end| *end <= byte) as u64
    }

    /// Bytes of a segment.
    #[must_use]
    pub fn bytes(&self, segment: u64) -> u32 {
        (self.start(segment + 1) - self.start(segment)) as u32
    }
}
