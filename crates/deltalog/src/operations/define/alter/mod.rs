//! Changes of a table's definition: properties, features, columns and constraints. Protocol: "Change Metadata",
//! "Protocol Evolution", "Table Features".
//!
//! ```text
//!   TableChange ── plan ──► Draft: protocol, metadata, schema, what was read ── finish ──► Transaction
//! ```
//!
//! | file | what it changes |
//! | --- | --- |
//! | `properties` | table properties, name and description |
//! | `enable` | what else follows when a property activates a feature |
//! | `features` | the features that the protocol supports |
//! | `columns` | columns and nested fields: add, rename, drop, move, widen, nullability, comments |
//! | `constraints` | CHECK constraints |
//! | `clustering` | clustering columns |
//! | `evolve` | the schema, together with the rows of a write |
//! | `drop_feature` | features that the protocol supports no longer; rewrites files, makes several commits |
//! | `files` | facts about the files of the table |
//! | `iceberg` | what Iceberg compatibility asks of the table and of its files |
//!
//! - A change is a value. It is planned on the snapshot that the user has read. It is refused, before anything is
//!   written, if the changed table would break a rule or this crate could not write it.
//! - The protocol gets the features that the new metadata require. It is never lowered, except by `drop_feature`.
//! - A change conflicts with every other change of the metadata. It is rebased over new rows, unless it is only valid
//!   for rows that it has checked.
//! - Operations and parameters have the same names in the history as in the JVM implementation.

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
/// Columns are named by paths. A path leads through structs by the names of their fields, through arrays by `element`,
/// and through maps by `key` and `value`.
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
    /// Adds features to those that the protocol supports, by name.
    AddFeatures(Vec<String>),
    /// Upgrades the protocol to at least these versions. The versions 3 and 7, with lists of features, change nothing.
    UpgradeProtocol {
        /// The version for readers.
        reader: i32,
        /// The version for writers.
        writer: i32,
    },
    /// Adds columns or nested fields.
    AddColumns(Vec<NewColumn>),
    /// Makes these the columns of the table, in this order. A column that keeps its name stays the same column; it may
    /// get a new comment, a wider type, or become nullable.
    ReplaceColumns(StructType),
    /// Drops columns or nested fields.
    DropColumns(Vec<ColumnPath>),
    /// Renames a column or a nested field.
    RenameColumn {
        /// The path of the column.
        column: ColumnPath,
        /// The new name of its last part.
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
    /// Changes the type of a column, or of a part of it, to a wider one. A void column gets any type.
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
        /// The entries; `None` removes one.
        entries: BTreeMap<String, Option<String>>,
    },
    /// Sets the default value of a column.
    SetDefault {
        /// The name of the column.
        column: ColumnPath,
        /// An expression without columns, in Spark's SQL.
        sql: String,
    },
    /// Removes the default value of a column.
    DropDefault {
        /// The name of the column.
        column: ColumnPath,
    },
    /// Clusters the table by at most four columns. An empty list turns clustering off.
    ClusterBy(Vec<ColumnPath>),
    /// Adds CHECK constraints: names with their conditions in Spark's SQL.
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
    /// Applies the change to `draft`. Returns the description of the operation.
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

/// Changes a table. Returns `None`, and commits nothing, if the table is already as the change would make it.
///
/// `custom_metadata` are more fields of the commit's `commitInfo`.
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
/// `InvalidArgument`, `SchemaMismatch` and `Unsupported` for a change that the rules do not allow; `CommitConflict`;
/// `CommitStateUnknown`, after which the change may or may not have been committed; `CorruptLog`, and errors of the
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
