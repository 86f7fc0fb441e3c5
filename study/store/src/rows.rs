//! Records as rows of tables: to write and to read them by their columns.

use crate::table::{Column, Table};
use parquet::data_type::ByteArray;
use record::{ColumnVisitor, Columns, Run};

/// The name of the first number in a run's records that is not finite, if there is one: JSON cannot hold it.
pub(crate) fn non_finite_number(run: &Run) -> Option<String> {
    fn visit<R: Columns>(rows: &[R], visitor: &mut NonFinite) {
        rows.iter().for_each(|row| row.clone().visit(visitor));
    }
    let mut visitor = NonFinite::default();
    Run { series: Vec::new(), flows: Vec::new(), ..run.clone() }.visit(&mut visitor);
    visit(&run.flows, &mut visitor);
    visit(&run.subflows, &mut visitor);
    visit(&run.paths, &mut visitor);
    visit(run.tunnel.as_slice(), &mut visitor);
    visit(&run.cpu, &mut visitor);
    visitor.name
}

/// Finds the first number that is not finite.
#[derive(Default)]
struct NonFinite {
    name: Option<String>,
    /// Whether the record has the present part.
    has_part: bool,
}

impl ColumnVisitor for NonFinite {
    fn visit_u64(&mut self, _: &str, _: &mut Option<u64>, _: bool) {}

    fn visit_f64(&mut self, name: &str, value: &mut Option<f64>, _: bool) {
        if value.is_some_and(|value| !value.is_finite()) {
            self.name.get_or_insert_with(|| name.to_owned());
        }
    }

    fn visit_string(&mut self, _: &str, _: &mut String) {}

    fn begin_part(&mut self, is_there: bool) {
        self.has_part = is_there;
    }

    fn end_part(&mut self, _: bool) -> bool {
        self.has_part
    }
}

/// Appends rows to a table. Every row has the same columns in the same order; the first one creates them.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) table: Table,
    /// Index of the column of the next field.
    next_column: usize,
    /// Whether each of the parts that are being visited is there.
    parts: Vec<bool>,
}

impl Writer {
    /// Appends the row of one record of the run with this key.
    pub(crate) fn push(&mut self, (cell, seed): crate::Key, row: &impl Columns) {
        self.next_column = 0;
        self.visit_u64("cell", &mut Some(cell as u64), true);
        self.visit_u64("seed", &mut Some(seed), true);
        row.clone().visit(self);
    }

    fn column(&mut self, name: &str, new_column: Column) -> &mut Column {
        if self.next_column == self.table.columns.len() {
            self.table.columns.push((name.to_owned(), new_column));
        }
        self.next_column += 1;
        &mut self.table.columns[self.next_column - 1].1
    }

    /// The value of a cell: none in a part that the record lacks.
    fn cell<T>(&self, value: Option<T>) -> Option<T> {
        value.filter(|_| self.parts.iter().all(|is_there| *is_there))
    }
}

impl ColumnVisitor for Writer {
    fn visit_u64(&mut self, name: &str, value: &mut Option<u64>, _: bool) {
        let value = self.cell(*value);
        let Column::Counts(column) = self.column(name, Column::Counts(Vec::new())) else { unreachable!() };
        column.push(value.map(|value| value as i64)); // the column is declared unsigned, so all 64 bits are kept
    }

    fn visit_f64(&mut self, name: &str, value: &mut Option<f64>, _: bool) {
        let value = self.cell(*value);
        let Column::Numbers(column) = self.column(name, Column::Numbers(Vec::new())) else { unreachable!() };
        column.push(value);
    }

    fn visit_string(&mut self, name: &str, value: &mut String) {
        let value = self.cell(Some(ByteArray::from(value.as_str())));
        let Column::Texts(column) = self.column(name, Column::Texts(Vec::new())) else { unreachable!() };
        column.push(value);
    }

    fn begin_part(&mut self, is_there: bool) {
        self.parts.push(is_there);
    }

    fn end_part(&mut self, _: bool) -> bool {
        self.parts.pop().is_some_and(|is_there| is_there)
    }
}

/// Reads one row of a table and notes the first required column without a value. A table that an older version wrote may
/// lack a column: its field keeps the default.
pub(crate) struct Reader<'a> {
    table: &'a Table,
    row: usize,
    /// Whether each of the parts that are being visited has a value.
    parts: Vec<bool>,
    /// The error for the first required column without a value.
    missing: Option<String>,
    /// Whether the table has zeros where a record lacks a part.
    has_zeros: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(table: &'a Table, row: usize) -> Self {
        Self { table, row, parts: Vec::new(), missing: None, has_zeros: false }
    }

    /// As `new`, of a table in which a record without a part may have zeros, as older versions wrote them.
    pub(crate) fn with_zeros(self, has_zeros: bool) -> Self {
        Self { has_zeros, ..self }
    }

    /// The key of the run this row belongs to.
    pub(crate) fn key(&mut self) -> Result<crate::Key, String> {
        let mut key = [None; 2];
        for (name, value) in ["cell", "seed"].into_iter().zip(&mut key) {
            self.note(name, self.table.column(name).is_some(), true);
            self.visit_u64(name, value, true);
        }
        let [cell, seed] = key.map(Option::unwrap_or_default);
        self.missing.take().map_or(Ok((cell as usize, seed)), Err)
    }

    /// Fills `record` from this row.
    pub(crate) fn read<R: Columns>(&mut self, mut record: R) -> Result<R, String> {
        record.visit(self);
        self.missing.take().map_or(Ok(record), Err)
    }

    /// Notes whether a column has a value. In a part the record has the part then; elsewhere one that is required is
    /// missed.
    fn note(&mut self, name: &str, has_value: bool, is_required: bool) {
        match self.parts.last_mut() {
            Some(is_there) => *is_there |= has_value,
            None if is_required && !has_value => {
                self.missing.get_or_insert_with(|| format!("row {} has no {name}", self.row + 1));
            }
            None => {}
        }
    }
}

impl ColumnVisitor for Reader<'_> {
    fn visit_u64(&mut self, name: &str, value: &mut Option<u64>, is_required: bool) {
        let cell = match self.table.column(name) {
            Some(Column::Counts(column)) => column[self.row],
            Some(_) => None,
            None => return,
        };
        self.note(name, cell.is_some(), is_required);
        *value = cell.map(|cell| cell as u64);
    }

    fn visit_f64(&mut self, name: &str, value: &mut Option<f64>, is_required: bool) {
        let cell = match self.table.column(name) {
            Some(Column::Numbers(column)) => column[self.row],
            Some(_) => None,
            None => return,
        };
        self.note(name, cell.is_some(), is_required);
        *value = cell;
    }

    fn visit_string(&mut self, name: &str, value: &mut String) {
        let cell = match self.table.column(name) {
            Some(Column::Texts(column)) => column[self.row].as_ref().and_then(|bytes| bytes.as_utf8().ok()),
            Some(_) => None,
            None => return,
        };
        self.note(name, cell.is_some(), true);
        *value = cell.unwrap_or_default().to_owned();
    }

    fn begin_part(&mut self, _: bool) {
        self.parts.push(false);
    }

    fn end_part(&mut self, is_empty: bool) -> bool {
        self.parts.pop().is_some_and(|is_there| is_there) && !(is_empty && self.has_zeros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Flow, Protocol, QuicLosses, Requests, Video};

    fn read(flow: &Flow, has_zeros: bool) -> Flow {
        let mut writer = Writer::default();
        writer.push((0, 1), flow);
        Reader::new(&writer.table, 0).with_zeros(has_zeros).read(Flow::default()).expect("it is complete")
    }

    #[test]
    fn the_zeros_of_an_older_table_are_no_parts_and_those_of_a_new_one_are() {
        let complete = Flow { video: Some(Video::default()), ..Flow::complete() };
        assert_eq!(read(&complete, false), complete);
        let congestion_control = "cubic".to_owned();
        let requests = Some(Requests { requests: 3, ..Requests::default() });
        let mut flow = read(&Flow { requests, congestion_control, ..complete.clone() }, true);
        flow.infer_protocol();
        assert_eq!((flow.requests, flow.protocol), (requests, Protocol::Tcp));
        assert!(
            flow.video.is_none() && flow.gaps.is_none() && flow.multipath.is_none() && flow.one_way_delay_ms.is_none()
        );
        let quic = Some(QuicLosses { declared_lost_packets: 1, spurious_losses: 0 });
        let mut flow = read(&Flow { quic, congestion_control: "reno".to_owned(), ..complete.clone() }, true);
        flow.infer_protocol();
        assert_eq!((flow.quic, flow.protocol), (quic, Protocol::Mpquic));
        let mut flow = read(&complete, true);
        flow.infer_protocol();
        assert_eq!(flow.protocol, Protocol::Udp, "it has no congestion control");
    }
}
