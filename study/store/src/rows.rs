//! Records as rows: each record names its fields once, and the same list writes and reads them.

use crate::table::{Column, Table};
use parquet::data_type::ByteArray;
use record::{Cpu, Flow, Path, Run, Subflow, Summary, Tunnel, Work};

/// Takes fields to columns or columns to fields.
pub(crate) trait Fields {
    fn count(&mut self, name: &str, value: &mut u64);
    fn number(&mut self, name: &str, value: &mut f64);
    fn optional(&mut self, name: &str, value: &mut Option<f64>);
    fn text(&mut self, name: &str, value: &mut String);
}

/// A record that is a row of a table.
pub(crate) trait Row: Clone {
    fn fields(&mut self, to: &mut dyn Fields);
}

impl Row for Run {
    fn fields(&mut self, to: &mut dyn Fields) {
        to.text("digest", &mut self.digest);
        to.number("duration_s", &mut self.duration_s);
        to.optional("jain", &mut self.jain);
        to.optional("convergence_s", &mut self.convergence_s);
        to.optional("steal_s", &mut self.steal_s);
        let Work { data_packet_hops, packet_hops, delivered_data_packets, events } = &mut self.work;
        to.count("work.data_packet_hops", data_packet_hops);
        to.count("work.packet_hops", packet_hops);
        to.count("work.delivered_data_packets", delivered_data_packets);
        to.count("work.events", events);
    }
}

impl Row for Flow {
    fn fields(&mut self, to: &mut dyn Fields) {
        to.text("flow", &mut self.name);
        to.text("congestion_control", &mut self.congestion_control);
        to.number("goodput_mbps", &mut self.goodput_mbps);
        to.count("delivered_bytes", &mut self.delivered_bytes);
        to.number("throughput_mbps", &mut self.throughput_mbps);
        to.count("sent_packets", &mut self.sent_packets);
        to.count("retransmitted_packets", &mut self.retransmitted_packets);
        to.count("dropped_packets", &mut self.dropped_packets);
        to.count("recoveries", &mut self.recoveries);
        to.count("spurious_recoveries", &mut self.spurious_recoveries);
        to.count("timeouts", &mut self.timeouts);
        to.number("receive_window_limited_s", &mut self.receive_window_limited_s);
        to.number("send_buffer_limited_s", &mut self.send_buffer_limited_s);
        to.optional("completion_s", &mut self.completion_s);
        to.optional("share", &mut self.share);
        to.count("requests", &mut self.requests);
        summary("response_time_ms", &mut self.response_time_ms, to);
        to.optional("startup_s", &mut self.startup_s);
        to.count("stalls", &mut self.stalls);
        to.number("stall_s", &mut self.stall_s);
        to.count("frames", &mut self.frames);
        to.count("late_frames", &mut self.late_frames);
        summary("frame_delay_ms", &mut self.frame_delay_ms, to);
        to.number("video_mbps", &mut self.video_mbps);
        to.count("rate_switches", &mut self.rate_switches);
        summary("rtt_ms", &mut self.rtt_ms, to);
        summary("one_way_delay_ms", &mut self.one_way_delay_ms, to);
        to.number("peak_mbps", &mut self.peak_mbps);
        summary("protocol_delay_ms", &mut self.protocol_delay_ms, to);
        summary("head_of_line_degree_ms", &mut self.head_of_line_degree_ms, to);
        summary("head_of_line_delay_ms", &mut self.head_of_line_delay_ms, to);
        to.count("max_out_of_order_packets", &mut self.max_out_of_order_packets);
        to.count("redundant_packets", &mut self.redundant_packets);
        to.count("reinjected_packets", &mut self.reinjected_packets);
        to.count("duplicate_bytes", &mut self.duplicate_bytes);
        to.count("redundant_first_packets", &mut self.redundant_first_packets);
    }
}

impl Row for Cpu {
    fn fields(&mut self, to: &mut dyn Fields) {
        to.text("name", &mut self.name);
        to.number("user_s", &mut self.user_s);
        to.number("system_s", &mut self.system_s);
        to.optional("interrupt_s", &mut self.interrupt_s);
    }
}

impl Row for Subflow {
    fn fields(&mut self, to: &mut dyn Fields) {
        to.text("flow", &mut self.flow);
        to.text("path", &mut self.path);
        to.number("throughput_mbps", &mut self.throughput_mbps);
        to.count("sent_packets", &mut self.sent_packets);
        to.count("retransmitted_packets", &mut self.retransmitted_packets);
        to.count("dropped_packets", &mut self.dropped_packets);
        to.number("drops_per_s", &mut self.drops_per_s);
        to.count("recoveries", &mut self.recoveries);
        to.count("timeouts", &mut self.timeouts);
        to.count("failures", &mut self.failures);
        summary("rtt_ms", &mut self.rtt_ms, to);
        summary("srtt_ms", &mut self.srtt_ms, to);
    }
}

impl Row for Path {
    fn fields(&mut self, to: &mut dyn Fields) {
        to.text("path", &mut self.name);
        to.count("sent_packets", &mut self.sent_packets);
        to.count("delivered_packets", &mut self.delivered_packets);
        to.count("dropped_packets", &mut self.dropped_packets);
        to.count("lost_packets", &mut self.lost_packets);
        to.count("marked_packets", &mut self.marked_packets);
        to.number("utilisation", &mut self.utilisation);
        to.number("queue_delay_ms", &mut self.queue_delay_ms);
        to.count("declared_lost_packets", &mut self.declared_lost_packets);
        to.count("spurious_losses", &mut self.spurious_losses);
        to.count("failures", &mut self.failures);
    }
}

impl Row for Tunnel {
    fn fields(&mut self, to: &mut dyn Fields) {
        to.count("delivered_packets", &mut self.delivered_packets);
        to.count("reorder_buffered_packets", &mut self.reorder_buffered_packets);
        to.count("late_packets", &mut self.late_packets);
        to.count("dropped_packets", &mut self.dropped_packets);
        to.count("timeouts", &mut self.timeouts);
        to.count("overflows", &mut self.overflows);
        to.count("max_reorder_buffered_packets", &mut self.max_reorder_buffered_packets);
        summary("reorder_delay_ms", &mut self.reorder_delay_ms, to);
        to.count("marked_packets", &mut self.marked_packets);
        to.count("sent_fragments", &mut self.sent_fragments);
        to.count("retransmitted_fragments", &mut self.retransmitted_fragments);
        to.count("duplicate_fragments", &mut self.duplicate_fragments);
        to.count("missing_fragments", &mut self.missing_fragments);
    }
}

fn summary(name: &str, summary: &mut Summary, to: &mut dyn Fields) {
    let Summary { mean, p50, p95, p99, min, max } = summary;
    let fields = [("mean", mean), ("p50", p50), ("p95", p95), ("p99", p99), ("min", min), ("max", max)];
    fields.into_iter().for_each(|(field, value)| to.number(&format!("{name}.{field}"), value));
}

/// Appends rows to a table. Every row names the same fields in the same order; the first makes the columns.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) table: Table,
    next: usize,
}

impl Writer {
    /// Appends the row of one record of the run with this key.
    pub(crate) fn push(&mut self, (cell, seed): crate::Key, row: &impl Row) {
        self.next = 0;
        self.count("cell", &mut (cell as u64));
        self.count("seed", &mut { seed });
        row.clone().fields(self);
    }

    fn column(&mut self, name: &str, empty: Column) -> &mut Column {
        if self.next == self.table.columns.len() {
            self.table.columns.push((name.to_owned(), empty));
        }
        self.next += 1;
        &mut self.table.columns[self.next - 1].1
    }
}

impl Fields for Writer {
    fn count(&mut self, name: &str, value: &mut u64) {
        let Column::Counts(column) = self.column(name, Column::Counts(Vec::new())) else { unreachable!() };
        column.push(Some(*value as i64)); // the column is declared unsigned: all 64 bits count
    }

    fn number(&mut self, name: &str, value: &mut f64) {
        self.optional(name, &mut Some(*value));
    }

    fn optional(&mut self, name: &str, value: &mut Option<f64>) {
        let Column::Numbers(column) = self.column(name, Column::Numbers(Vec::new())) else { unreachable!() };
        column.push(*value);
    }

    fn text(&mut self, name: &str, value: &mut String) {
        let Column::Texts(column) = self.column(name, Column::Texts(Vec::new())) else { unreachable!() };
        column.push(Some(ByteArray::from(value.as_str())));
    }
}

/// Reads rows of a table; remembers the first field it did not find. A column that is not there at all is one that a newer
/// version writes: its field keeps what an empty record has.
pub(crate) struct Reader<'a> {
    table: &'a Table,
    row: usize,
    missing: Option<String>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(table: &'a Table, row: usize) -> Self {
        Self { table, row, missing: None }
    }

    /// The key of the run this row belongs to.
    pub(crate) fn key(&mut self) -> Result<crate::Key, String> {
        let (mut cell, mut seed) = (0, 0);
        for (name, value) in [("cell", &mut cell), ("seed", &mut seed)] {
            self.found(name, self.table.column(name));
            self.count(name, value);
        }
        self.missing.take().map_or(Ok((cell as usize, seed)), Err)
    }

    /// Fills a record from this row.
    pub(crate) fn read<R: Row>(&mut self, mut empty: R) -> Result<R, String> {
        empty.fields(self);
        self.missing.take().map_or(Ok(empty), Err)
    }

    fn found<T>(&mut self, name: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.missing.get_or_insert_with(|| format!("row {} has no {name}", self.row + 1));
        }
        value
    }
}

impl Fields for Reader<'_> {
    fn count(&mut self, name: &str, value: &mut u64) {
        let found = match self.table.column(name) {
            Some(Column::Counts(column)) => column[self.row],
            Some(_) => None,
            None => return,
        };
        *value = self.found(name, found).unwrap_or_default() as u64;
    }

    fn number(&mut self, name: &str, value: &mut f64) {
        let mut found = Some(*value);
        self.optional(name, &mut found);
        *value = self.found(name, found).unwrap_or_default();
    }

    fn optional(&mut self, name: &str, value: &mut Option<f64>) {
        *value = match self.table.column(name) {
            Some(Column::Numbers(column)) => column[self.row],
            Some(_) => None,
            None => return,
        };
    }

    fn text(&mut self, name: &str, value: &mut String) {
        let found = match self.table.column(name) {
            Some(Column::Texts(column)) => column[self.row].as_ref().and_then(|text| text.as_utf8().ok()),
            Some(_) => None,
            None => return,
        };
        *value = self.found(name, found).unwrap_or_default().to_owned();
    }
}
