//! The progress of long operations, as numbers.

use deltalog::ProgressReport;
use pyo3::prelude::*;

/// Id, operation, table, done, all, unit, and whether the operation has ended.
type Report = (u64, &'static str, String, u64, Option<u64>, &'static str, bool);

/// Watches the long operations of this process.
#[pyclass(frozen, module = "deltalog._internal")]
#[derive(Debug)]
pub(crate) struct ProgressObserver(deltalog::ProgressObserver);

#[pymethods]
impl ProgressObserver {
    #[new]
    fn new() -> Self {
        Self(deltalog::ProgressObserver::new())
    }

    /// Returns a report of each operation that has begun; of each that has ended, one more.
    fn reports(&self) -> Vec<Report> {
        let report = |report: ProgressReport| {
            let ProgressReport { id, operation, table, done, all, unit, is_finished, .. } = report;
            (id, operation, table, done, all, unit, is_finished)
        };
        self.0.reports().into_iter().map(report).collect()
    }
}
