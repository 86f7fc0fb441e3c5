//! Tables: read in place by any library that knows the Arrow PyCapsule interface.

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, RecordBatchIterator, StringArray,
    UInt64Array,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Field, Schema};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use std::sync::Arc;
use store::frame::{Frame, Values};

/// A table in Arrow's memory format.
#[pyclass(frozen, module = "ropewalk._native")]
pub(crate) struct Table(RecordBatch);

impl Table {
    /// A table of these columns. Numbers move in; a missing one is null.
    pub(crate) fn new(frame: Frame) -> PyResult<Self> {
        let columns = frame.columns.into_iter().map(|(name, values)| (name, array(values)));
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) =
            columns.map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array)).unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map(Self).map_err(refused)
    }
}

#[pymethods]
impl Table {
    /// The schema's capsule, `arrow_schema`.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref()).map_err(refused)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The stream's capsule, `arrow_array_stream`. Consumers convert to `requested_schema` themselves.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The first `rows` rows, all if none: for each column a list.
    #[pyo3(signature = (rows=None))]
    fn to_dict<'py>(&self, py: Python<'py>, rows: Option<usize>) -> PyResult<Bound<'py, PyDict>> {
        let batch = self.0.slice(0, rows.unwrap_or(usize::MAX).min(self.0.num_rows()));
        let dict = PyDict::new(py);
        for (field, array) in self.0.schema().fields().iter().zip(batch.columns()) {
            dict.set_item(field.name(), list(py, array.as_ref())?)?;
        }
        Ok(dict)
    }
}

fn array(values: Values) -> ArrayRef {
    match values {
        Values::Counts(values) => Arc::new(UInt64Array::from(values)),
        Values::Numbers(values) => {
            let mut present = BooleanBufferBuilder::new(values.len());
            values.iter().for_each(|value| present.append(!value.is_nan()));
            Arc::new(Float64Array::new(values.into(), Some(present.finish().into())))
        }
        Values::Texts { texts, codes } => {
            let codes: Int32Array = codes.into_iter().map(|code| code.map(|code| code as i32)).collect();
            Arc::new(DictionaryArray::<Int32Type>::new(codes, Arc::new(StringArray::from(texts))))
        }
    }
}

/// The values of a column as Python objects.
fn list<'py>(py: Python<'py>, array: &dyn Array) -> PyResult<Bound<'py, PyList>> {
    let any = array.as_any();
    if let Some(counts) = any.downcast_ref::<UInt64Array>() {
        return PyList::new(py, counts.values().iter());
    }
    if let Some(numbers) = any.downcast_ref::<Float64Array>() {
        return PyList::new(py, numbers.iter().collect::<Vec<_>>());
    }
    let texts = any.downcast_ref::<DictionaryArray<Int32Type>>();
    let texts = texts.and_then(DictionaryArray::downcast_dict::<StringArray>);
    PyList::new(py, texts.map_or_else(Vec::new, |texts| texts.into_iter().collect()))
}

fn refused(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Table>()
}
