//! The progress of long operations, as numbers.

use deltalog::ProgressReport;
use pyo3::prelude::*;

/// The id of an operation, its name, the table, the amounts of work done and in total, the unit, and whether it has
/// ended.
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

    /// Returns a report for each operation that is running, and a last report for each one that has ended since the
    /// previous call.
    fn reports(&self) -> Vec<Report> {
        let report = |report: ProgressReport| {
            let ProgressReport { id, operation, table, done, all, unit, is_finished, .. } = report;
            (id, operation, table, done, all, unit, is_finished)
        };
        self.0.reports().into_iter().map(report).collect()
    }
}
