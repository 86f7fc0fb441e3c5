//! Captures of others, in pcap or pcapng: their packets, their TCP flows, and their table of events.

mod connection;
mod flows;
mod link_layer;
mod measure;
mod multipath;
mod numbers;
mod options;
mod outstanding;
mod packets;
mod read;
mod table;

pub(crate) use flows::{Flow, Segment, flows};
pub use measure::measure_capture;
pub use packets::is_capture;
pub use read::{CaptureOutputs, CaptureSummary, capture_events, read_capture};
pub use table::CaptureEnd;
pub(crate) use table::CapturedPacket;
