//! Records as rows of tables: each record lists its fields once, and the same list serves to write and to read them.

use crate::table::{Column, Table};
use parquet::data_type::ByteArray;
use record::{Cpu, Flow, LimitTimes, Path, Run, Subflow, Summary, Tunnel, Work};

/// Called with each field of a record: a [`Writer`] reads the value into a column, a [`Reader`] sets it from one.
pub(crate) trait FieldVisitor {
    fn visit_u64(&mut self, name: &str, value: &mut u64);
    fn visit_f64(&mut self, name: &str, value: &mut f64);
    fn visit_optional_f64(&mut self, name: &str, value: &mut Option<f64>);
    fn visit_string(&mut self, name: &str, value: &mut String);
}

/// A record that is stored as a row of a table.
pub(crate) trait Row: Clone {
    /// Calls `visitor` with the name and the value of every field.
    fn visit_fields(&mut self, visitor: &mut dyn FieldVisitor);
}

/// Visits the fields of a summary, whose columns have the name of the summary before theirs.
macro_rules! visit_summary {
    ($name:literal, $summary:expr, $visitor:ident) => {{
        let Summary { mean, p50, p95, p99, min, max } = $summary;
        $visitor.visit_f64(concat!($name, ".mean"), mean);
        $visitor.visit_f64(concat!($name, ".p50"), p50);
        $visitor.visit_f64(concat!($name, ".p95"), p95);
        $visitor.visit_f64(concat!($name, ".p99"), p99);
        $visitor.visit_f64(concat!($name, ".min"), min);
        $visitor.visit_f64(concat!($name, ".max"), max);
    }};
}

/// Visits the times of limits, whose columns have `limited_s` before their names.
fn visit_limits(limits: &mut Option<LimitTimes>, visitor: &mut dyn FieldVisitor) {
    let mut times = limits.map_or([None; 8], |limits| limits.as_array().map(Some));
    for (name, time) in LimitTimes::NAMES.iter().zip(&mut times) {
        visitor.visit_optional_f64(&format!("limited_s.{name}"), time);
    }
    *limits = times.iter().all(Option::is_some).then(|| LimitTimes::from_array(times.map(Option::unwrap_or_default)));
}

impl Row for Run {
    fn visit_fields(&mut self, visitor: &mut dyn FieldVisitor) {
        visitor.visit_string("digest", &mut self.digest);
        visitor.visit_f64("duration_s", &mut self.duration_s);
        visitor.visit_optional_f64("jain", &mut self.jain);
        visitor.visit_optional_f64("convergence_s", &mut self.convergence_s);
        visitor.visit_optional_f64("capacity_mbps", &mut self.capacity_mbps);
        visitor.visit_optional_f64("steal_s", &mut self.steal_s);
        visitor.visit_u64("controller_failures", &mut self.controller_failures);
        visitor.visit_string("controller_failure", &mut self.controller_failure);
        let Work { data_packet_hops, packet_hops, delivered_data_packets, events } = &mut self.work;
        visitor.visit_u64("work.data_packet_hops", data_packet_hops);
        visitor.visit_u64("work.packet_hops", packet_hops);
        visitor.visit_u64("work.delivered_data_packets", delivered_data_packets);
        visitor.visit_u64("work.events", events);
    }
}

impl Row for Flow {
    fn visit_fields(&mut self, visitor: &mut dyn FieldVisitor) {
        visitor.visit_string("flow", &mut self.name);
        visitor.visit_string("congestion_control", &mut self.congestion_control);
        visitor.visit_f64("goodput_mbps", &mut self.goodput_mbps);
        visitor.visit_u64("delivered_bytes", &mut self.delivered_bytes);
        visitor.visit_f64("throughput_mbps", &mut self.throughput_mbps);
        visitor.visit_u64("sent_packets", &mut self.sent_packets);
        visitor.visit_u64("retransmitted_packets", &mut self.retransmitted_packets);
        visitor.visit_u64("dropped_packets", &mut self.dropped_packets);
        visitor.visit_u64("recoveries", &mut self.recoveries);
        visitor.visit_u64("spurious_recoveries", &mut self.spurious_recoveries);
        visitor.visit_u64("timeouts", &mut self.timeouts);
        visitor.visit_f64("receive_window_limited_s", &mut self.receive_window_limited_s);
        visitor.visit_f64("send_buffer_limited_s", &mut self.send_buffer_limited_s);
        visitor.visit_optional_f64("completion_s", &mut self.completion_s);
        visitor.visit_optional_f64("share", &mut self.share);
        visitor.visit_u64("requests", &mut self.requests);
        visit_summary!("response_time_ms", &mut self.response_time_ms, visitor);
        visitor.visit_optional_f64("startup_s", &mut self.startup_s);
        visitor.visit_u64("stalls", &mut self.stalls);
        visitor.visit_f64("stall_s", &mut self.stall_s);
        visitor.visit_u64("frames", &mut self.frames);
        visitor.visit_u64("late_frames", &mut self.late_frames);
        visit_summary!("frame_delay_ms", &mut self.frame_delay_ms, visitor);
        visitor.visit_f64("video_mbps", &mut self.video_mbps);
        visitor.visit_u64("rate_switches", &mut self.rate_switches);
        visit_summary!("rtt_ms", &mut self.rtt_ms, visitor);
        visit_summary!("one_way_delay_ms", &mut self.one_way_delay_ms, visitor);
        visitor.visit_f64("longest_gap_ms", &mut self.longest_gap_ms);
        visitor.visit_u64("longest_loss_packets", &mut self.longest_loss_packets);
        visitor.visit_f64("peak_mbps", &mut self.peak_mbps);
        visit_summary!("protocol_delay_ms", &mut self.protocol_delay_ms, visitor);
        visit_summary!("head_of_line_degree_ms", &mut self.head_of_line_degree_ms, visitor);
        visit_summary!("head_of_line_delay_ms", &mut self.head_of_line_delay_ms, visitor);
        visitor.visit_u64("max_out_of_order_packets", &mut self.max_out_of_order_packets);
        visitor.visit_u64("redundant_packets", &mut self.redundant_packets);
        visitor.visit_u64("reinjected_packets", &mut self.reinjected_packets);
        visitor.visit_u64("duplicate_bytes", &mut self.duplicate_bytes);
        visitor.visit_u64("redundant_first_packets", &mut self.redundant_first_packets);
        visitor.visit_u64("declared_lost_packets", &mut self.declared_lost_packets);
        visitor.visit_u64("spurious_losses", &mut self.spurious_losses);
        visit_limits(&mut self.limited_s, visitor);
    }
}

impl Row for Cpu {
    fn visit_fields(&mut self, visitor: &mut dyn FieldVisitor) {
        visitor.visit_string("name", &mut self.name);
        visitor.visit_f64("user_s", &mut self.user_s);
        visitor.visit_f64("system_s", &mut self.system_s);
        visitor.visit_optional_f64("interrupt_s", &mut self.interrupt_s);
    }
}

impl Row for Subflow {
    fn visit_fields(&mut self, visitor: &mut dyn FieldVisitor) {
        visitor.visit_string("flow", &mut self.flow);
        visitor.visit_string("path", &mut self.path);
        visitor.visit_f64("throughput_mbps", &mut self.throughput_mbps);
        visitor.visit_u64("sent_packets", &mut self.sent_packets);
        visitor.visit_u64("retransmitted_packets", &mut self.retransmitted_packets);
        visitor.visit_u64("dropped_packets", &mut self.dropped_packets);
        visitor.visit_f64("drops_per_s", &mut self.drops_per_s);
        visitor.visit_u64("recoveries", &mut self.recoveries);
        visitor.visit_u64("timeouts", &mut self.timeouts);
        visitor.visit_u64("failures", &mut self.failures);
        visit_summary!("rtt_ms", &mut self.rtt_ms, visitor);
        visit_summary!("srtt_ms", &mut self.srtt_ms, visitor);
        visitor.visit_u64("declared_lost_packets", &mut self.declared_lost_packets);
        visitor.visit_u64("spurious_losses", &mut self.spurious_losses);
        visit_limits(&mut self.limited_s, visitor);
    }
}

impl Row for Path {
    fn visit_fields(&mut self, visitor: &mut dyn FieldVisitor) {
        visitor.visit_string("path", &mut self.name);
        visitor.visit_u64("sent_packets", &mut self.sent_packets);
        visitor.visit_u64("delivered_packets", &mut self.delivered_packets);
        visitor.visit_u64("dropped_packets", &mut self.dropped_packets);
        visitor.visit_u64("lost_packets", &mut self.lost_packets);
        visitor.visit_u64("marked_packets", &mut self.marked_packets);
        visitor.visit_f64("utilisation", &mut self.utilisation);
        visitor.visit_f64("queue_delay_ms", &mut self.queue_delay_ms);
        visitor.visit_u64("declared_lost_packets", &mut self.declared_lost_packets);
        visitor.visit_u64("spurious_losses", &mut self.spurious_losses);
        visitor.visit_u64("failures", &mut self.failures);
        visitor.visit_u64("duplicated_packets", &mut self.duplicated_packets);
        visitor.visit_u64("corrupted_packets", &mut self.corrupted_packets);
    }
}

impl Row for Tunnel {
    fn visit_fields(&mut self, visitor: &mut dyn FieldVisitor) {
        visitor.visit_u64("delivered_packets", &mut self.delivered_packets);
        visitor.visit_u64("reorder_buffered_packets", &mut self.reorder_buffered_packets);
        visitor.visit_u64("late_packets", &mut self.late_packets);
        visitor.visit_u64("dropped_packets", &mut self.dropped_packets);
        visitor.visit_u64("timeouts", &mut self.timeouts);
        visitor.visit_u64("overflows", &mut self.overflows);
        visitor.visit_u64("max_reorder_buffered_packets", &mut self.max_reorder_buffered_packets);
        visit_summary!("reorder_delay_ms", &mut self.reorder_delay_ms, visitor);
        visitor.visit_u64("marked_packets", &mut self.marked_packets);
        visitor.visit_u64("sent_fragments", &mut self.sent_fragments);
        visitor.visit_u64("retransmitted_fragments", &mut self.retransmitted_fragments);
        visitor.visit_u64("duplicate_fragments", &mut self.duplicate_fragments);
        visitor.visit_u64("missing_fragments", &mut self.missing_fragments);
        visitor.visit_u64("relayed_connections", &mut self.relayed_connections);
        visitor.visit_u64("max_relayed_bytes", &mut self.max_relayed_bytes);
    }
}

/// The name of the first number in a run's records that is not finite, if there is one: JSON cannot hold it.
pub(crate) fn non_finite_number(run: &Run) -> Option<String> {
    fn visit<R: Row>(rows: &[R], visitor: &mut NonFinite) {
        rows.iter().for_each(|row| row.clone().visit_fields(visitor));
    }
    let mut visitor = NonFinite(None);
    Run { series: Vec::new(), flows: Vec::new(), ..run.clone() }.visit_fields(&mut visitor);
    visit(&run.flows, &mut visitor);
    visit(&run.subflows, &mut visitor);
    visit(&run.paths, &mut visitor);
    visit(run.tunnel.as_slice(), &mut visitor);
    visit(&run.cpu, &mut visitor);
    visitor.0
}

/// Finds the first number that is not finite.
struct NonFinite(Option<String>);

impl FieldVisitor for NonFinite {
    fn visit_u64(&mut self, _: &str, _: &mut u64) {}

    fn visit_f64(&mut self, name: &str, value: &mut f64) {
        if !value.is_finite() {
            self.0.get_or_insert_with(|| name.to_owned());
        }
    }

    fn visit_optional_f64(&mut self, name: &str, value: &mut Option<f64>) {
        if let Some(value) = value {
            self.visit_f64(name, value);
        }
    }

    fn visit_string(&mut self, _: &str, _: &mut String) {}
}

/// Appends rows to a table. Every row has the same fields in the same order; the first one creates the columns.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) table: Table,
    /// Index of the column of the next field.
    next_column: usize,
}

impl Writer {
    /// Appends the row of one record of the run with this key.
    pub(crate) fn push(&mut self, (cell, seed): crate::Key, row: &impl Row) {
        self.next_column = 0;
        self.visit_u64("cell", &mut (cell as u64));
        self.visit_u64("seed", &mut { seed });
        row.clone().visit_fields(self);
    }

    fn column(&mut self, name: &str, new_column: Column) -> &mut Column {
        if self.next_column == self.table.columns.len() {
            self.table.columns.push((name.to_owned(), new_column));
        }
        self.next_column += 1;
        &mut self.table.columns[self.next_column - 1].1
    }
}

impl FieldVisitor for Writer {
    fn visit_u64(&mut self, name: &str, value: &mut u64) {
        let Column::Counts(column) = self.column(name, Column::Counts(Vec::new())) else { unreachable!() };
        column.push(Some(*value as i64)); // the column is declared unsigned, so all 64 bits are kept
    }

    fn visit_f64(&mut self, name: &str, value: &mut f64) {
        self.visit_optional_f64(name, &mut Some(*value));
    }

    fn visit_optional_f64(&mut self, name: &str, value: &mut Option<f64>) {
        let Column::Numbers(column) = self.column(name, Column::Numbers(Vec::new())) else { unreachable!() };
        column.push(*value);
    }

    fn visit_string(&mut self, name: &str, value: &mut String) {
        let Column::Texts(column) = self.column(name, Column::Texts(Vec::new())) else { unreachable!() };
        column.push(Some(ByteArray::from(value.as_str())));
    }
}

/// Reads one row of a table and notes the first field without a value. A table that an older version wrote may lack a
/// column: its field keeps the default.
pub(crate) struct Reader<'a> {
    table: &'a Table,
    row: usize,
    /// The error for the first field without a value.
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
            self.or_note_missing(name, self.table.column(name));
            self.visit_u64(name, value);
        }
        self.missing.take().map_or(Ok((cell as usize, seed)), Err)
    }

    /// Fills `record` from this row.
    pub(crate) fn read<R: Row>(&mut self, mut record: R) -> Result<R, String> {
        record.visit_fields(self);
        self.missing.take().map_or(Ok(record), Err)
    }

    fn or_note_missing<T>(&mut self, name: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.missing.get_or_insert_with(|| format!("row {} has no {name}", self.row + 1));
        }
        value
    }
}

impl FieldVisitor for Reader<'_> {
    fn visit_u64(&mut self, name: &str, value: &mut u64) {
        let cell = match self.table.column(name) {
            Some(Column::Counts(column)) => column[self.row],
            Some(_) => None,
            None => return,
        };
        *value = self.or_note_missing(name, cell).unwrap_or_default() as u64;
    }

    fn visit_f64(&mut self, name: &str, value: &mut f64) {
        let mut cell = Some(*value);
        self.visit_optional_f64(name, &mut cell);
        *value = self.or_note_missing(name, cell).unwrap_or_default();
    }

    fn visit_optional_f64(&mut self, name: &str, value: &mut Option<f64>) {
        *value = match self.table.column(name) {
            Some(Column::Numbers(column)) => column[self.row],
            Some(_) => None,
            None => return,
        };
    }

    fn visit_string(&mut self, name: &str, value: &mut String) {
        let cell = match self.table.column(name) {
            Some(Column::Texts(column)) => column[self.row].as_ref().and_then(|bytes| bytes.as_utf8().ok()),
            Some(_) => None,
            None => return,
        };
        *value = self.or_note_missing(name, cell).unwrap_or_default().to_owned();
    }
}
