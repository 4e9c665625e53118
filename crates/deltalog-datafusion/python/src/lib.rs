//! Delta tables in the Python package `datafusion`, through DataFusion's interface for other binaries.
//!
//! The layout of the structures that both binaries share is only stable within a major version of DataFusion. With
//! another version, the process would crash. The Python part of this package checks the version before it passes
//! anything to this module.

mod error;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, LazyLock};

use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use datafusion_ffi::table_provider::FFI_TableProvider;
use datafusion_session::TableProvider;
use deltalog::{Snapshot, Storage};
use deltalog_datafusion::DeltaTableProvider;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tokio::runtime::{Builder, Runtime};

use crate::error::to_python;

/// Runs the tasks that parts of a plan in this binary start. Rows are read and written on other threads.
static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_multi_thread().worker_threads(1).thread_name("deltalog-datafusion").build()
});

/// A table as the structures of DataFusion.
#[pyclass(frozen, module = "deltalog_datafusion._datafusion")]
struct Table {
    provider: Arc<DeltaTableProvider>,
}

#[pymethods]
impl Table {
    /// Opens the table at `location`, whose id must be `table_id`. Without `version`, opens its newest version.
    #[staticmethod]
    fn open(
        py: Python<'_>,
        location: &str,
        version: Option<u64>,
        table_id: &str,
        storage_options: HashMap<String, String>,
        allowed_roots: Vec<String>,
    ) -> PyResult<Self> {
        let open = || {
            let options = storage_options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let mut builder = Snapshot::builder(&Storage::open(location, options)?).table_id(table_id);
            for root in &allowed_roots {
                builder = builder.allow_root(root)?;
            }
            if let Some(version) = version {
                builder = builder.version(version);
            }
            DeltaTableProvider::new(&builder.open()?)
        };
        let provider = py.detach(open).map_err(|error| to_python(py, &error))?;
        Ok(Self { provider: Arc::new(provider) })
    }

    /// The version that queries see.
    #[getter]
    fn version(&self, py: Python<'_>) -> PyResult<u64> {
        let snapshot = py.detach(|| self.provider.snapshot()).map_err(|error| to_python(py, &error))?;
        Ok(snapshot.version())
    }

    /// Returns the capsule that a session of DataFusion registers. `session` is a session, or the capsule of its codec.
    fn capsule<'py>(&self, py: Python<'py>, session: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
        let codec = match session.is_instance_of::<PyCapsule>() {
            true => session,
            false => session.call_method0("__datafusion_logical_extension_codec__")?,
        };
        let codec = codec
            .cast_into::<PyCapsule>()
            .map_err(|_| PyTypeError::new_err("the codec of the session is not a capsule"))?;
        let pointer = codec.pointer_checked(Some(c"datafusion_logical_extension_codec"))?;
        // SAFETY: a capsule with this name points to an `FFI_LogicalExtensionCodec`, and keeps it alive until this
        // function returns. The caller has checked that the major version of the installed DataFusion is the one that
        // this binary was built for.
        #[allow(unsafe_code, reason = "a capsule has a pointer")]
        let codec = unsafe { pointer.cast::<FFI_LogicalExtensionCodec>().as_ref() }.clone();
        let runtime = RUNTIME.as_ref().map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let provider = Arc::clone(&self.provider) as Arc<dyn TableProvider>;
        let provider =
            FFI_TableProvider::new_with_ffi_codec(provider, true, Some(runtime.handle().clone()), codec);
        PyCapsule::new_with_value(py, provider, c"datafusion_table_provider")
    }
}

/// Delta tables as structures of DataFusion.
#[pymodule]
fn _datafusion(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Table>()?;
    module.add("DATAFUSION_MAJOR", datafusion_ffi::version())
}
