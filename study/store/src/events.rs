//! The table of events of a traced run.

use crate::Error;
use crate::frame::{self, Frame, Values};
use crate::table::{self, Column, Table};
use parquet::data_type::ByteArray;
use std::path::Path;

/// An event: a packet that is sent, delivered or lost, the length of a queue, the state of a sender, or its limit.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the names of columns; docs/reference/results.md describes each")]
pub struct EventRow {
    pub time_s: f64,
    pub event: &'static str,
    pub flow: Option<String>,
    pub path: Option<String>,
    pub connection: Option<u64>,
    pub direction: Option<&'static str>,
    pub packet: Option<&'static str>,
    pub seq: Option<u64>,
    pub data_seq: Option<u64>,
    pub data_end: Option<u64>,
    pub ack: Option<u64>,
    pub sack: Option<String>,
    pub receive_window_bytes: Option<u64>,
    pub bytes: Option<u64>,
    pub ecn: Option<&'static str>,
    pub link: Option<String>,
    pub cause: Option<&'static str>,
    pub queue_packets: Option<u64>,
    pub cwnd_packets: Option<u64>,
    pub ssthresh_packets: Option<u64>,
    pub pacing_mbps: Option<f64>,
    pub in_flight_packets: Option<u64>,
    pub queued_packets: Option<u64>,
    pub room: Option<&'static str>,
    pub srtt_ms: Option<f64>,
    pub rtt_ms: Option<f64>,
    pub congestion_state: Option<&'static str>,
    pub lost_packets: Option<u64>,
    pub timeouts: Option<u64>,
    pub limit: Option<&'static str>,
}

/// Writes events into a Parquet file, a row group for each of the `groups`. A group may fail with a reason.
///
/// # Errors
/// The file cannot be written, or a group fails: the file then stays as it was.
pub fn write_events(path: &Path, groups: impl Iterator<Item = Result<Vec<EventRow>, String>>) -> Result<(), Error> {
    let tables = groups.map(|group| group.map(|rows| to_table(&rows)).map_err(|reason| Error::Rows { reason }));
    table::try_write(path, &to_table(&[]), tables)
}

/// Events as a frame. Whole numbers that may be missing are numbers.
#[must_use]
pub fn events_frame(rows: &[EventRow]) -> Frame {
    let values = |column: Column| match column {
        Column::Counts(counts) => {
            Values::Numbers(counts.into_iter().map(|count| count.map_or(f64::NAN, |count| count as f64)).collect())
        }
        Column::Numbers(numbers) => {
            Values::Numbers(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
        }
        Column::Texts(texts) => {
            frame::texts(texts.iter().map(|text| text.as_ref().and_then(|text| text.as_utf8().ok())))
        }
    };
    let columns = to_table(rows).columns.into_iter();
    Frame { columns: columns.map(|(name, column)| (name, values(column))).collect() }
}

fn to_table(rows: &[EventRow]) -> Table {
    let counts = |value: fn(&EventRow) -> Option<u64>| {
        Column::Counts(rows.iter().map(|row| value(row).and_then(|count| i64::try_from(count).ok())).collect())
    };
    let numbers = |value: fn(&EventRow) -> Option<f64>| Column::Numbers(rows.iter().map(value).collect());
    let texts = |value: fn(&EventRow) -> Option<&str>| {
        Column::Texts(rows.iter().map(|row| value(row).map(ByteArray::from)).collect())
    };
    let columns = [
        ("time_s", numbers(|row| Some(row.time_s))),
        ("event", texts(|row| Some(row.event))),
        ("flow", texts(|row| row.flow.as_deref())),
        ("path", texts(|row| row.path.as_deref())),
        ("connection", counts(|row| row.connection)),
        ("direction", texts(|row| row.direction)),
        ("packet", texts(|row| row.packet)),
        ("seq", counts(|row| row.seq)),
        ("data_seq", counts(|row| row.data_seq)),
        ("data_end", counts(|row| row.data_end)),
        ("ack", counts(|row| row.ack)),
        ("sack", texts(|row| row.sack.as_deref())),
        ("receive_window_bytes", counts(|row| row.receive_window_bytes)),
        ("bytes", counts(|row| row.bytes)),
        ("ecn", texts(|row| row.ecn)),
        ("link", texts(|row| row.link.as_deref())),
        ("cause", texts(|row| row.cause)),
        ("queue_packets", counts(|row| row.queue_packets)),
        ("cwnd_packets", counts(|row| row.cwnd_packets)),
        ("ssthresh_packets", counts(|row| row.ssthresh_packets)),
        ("pacing_mbps", numbers(|row| row.pacing_mbps)),
        ("in_flight_packets", counts(|row| row.in_flight_packets)),
        ("queued_packets", counts(|row| row.queued_packets)),
        ("room", texts(|row| row.room)),
        ("srtt_ms", numbers(|row| row.srtt_ms)),
        ("rtt_ms", numbers(|row| row.rtt_ms)),
        ("congestion_state", texts(|row| row.congestion_state)),
        ("lost_packets", counts(|row| row.lost_packets)),
        ("timeouts", counts(|row| row.timeouts)),
        ("limit", texts(|row| row.limit)),
    ];
    Table { columns: columns.map(|(name, column)| (name.to_owned(), column)).into() }
}
