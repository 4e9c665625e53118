//! Completes rows as the table requires them: with all columns, in the right types, and checked.

use arrow::record_batch::RecordBatch;

use super::fit::fit;
use super::spec::TableWriteSpec;
use super::split::Splitter;
use crate::error::Result;
use crate::expression::constraints::Constraints;

/// Fits `batch` to the table, fills the columns that it does not have, and checks every row.
///
/// # Errors
/// `SchemaMismatch` if the batch does not fit, `InvalidArgument` if a row violates a constraint.
pub(super) fn complete(
    batch: &RecordBatch,
    spec: &TableWriteSpec,
    constraints: &Constraints,
    splitter: &Splitter,
) -> Result<RecordBatch> {
    if spec.rules().is_empty() {
        let fitted = fit(batch, spec.arrow())?;
        spec.check_voids(&fitted)?;
        // Files store partition values as they are in the log.
        return if spec.keeps_partition_columns() { splitter.as_stored(fitted) } else { Ok(fitted) };
    }
    let given = batch.schema_ref();
    let fitted = fit(batch, &constraints.schema_before_filling(spec.arrow(), given))?;
    let filled = constraints.fill(fitted, spec.arrow(), given)?;
    // Generated columns and constraints are evaluated with values as they are stored.
    let filled = splitter.as_stored(filled)?;
    let filled = splitter.as_stored(constraints.generate(filled, spec.arrow(), given)?)?;
    spec.check_voids(&filled)?;
    match constraints.violation(&filled)? {
        Some(violation) => Err(violation.into()),
        None => Ok(filled),
    }
}

/// Completes rows for a caller that writes them elsewhere, or to several files.
pub(crate) struct RowCompletion {
    spec: TableWriteSpec,
    constraints: Constraints,
    splitter: Splitter,
}

impl RowCompletion {
    /// Binds the rules of `spec`.
    ///
    /// # Errors
    /// `InvalidArgument` if the table cannot be partitioned by its columns, or if a constraint or a generated column
    /// cannot be evaluated.
    pub(crate) fn new(spec: TableWriteSpec) -> Result<Self> {
        let splitter = Splitter::new(spec.arrow(), spec.partition_columns())?;
        let constraints = spec.bound_rules()?;
        Ok(Self { spec, constraints, splitter })
    }

    /// Fits `batch` to the table, fills the columns that it does not have, and checks every row.
    ///
    /// # Errors
    /// `SchemaMismatch` if the batch does not fit, `InvalidArgument` if a row violates a constraint.
    pub(crate) fn complete(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        complete(batch, &self.spec, &self.constraints, &self.splitter)
    }
}
