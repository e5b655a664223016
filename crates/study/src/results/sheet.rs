//! A table that is written row by row to a Parquet file.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

/// Number of rows buffered before they are written.
const GROUP_ROWS: usize = 1 << 16;

/// The type of a column. Any cell may be empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Text in UTF-8.
    Text,
    /// An unsigned integer of 64 bits.
    Integer,
    /// A floating-point number of 64 bits.
    Number,
}

/// The value of one cell.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Field<'a> {
    /// A value of a column of [`Kind::Text`].
    Text(&'a str),
    /// A value of a column of [`Kind::Integer`].
    Integer(u64),
    /// A value of a column of [`Kind::Number`].
    Number(f64),
    /// An empty cell of any kind.
    Nothing,
}

impl From<Option<f64>> for Field<'_> {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::Nothing, Self::Number)
    }
}

/// A table that is being written.
pub(super) struct Sheet<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<Column>,
    rows: usize,
}

impl<W: Write + Send> Sheet<W> {
    /// A table with these columns, whose names are unique.
    pub(super) fn new(file: W, columns: &[(String, Kind)]) -> io::Result<Self> {
        Ok(Self::try_new(file, columns)?)
    }

    fn try_new(file: W, columns: &[(String, Kind)]) -> Result<Self> {
        let fields = columns.iter().map(|(name, kind)| Ok(Arc::new(field(name, *kind)?)));
        let fields = fields.collect::<Result<_>>()?;
        let schema = Type::group_type_builder("schema").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("rexmit {}", env!("CARGO_PKG_VERSION")))
            .build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
        let columns = columns.iter().map(|(_, kind)| Column::new(*kind)).collect();
        Ok(Self { writer, columns, rows: 0 })
    }

    /// Adds a row with one field per column.
    pub(super) fn push(&mut self, row: &[Field<'_>]) -> io::Result<()> {
        debug_assert_eq!(row.len(), self.columns.len());
        for (column, field) in self.columns.iter_mut().zip(row) {
            column.push(*field)?;
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let writer = group.next_column()?;
            let writer = writer.ok_or_else(|| ParquetError::General("a column is missing".into()));
            column.write(writer?)?;
        }
        self.rows = 0;
        group.close().map(drop)
    }

    /// Writes the remaining rows.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.flush()?;
        }
        self.writer.close()?;
        Ok(())
    }
}

fn field(name: &str, kind: Kind) -> Result<Type> {
    let (physical, logical) = match kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Integer => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::Number => (Physical::DOUBLE, None),
    };
    Type::primitive_type_builder(name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

/// A buffered column: the present fields, and per row a 1 for a present field or a 0 for an empty
/// one.
struct Column {
    values: Values,
    levels: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Number(Vec<f64>),
}

impl Column {
    fn new(kind: Kind) -> Self {
        let values = match kind {
            Kind::Text => Values::Text(Vec::new()),
            Kind::Integer => Values::Integer(Vec::new()),
            Kind::Number => Values::Number(Vec::new()),
        };
        Self { values, levels: Vec::new() }
    }

    fn push(&mut self, field: Field<'_>) -> Result<()> {
        match (&mut self.values, field) {
            (_, Field::Nothing) => {}
            (Values::Text(values), Field::Text(text)) => {
                // Text mostly repeats that of the row before; clones share the bytes.
                let last = values.last().filter(|last| last.data() == text.as_bytes()).cloned();
                values.push(last.unwrap_or_else(|| ByteArray::from(text)));
            }
            // The bits of an unsigned integer, as its logical type says.
            (Values::Integer(values), Field::Integer(integer)) => {
                values.push(integer.cast_signed());
            }
            (Values::Number(values), Field::Number(number)) => values.push(number),
            (_, field) => {
                return Err(ParquetError::General(format!("{field:?} in a column of others")));
            }
        }
        self.levels.push(i16::from(field != Field::Nothing));
        Ok(())
    }

    fn write(&mut self, mut writer: SerializedColumnWriter<'_>) -> Result<()> {
        let levels = Some(&self.levels[..]);
        match &mut self.values {
            Values::Text(values) => {
                writer.typed::<ByteArrayType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Integer(values) => {
                writer.typed::<Int64Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Number(values) => {
                writer.typed::<DoubleType>().write_batch(values, levels, None)?;
                values.clear();
            }
        }
        self.levels.clear();
        writer.close()
    }
}
