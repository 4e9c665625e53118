//! Rules for the values of columns, which are stored in the metadata of fields. (PROTOCOL, "Column Metadata".)
//!
//! | metadata key | content | PROTOCOL |
//! | --- | --- | --- |
//! | [`INVARIANT`] | a condition that each value must satisfy | "Column Invariants" |
//! | [`GENERATED`] | the expression from which the column is computed | "Generated Columns" |
//! | [`DEFAULT`] | the value of the column if a writer leaves it out | "Default Columns" |
//! | [`IDENTITY_START`] and others | how increasing or decreasing numbers are generated | "Identity Columns" |

use serde_json::Value;

use super::{StructField, TYPE_CHANGES};

/// The metadata key of a column's invariant.
pub(crate) const INVARIANT: &str = "delta.invariants";
/// The metadata key of a generated column's expression.
pub(crate) const GENERATED: &str = "delta.generationExpression";
/// The metadata key of a column's default value.
pub(crate) const DEFAULT: &str = "CURRENT_DEFAULT";
/// The metadata key of the value that a new column with a default has in older rows. Only Spark's own tables use it;
/// Delta tables do not.
pub(crate) const EXISTS_DEFAULT: &str = "EXISTS_DEFAULT";
/// The metadata key of a column's comment, a description for people.
pub(crate) const COMMENT: &str = "comment";

/// The common prefix of the metadata keys of identity columns.
pub(crate) const IDENTITY: &str = "delta.identity.";
/// The metadata key of an identity column's first value.
pub(crate) const IDENTITY_START: &str = "delta.identity.start";
/// The metadata key of the difference between two successive values of an identity column.
pub(crate) const IDENTITY_STEP: &str = "delta.identity.step";
/// The metadata key of the highest value that was generated so far, or of the lowest if the step is negative.
pub(crate) const IDENTITY_MARK: &str = "delta.identity.highWaterMark";
/// The metadata key that says whether users may provide values for an identity column.
pub(crate) const IDENTITY_EXPLICIT: &str = "delta.identity.allowExplicitInsert";

/// Returns whether the metadata `key` is about the files of a table: their column names and ids, type changes, the
/// values of new columns in older rows, and the high water marks of identity columns.
pub(crate) fn is_of_files(key: &str) -> bool {
    key.starts_with("delta.columnMapping.")
        || key.starts_with("parquet.field.")
        || matches!(key, TYPE_CHANGES | IDENTITY_MARK | EXISTS_DEFAULT)
}

/// Methods that add rules to a field when a table is defined. The rules are checked when the table is created.
impl StructField {
    /// Returns the field with a comment, a description for people.
    #[must_use]
    pub fn with_comment(self, comment: &str) -> Self {
        self.with_entry(COMMENT, comment.into())
    }

    /// Returns the field as a generated column. Its values are computed from other columns by `sql`, an expression in
    /// Spark's SQL.
    #[must_use]
    pub fn generated_as(self, sql: &str) -> Self {
        self.with_entry(GENERATED, sql.into())
    }

    /// Returns the field with a default value. If a writer leaves the column out, the column gets the value of `sql`,
    /// an expression in Spark's SQL that refers to no columns.
    #[must_use]
    pub fn with_default(self, sql: &str) -> Self {
        self.with_entry(DEFAULT, sql.into())
    }

    /// Returns the field as an identity column. Writers generate its values, from `start` on in steps of `step`. Users
    /// may provide values only if `accepts_values` is true.
    #[must_use]
    pub fn with_identity(self, start: i64, step: i64, accepts_values: bool) -> Self {
        self.with_entry(IDENTITY_START, start.into())
            .with_entry(IDENTITY_STEP, step.into())
            .with_entry(IDENTITY_EXPLICIT, accepts_values.into())
    }

    fn with_entry(self, key: &str, value: Value) -> Self {
        Self { metadata: self.metadata.with(key, Some(value)), ..self }
    }
}
