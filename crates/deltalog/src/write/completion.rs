//! Completes rows so that they meet the table's requirements: all columns in the right types, and all rules checked.

use arrow::record_batch::RecordBatch;

use super::fit::fit;
use super::spec::TableWriteSpec;
use super::split::Splitter;
use crate::error::Result;
use crate::expression::constraints::Constraints;

/// Converts `batch` to the table's schema, fills the columns that it lacks, and checks every row.
///
/// # Errors
/// Returns `SchemaMismatch` if the batch does not fit, and `InvalidArgument` if a row violates a constraint.
pub(super) fn complete(
    batch: &RecordBatch,
    spec: &TableWriteSpec,
    constraints: &Constraints,
    splitter: &Splitter,
) -> Result<RecordBatch> {
    if spec.rules().is_empty() {
        let fitted = fit(batch, spec.arrow())?;
        spec.check_voids(&fitted)?;
        // Partition values in files must equal the values in the log.
        return if spec.keeps_partition_columns() { splitter.as_stored(fitted) } else { Ok(fitted) };
    }
    let given = batch.schema_ref();
    let fitted = fit(batch, &constraints.schema_before_filling(spec.arrow(), given))?;
    let filled = constraints.fill(fitted, spec.arrow(), given)?;
    // Generated columns and constraints are evaluated on the values that will be stored.
    let filled = splitter.as_stored(filled)?;
    let filled = splitter.as_stored(constraints.generate(filled, spec.arrow(), given)?)?;
    spec.check_voids(&filled)?;
    match constraints.violation(&filled)? {
        Some(violation) => Err(violation.into()),
        None => Ok(filled),
    }
}

/// Completes rows for a caller that writes them itself, for example to several files.
pub(crate) struct RowCompletion {
    spec: TableWriteSpec,
    constraints: Constraints,
    splitter: Splitter,
}

impl RowCompletion {
    /// Binds the rules in `spec`.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if the table cannot be partitioned by its partition columns, or if a constraint or a
    /// generated column cannot be evaluated.
    pub(crate) fn new(spec: TableWriteSpec) -> Result<Self> {
        let splitter = Splitter::new(spec.arrow(), spec.partition_columns())?;
        let constraints = spec.bound_rules()?;
        Ok(Self { spec, constraints, splitter })
    }

    /// Converts `batch` to the table's schema, fills the columns that it lacks, and checks every row.
    ///
    /// # Errors
    /// Returns `SchemaMismatch` if the batch does not fit, and `InvalidArgument` if a row violates a constraint.
    pub(crate) fn complete(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        complete(batch, &self.spec, &self.constraints, &self.splitter)
    }
}
