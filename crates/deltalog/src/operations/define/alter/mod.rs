//! Changes the definition of a table: its properties, features, columns and constraints. (Protocol: "Change
//! Metadata", "Protocol Evolution", "Table Features".)
//!
//! ```text
//!   TableChange ── plan ──► Draft: protocol, metadata, schema, what was read ── finish ──► Transaction
//! ```
//!
//! | file | what it changes |
//! | --- | --- |
//! | `properties` | table properties, the table's name and its description |
//! | `enable` | additional changes when a property activates a feature |
//! | `features` | the features that the protocol supports |
//! | `columns` | columns and nested fields: add, rename, drop, move, widen, nullability, comments |
//! | `constraints` | CHECK constraints |
//! | `clustering` | clustering columns |
//! | `evolve` | the schema, as part of a write of rows |
//! | `drop_feature` | removes features from the protocol; rewrites files and makes several commits |
//! | `files` | `add` actions of existing files |
//! | `iceberg` | ids and checks that Iceberg compatibility requires |
//!
//! - A change is a value, which is planned on the snapshot that the user has read. It is refused before anything is
//!   written if the changed table would break a rule, or if this crate could not write the changed table.
//! - The protocol gets the features that the new metadata requires. Only `drop_feature` removes features from it.
//! - A change conflicts with every other change of the metadata. It does not conflict with new rows, unless it is
//!   only valid for the rows that it has checked.
//! - The history shows operations and parameters under the same names as in the JVM implementation.

mod clustering;
mod columns;
mod constraints;
mod draft;
mod drop_feature;
mod enable;
mod evolve;
mod features;
mod files;
mod iceberg;
mod path;
mod properties;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

pub use columns::{ColumnPosition, NewColumn};
pub use drop_feature::drop_feature;
pub(crate) use evolve::{merged, overwritten};
pub(crate) use properties::with_properties;

use self::draft::Draft;
use crate::commit::{Committed, Operation, Transaction};
use crate::error::Result;
use crate::expression::predicate::ColumnPath;
use crate::protocol::{DataType, StructType};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;

/// A change of a table.
///
/// Columns are given by their paths. A path leads through structs by the names of their fields, through arrays by
/// `element`, and through maps by `key` and `value`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TableChange {
    /// Sets table properties.
    SetProperties(BTreeMap<String, String>),
    /// Removes table properties.
    UnsetProperties {
        /// The names of the properties.
        names: Vec<String>,
        /// Whether properties that are not set are ignored.
        if_exists: bool,
    },
    /// Sets the name of the table.
    SetName(String),
    /// Sets the description of the table.
    SetDescription(String),
    /// Adds the features with these names to the protocol.
    AddFeatures(Vec<String>),
    /// Upgrades the protocol to at least these versions. Reader version 3 and writer version 7 imply no
    /// features, so they change nothing.
    UpgradeProtocol {
        /// The minimum reader version.
        reader: i32,
        /// The minimum writer version.
        writer: i32,
    },
    /// Adds columns or nested fields.
    AddColumns(Vec<NewColumn>),
    /// Replaces all columns of the table by these, in this order. A column that keeps its name remains the same
    /// column; it may get a new comment or a wider type, or become nullable.
    ReplaceColumns(StructType),
    /// Drops columns or nested fields.
    DropColumns(Vec<ColumnPath>),
    /// Renames a column or a nested field.
    RenameColumn {
        /// The path of the column.
        column: ColumnPath,
        /// The column's new name, without the path of its struct.
        name: String,
    },
    /// Moves a column or a nested field within its struct.
    MoveColumn {
        /// The path of the column.
        column: ColumnPath,
        /// The new position.
        position: ColumnPosition,
    },
    /// Allows or forbids NULL in a column or a nested field.
    SetNullable {
        /// The path of the column.
        column: ColumnPath,
        /// Whether values may be NULL.
        nullable: bool,
    },
    /// Changes the type of a column, or of a part of a column, to a wider type. A void column can get any type.
    WidenColumn {
        /// The path of the column.
        column: ColumnPath,
        /// The new type.
        data_type: DataType,
    },
    /// Sets or removes entries in the metadata of a column or a nested field, such as `comment`.
    SetColumnMetadata {
        /// The path of the column.
        column: ColumnPath,
        /// The entries to set; an entry with `None` is removed.
        entries: BTreeMap<String, Option<String>>,
    },
    /// Sets the default value of a column.
    SetDefault {
        /// The name of the column.
        column: ColumnPath,
        /// An expression in Spark's SQL that does not refer to columns.
        sql: String,
    },
    /// Removes the default value of a column.
    DropDefault {
        /// The name of the column.
        column: ColumnPath,
    },
    /// Clusters the table by at most four columns. An empty list turns clustering off.
    ClusterBy(Vec<ColumnPath>),
    /// Adds CHECK constraints. Each is given by its name and its condition in Spark's SQL.
    AddConstraints(Vec<(String, String)>),
    /// Drops a CHECK constraint.
    DropConstraint {
        /// The name of the constraint.
        name: String,
        /// Whether a constraint that does not exist is ignored.
        if_exists: bool,
    },
}

impl TableChange {
    /// Applies the change to `draft`, and returns the description of the operation.
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Operation> {
        match self {
            Self::SetProperties(properties) => properties::set(draft, properties),
            Self::UnsetProperties { names, if_exists } => properties::unset(draft, names, *if_exists),
            Self::SetName(name) => Ok(properties::set_name(draft, name)),
            Self::SetDescription(description) => Ok(properties::set_description(draft, description)),
            Self::AddFeatures(names) => features::add(draft, names),
            Self::UpgradeProtocol { reader, writer } => features::raise(draft, *reader, *writer),
            Self::AddColumns(new) => columns::add(draft, new),
            Self::ReplaceColumns(columns) => columns::replace(draft, columns),
            Self::DropColumns(paths) => columns::drop(draft, paths),
            Self::RenameColumn { column, name } => columns::rename(draft, column, name),
            Self::MoveColumn { column, position } => columns::move_to(draft, column, position),
            Self::SetNullable { column, nullable } => columns::set_nullable(draft, column, *nullable),
            Self::WidenColumn { column, data_type } => columns::widen(draft, column, data_type),
            Self::SetColumnMetadata { column, entries } => columns::set_metadata(draft, column, entries),
            Self::SetDefault { column, sql } => columns::set_default(draft, column, Some(sql)),
            Self::DropDefault { column } => columns::set_default(draft, column, None),
            Self::ClusterBy(paths) => clustering::cluster_by(draft, paths),
            Self::AddConstraints(constraints) => constraints::add(draft, constraints),
            Self::DropConstraint { name, if_exists } => constraints::drop(draft, name, *if_exists),
        }
    }
}

/// Changes a table. If the table is already as the change would make it, commits nothing and returns `None`.
///
/// `custom_metadata` is added to the commit's `commitInfo`.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use deltalog::{Environment, Snapshot, TableChange, alter_table};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
/// # fn main() -> deltalog::Result<()> {
/// # let (_directory, storage) = example_table()?;
/// let properties = BTreeMap::from([("delta.appendOnly".to_owned(), "true".to_owned())]);
/// let change = TableChange::SetProperties(properties);
/// let snapshot = Snapshot::open(&storage, None)?;
/// let committed = alter_table(&snapshot, &change, Default::default(), &Environment::system())?;
/// assert_eq!(committed.map(|committed| committed.version), Some(snapshot.version() + 1));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns `InvalidArgument`, `SchemaMismatch` or `Unsupported` for a change that is not allowed; `CommitConflict`;
/// `CommitStateUnknown`, after which the change may or may not have been committed; `CorruptLog`; and errors from the
/// store.
pub fn alter_table(
    base: &Snapshot,
    change: &TableChange,
    custom_metadata: Map<String, Value>,
    environment: &Environment,
) -> Result<Option<Committed>> {
    let located = |error| base.located(error);
    let mut draft = Draft::of(base, environment).map_err(located)?;
    let operation = change.plan(&mut draft).map_err(located)?;
    let operation = operation.custom_metadata(custom_metadata).map_err(located)?;
    let transaction = draft.finish(operation).map_err(located)?;
    transaction.map(Transaction::commit_or_fail).transpose()
}
