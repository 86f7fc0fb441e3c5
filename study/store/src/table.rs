//! A table in memory, written to and read from a Parquet file.
//!
//! Three kinds of column are enough. Every column may have gaps, as data frames write them.

use crate::{Error, files, names};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result as Parquet};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// A column. Texts share their bytes, so that a name repeated a million times is stored once.
#[derive(Clone, Debug)]
pub(crate) enum Column {
    Counts(Vec<Option<i64>>),
    Numbers(Vec<Option<f64>>),
    Texts(Vec<Option<ByteArray>>),
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Counts(values) => values.len(),
            Self::Numbers(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    fn clear(&mut self) {
        match self {
            Self::Counts(values) => values.clear(),
            Self::Numbers(values) => values.clear(),
            Self::Texts(values) => values.clear(),
        }
    }

    fn schema(&self, name: &str) -> Parquet<Type> {
        let (physical, logical) = match self {
            Self::Counts(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Self::Numbers(_) => (Physical::DOUBLE, None),
            Self::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(Repetition::OPTIONAL)
            .build()
    }
}

/// Named columns of one length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<(String, Column)>,
}

impl Table {
    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    /// The columns without their rows.
    pub(crate) fn without_rows(mut self) -> Self {
        self.columns.iter_mut().for_each(|(_, column)| column.clear());
        self
    }

    pub(crate) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(column_name, _)| column_name == name).map(|(_, column)| column)
    }

    /// A column of whole numbers.
    pub(crate) fn counts(&self, name: &str) -> Result<&[Option<i64>], String> {
        match self.column(name) {
            Some(Column::Counts(column)) => Ok(column),
            _ => Err(format!("no column {name}")),
        }
    }

    /// A column of numbers.
    pub(crate) fn numbers(&self, name: &str) -> Result<&[Option<f64>], String> {
        match self.column(name) {
            Some(Column::Numbers(column)) => Ok(column),
            _ => Err(format!("no column {name}")),
        }
    }

    /// A column of texts.
    pub(crate) fn texts(&self, name: &str) -> Result<&[Option<ByteArray>], String> {
        match self.column(name) {
            Some(Column::Texts(column)) => Ok(column),
            _ => Err(format!("no column {name}")),
        }
    }

    fn schema(&self) -> Parquet<Type> {
        let fields = self.columns.iter().map(|(name, column)| column.schema(name).map(Arc::new));
        Type::group_type_builder("ropewalk").with_fields(fields.collect::<Parquet<_>>()?).build()
    }
}

/// Writes tables with the columns of `head` into one file, a row group each.
pub(crate) fn write(path: &Path, head: &Table, groups: impl Iterator<Item = Table>) -> Result<(), Error> {
    try_write(path, head, groups.map(Ok))
}

/// As [`write`]. Without all of the tables the file stays as it was.
pub(crate) fn try_write(
    path: &Path,
    head: &Table,
    groups: impl Iterator<Item = Result<Table, Error>>,
) -> Result<(), Error> {
    files::replace(path, |file| {
        let mut failure = None;
        let groups = groups.map_while(|group| group.map_err(|error| failure = Some(error)).ok());
        write_groups(file, head, groups).map_err(|error| refusal(path, error))?;
        failure.map_or(Ok(()), Err)
    })
}

/// Most failures of the Parquet writer are the file system's.
fn refusal(path: &Path, error: ParquetError) -> Error {
    Error::Io { doing: "write", path: path.to_owned(), reason: std::io::Error::other(error) }
}

fn write_groups(file: &mut File, head: &Table, groups: impl Iterator<Item = Table>) -> Parquet<()> {
    let value = ColumnPath::from("value"); // of a series: bytes of like weight side by side compress best
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by("ropewalk".to_owned())
        .set_column_dictionary_enabled(value.clone(), false)
        .set_column_encoding(value, Encoding::BYTE_STREAM_SPLIT);
    let mut writer = SerializedFileWriter::new(file, Arc::new(head.schema()?), Arc::new(properties.build()))?;
    for table in groups.filter(|table| table.rows() > 0) {
        let mut group = writer.next_row_group()?;
        for (_, column) in &table.columns {
            let mut target = group.next_column()?.expect("as many columns as the head has");
            match (target.untyped(), column) {
                (ColumnWriter::Int64ColumnWriter(writer), Column::Counts(values)) => write_column(writer, values)?,
                (ColumnWriter::DoubleColumnWriter(writer), Column::Numbers(values)) => write_column(writer, values)?,
                (ColumnWriter::ByteArrayColumnWriter(writer), Column::Texts(values)) => write_column(writer, values)?,
                _ => unreachable!("the head has the same kinds of columns"),
            }
            target.close()?;
        }
        group.close()?;
    }
    writer.close().map(|_| ())
}

fn write_column<T: DataType>(
    writer: &mut parquet::column::writer::ColumnWriterImpl<'_, T>,
    values: &[Option<T::T>],
) -> Parquet<()> {
    let present: Vec<T::T> = values.iter().flatten().cloned().collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    writer.write_batch(&present, Some(&levels), None).map(|_| ())
}

/// Reads a file, a table each row group.
pub(crate) fn read(path: &Path) -> Result<Vec<Table>, Error> {
    let file = files::open(path).map_err(Error::io("read", path))?;
    let reader = SerializedFileReader::new(file).map_err(Error::damaged(path))?;
    let mut columns =
        reader.metadata().row_groups().iter().flat_map(parquet::file::metadata::RowGroupMetaData::columns);
    if columns.any(|column| matches!(column.compression(), Compression::ZSTD(_))) {
        return Err(Error::Zstandard { path: path.to_owned() });
    }
    read_groups(&reader).map_err(Error::damaged(path))
}

fn read_groups(reader: &SerializedFileReader<File>) -> Parquet<Vec<Table>> {
    (0..reader.num_row_groups()).map(|index| read_group(&*reader.get_row_group(index)?)).collect()
}

fn read_group(group: &dyn RowGroupReader) -> Parquet<Table> {
    let rows = group.metadata().num_rows() as usize;
    let mut columns = Vec::new();
    for index in 0..group.num_columns() {
        let metadata = group.metadata().column(index);
        let column = match metadata.column_type() {
            Physical::INT64 => Column::Counts(read_column::<Int64Type>(group, index, rows)?),
            Physical::DOUBLE => Column::Numbers(read_column::<DoubleType>(group, index, rows)?),
            Physical::BYTE_ARRAY => Column::Texts(read_column::<ByteArrayType>(group, index, rows)?),
            physical => return Err(ParquetError::General(format!("a column of type {physical}"))),
        };
        columns.push((names::current(metadata.column_descr().name()).into_owned(), column));
    }
    Ok(Table { columns })
}

fn read_column<T: DataType>(group: &dyn RowGroupReader, index: usize, rows: usize) -> Parquet<Vec<Option<T::T>>> {
    let mut reader = parquet::column::reader::get_typed_column_reader::<T>(group.get_column_reader(index)?);
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let (read, ..) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    if read != rows {
        return Err(ParquetError::General(format!("{read} of {rows} rows")));
    }
    let mut values = values.into_iter();
    Ok(levels.iter().map(|level| if *level > 0 { values.next() } else { None }).collect())
}
