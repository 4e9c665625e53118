//! `SparkPlan`: a packed list of files for the JVM.

use std::fs::File;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::Plan;

#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct SparkPlan(pub(crate) Plan);

#[pymethods]
impl SparkPlan {
    #[getter]
    fn kept(&self) -> u64 {
        self.0.kept
    }

    #[getter]
    fn total(&self) -> u64 {
        self.0.total
    }

    fn __len__(&self) -> usize {
        self.0.packed.len()
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, self.0.packed.len(), |mut bytes| Ok(self.0.packed.write(&mut bytes)?))
    }

    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.0.packed.write(&mut File::create(path)?)).map_err(PyErr::from)
    }
}
