//! Tables that other libraries read without copying (the Arrow C data and C stream interfaces).

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringViewBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field as Column, Schema, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use rexmit_study::results::{Field, Kind};

/// Number of rows of a batch.
const BATCH_ROWS: usize = 1 << 20;

/// A table whose columns are text, unsigned integers or floating-point numbers, any of which may be missing.
///
/// It has the shape ``(len(table), len(table.column_names))``. Libraries read it by Arrow's PyCapsule interface, without a copy:
/// ``polars.DataFrame(table)``. Columns whose names end in ``_s`` or ``_ms`` are in seconds or milliseconds.
#[pyclass(frozen, module = "rexmit._rexmit")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

fn invalid(error: &ArrowError) -> PyErr {
    PyValueError::new_err(format!("a table cannot be built: {error}"))
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn column_names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.schema.fields().iter().map(|field| field.name()))
    }

    fn __len__(&self) -> usize {
        self.len()
    }

    /// The types of the columns, as a capsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.schema).map_err(|error| invalid(&error))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The batches, which share their memory with the table.
    ///
    /// Parameters
    /// ----------
    /// requested_schema : object, optional
    ///     A capsule with another schema. It is ignored, as the interface allows.
    ///
    /// Returns
    /// -------
    /// object
    ///     A capsule with a stream.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __repr__(&self) -> String {
        format!("<rexmit.lab.Table with {} rows: {}>", self.len(), self.names().join(", "))
    }
}

impl Table {
    /// The number of rows.
    pub(super) fn len(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }
}

enum Builder {
    Text(StringViewBuilder),
    Integer(UInt64Builder),
    Number(Float64Builder),
}

impl Builder {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text(StringViewBuilder::new().with_deduplicate_strings()),
            Kind::Integer => Self::Integer(UInt64Builder::new()),
            Kind::Number => Self::Number(Float64Builder::new()),
        }
    }

    fn push(&mut self, field: Field<'_>) {
        match (self, field) {
            (Self::Text(text), Field::Text(value)) => text.append_value(value),
            (Self::Text(text), _) => text.append_null(),
            (Self::Integer(integers), Field::Integer(value)) => integers.append_value(value),
            (Self::Integer(integers), _) => integers.append_null(),
            (Self::Number(numbers), Field::Number(value)) => numbers.append_value(value),
            (Self::Number(numbers), _) => numbers.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(text) => Arc::new(text.finish()),
            Self::Integer(integers) => Arc::new(integers.finish()),
            Self::Number(numbers) => Arc::new(numbers.finish()),
        }
    }
}

/// A table that is being built row by row.
pub(super) struct Rows {
    schema: SchemaRef,
    builders: Vec<Builder>,
    kinds: Vec<Kind>,
    rows: usize,
    batches: Vec<RecordBatch>,
}

impl Rows {
    pub(super) fn new(columns: Vec<(String, Kind)>) -> Self {
        let kinds: Vec<Kind> = columns.iter().map(|(_, kind)| *kind).collect();
        let column = |(name, kind)| {
            let data = match kind {
                Kind::Text => DataType::Utf8View,
                Kind::Integer => DataType::UInt64,
                Kind::Number => DataType::Float64,
            };
            Column::new(name, data, true)
        };
        let schema = Arc::new(Schema::new(columns.into_iter().map(column).collect::<Vec<_>>()));
        let builders = kinds.iter().copied().map(Builder::new).collect();
        Self { schema, builders, kinds, rows: 0, batches: Vec::new() }
    }

    /// Adds a row with one field per column.
    pub(super) fn push(&mut self, row: &[Field<'_>]) -> Result<(), ArrowError> {
        self.builders.iter_mut().zip(row).for_each(|(builder, field)| builder.push(*field));
        self.rows += 1;
        if self.rows == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ArrowError> {
        let columns = self.builders.iter_mut().map(Builder::finish).collect();
        self.builders = self.kinds.iter().copied().map(Builder::new).collect();
        self.batches.push(RecordBatch::try_new(Arc::clone(&self.schema), columns)?);
        self.rows = 0;
        Ok(())
    }

    pub(super) fn finish(mut self) -> PyResult<Table> {
        if self.rows > 0 || self.batches.is_empty() {
            self.flush().map_err(|error| invalid(&error))?;
        }
        Ok(Table { schema: self.schema, batches: self.batches })
    }
}
