//! Writes manifests, which allow other engines to read the table.

use deltalog::generate_manifests as core_generate;
use pyo3::prelude::*;

use crate::call::call;
use crate::snapshot::Snapshot;

/// Writes the manifests of the newest version. Returns that version, and how many manifests were written and deleted.
#[pyfunction]
pub(crate) fn generate_manifests(
    py: Python<'_>,
    snapshot: &Bound<'_, Snapshot>,
) -> PyResult<(u64, u64, u64)> {
    let snapshot = snapshot.get().0.clone();
    call(py, || {
        let done = core_generate(&snapshot)?;
        Ok((done.version, done.written, done.deleted))
    })
}
