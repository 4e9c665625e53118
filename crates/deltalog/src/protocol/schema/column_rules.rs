//! Rules of columns for their values, which are stored in the metadata of fields. (PROTOCOL, "Column Metadata".)
//!
//! | metadata | what it is | PROTOCOL |
//! | --- | --- | --- |
//! | [`INVARIANT`] | a condition | "Column Invariants" |
//! | [`GENERATED`] | an expression of other columns | "Generated Columns" |
//! | [`DEFAULT`] | the value of a column that is left out | "Default Columns" |
//! | [`IDENTITY_START`] and others | an increasing or decreasing number | "Identity Columns" |

use serde_json::Value;

use super::{StructField, TYPE_CHANGES};

/// The metadata of a column with an invariant.
pub(crate) const INVARIANT: &str = "delta.invariants";
/// The metadata of a generated column.
pub(crate) const GENERATED: &str = "delta.generationExpression";
/// The metadata of a column with a default value.
pub(crate) const DEFAULT: &str = "CURRENT_DEFAULT";
/// The value that Spark gives to older rows of a new column with a default. Delta tables do not have it.
pub(crate) const EXISTS_DEFAULT: &str = "EXISTS_DEFAULT";
/// The description of a column for people.
pub(crate) const COMMENT: &str = "comment";

/// The prefix of the metadata keys of identity columns.
pub(crate) const IDENTITY: &str = "delta.identity.";
/// The first value of an identity column.
pub(crate) const IDENTITY_START: &str = "delta.identity.start";
/// The difference between two values of an identity column.
pub(crate) const IDENTITY_STEP: &str = "delta.identity.step";
/// The highest value generated so far; with a negative step, the lowest.
pub(crate) const IDENTITY_MARK: &str = "delta.identity.highWaterMark";
/// Whether users may give values of an identity column.
pub(crate) const IDENTITY_EXPLICIT: &str = "delta.identity.allowExplicitInsert";

/// Returns whether the metadata `key` is about the files of a table: names and ids in files, type changes, values of
/// older rows, and the high water marks of identity columns.
pub(crate) fn is_of_files(key: &str) -> bool {
    key.starts_with("delta.columnMapping.")
        || key.starts_with("parquet.field.")
        || matches!(key, TYPE_CHANGES | IDENTITY_MARK | EXISTS_DEFAULT)
}

/// Columns for the definition of a table, which checks their rules.
impl StructField {
    /// Returns the field with a description for people.
    #[must_use]
    pub fn with_comment(self, comment: &str) -> Self {
        self.with_entry(COMMENT, comment.into())
    }

    /// Returns the field as a generated column: its values follow from other columns by `sql`, an expression in Spark's
    /// SQL.
    #[must_use]
    pub fn generated_as(self, sql: &str) -> Self {
        self.with_entry(GENERATED, sql.into())
    }

    /// Returns the field with a default value: a column that a writer leaves out gets the value of `sql`, an expression
    /// in Spark's SQL without columns.
    #[must_use]
    pub fn with_default(self, sql: &str) -> Self {
        self.with_entry(DEFAULT, sql.into())
    }

    /// Returns the field as an identity column, whose values writers generate from `start` on in steps of `step`. Users
    /// may only give values if `accepts_values`.
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
