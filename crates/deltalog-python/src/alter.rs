//! Changes the definition of a table: its properties, features, columns and constraints.

use std::collections::BTreeMap;
use std::sync::Arc;

use deltalog::{ColumnPath, ColumnPosition, Error, NewColumn, PrimitiveType, Result, StructType};
use deltalog::{TableChange as CoreChange, alter_table, drop_feature};
use pyo3::prelude::*;

use crate::call::{call, call_that_commits};
use crate::commit_arguments::CommitArguments;
use crate::snapshot::Snapshot;
use crate::upkeep;

/// A change of a table.
#[pyclass(frozen, module = "deltalog._internal")]
pub(crate) struct TableChange(CoreChange);

/// Parses the position of a column: first, after another column, or last.
fn position_of(first: bool, after: Option<String>) -> Result<Option<ColumnPosition>> {
    match (first, after) {
        (true, Some(name)) => {
            Err(Error::invalid_argument(format!("a column is put first or after '{name}', not both")))
        }
        (true, None) => Ok(Some(ColumnPosition::First)),
        (false, after) => Ok(after.map(ColumnPosition::After)),
    }
}

/// Returns the fields of a schema as new columns of `parent`. The first field gets the given position, and the others
/// follow it.
fn new_columns(
    schema_json: &str,
    parent: Option<&str>,
    first: bool,
    after: Option<String>,
) -> Result<Vec<NewColumn>> {
    let parent = parent.map_or_else(|| ColumnPath::new([""; 0]), ColumnPath::parse);
    let mut position = position_of(first, after)?;
    let mut columns = Vec::new();
    for field in StructType::from_json(schema_json)?.fields() {
        let mut column = NewColumn::new(parent.clone(), field.clone());
        let next = position.is_some().then(|| ColumnPosition::After(field.name.clone()));
        column.position = std::mem::replace(&mut position, next);
        columns.push(column);
    }
    Ok(columns)
}

#[pymethods]
impl TableChange {
    #[staticmethod]
    fn set_properties(properties: BTreeMap<String, String>) -> Self {
        Self(CoreChange::SetProperties(properties))
    }

    #[staticmethod]
    fn unset_properties(names: Vec<String>, if_exists: bool) -> Self {
        Self(CoreChange::UnsetProperties { names, if_exists })
    }

    #[staticmethod]
    fn set_name(name: String) -> Self {
        Self(CoreChange::SetName(name))
    }

    #[staticmethod]
    fn set_description(description: String) -> Self {
        Self(CoreChange::SetDescription(description))
    }

    #[staticmethod]
    fn add_features(names: Vec<String>) -> Self {
        Self(CoreChange::AddFeatures(names))
    }

    #[staticmethod]
    fn upgrade_protocol(reader: i32, writer: i32) -> Self {
        Self(CoreChange::UpgradeProtocol { reader, writer })
    }

    /// Adds the fields of a schema as columns, in order.
    #[staticmethod]
    #[pyo3(signature = (schema_json, parent, first, after))]
    fn add_columns(
        py: Python<'_>,
        schema_json: &str,
        parent: Option<&str>,
        first: bool,
        after: Option<String>,
    ) -> PyResult<Self> {
        call(py, || Ok(Self(CoreChange::AddColumns(new_columns(schema_json, parent, first, after)?))))
    }

    /// Adds the fields of several schemas as columns. Each schema comes with its own parent and position.
    #[staticmethod]
    fn add_columns_at(
        py: Python<'_>,
        columns: Vec<(String, Option<String>, bool, Option<String>)>,
    ) -> PyResult<Self> {
        call(py, || {
            let mut all = Vec::new();
            for (schema_json, parent, first, after) in columns {
                all.extend(new_columns(&schema_json, parent.as_deref(), first, after)?);
            }
            Ok(Self(CoreChange::AddColumns(all)))
        })
    }

    #[staticmethod]
    fn replace_columns(py: Python<'_>, schema_json: &str) -> PyResult<Self> {
        call(py, || Ok(Self(CoreChange::ReplaceColumns(StructType::from_json(schema_json)?))))
    }

    #[staticmethod]
    fn drop_columns(columns: Vec<String>) -> Self {
        Self(CoreChange::DropColumns(columns.iter().map(|column| ColumnPath::parse(column)).collect()))
    }

    #[staticmethod]
    fn rename_column(column: &str, name: String) -> Self {
        Self(CoreChange::RenameColumn { column: ColumnPath::parse(column), name })
    }

    #[staticmethod]
    fn move_column(py: Python<'_>, column: &str, after: Option<String>) -> PyResult<Self> {
        call(py, || {
            let position = position_of(after.is_none(), after)?.unwrap_or(ColumnPosition::First);
            Ok(Self(CoreChange::MoveColumn { column: ColumnPath::parse(column), position }))
        })
    }

    #[staticmethod]
    fn set_nullable(column: &str, nullable: bool) -> Self {
        Self(CoreChange::SetNullable { column: ColumnPath::parse(column), nullable })
    }

    #[staticmethod]
    fn widen_column(py: Python<'_>, column: &str, data_type: &str) -> PyResult<Self> {
        call(py, || {
            let unknown = || Error::invalid_argument(format!("there is no primitive type '{data_type}'"));
            let data_type = PrimitiveType::from_name(data_type).ok_or_else(unknown)?;
            let data_type = data_type.into();
            Ok(Self(CoreChange::WidenColumn { column: ColumnPath::parse(column), data_type }))
        })
    }

    #[staticmethod]
    fn set_column_metadata(column: &str, entries: BTreeMap<String, Option<String>>) -> Self {
        Self(CoreChange::SetColumnMetadata { column: ColumnPath::parse(column), entries })
    }

    #[staticmethod]
    fn set_default(column: &str, sql: String) -> Self {
        Self(CoreChange::SetDefault { column: ColumnPath::parse(column), sql })
    }

    #[staticmethod]
    fn drop_default(column: &str) -> Self {
        Self(CoreChange::DropDefault { column: ColumnPath::parse(column) })
    }

    #[staticmethod]
    fn cluster_by(columns: Vec<String>) -> Self {
        Self(CoreChange::ClusterBy(columns.iter().map(|column| ColumnPath::parse(column)).collect()))
    }

    #[staticmethod]
    fn add_constraints(constraints: Vec<(String, String)>) -> Self {
        Self(CoreChange::AddConstraints(constraints))
    }

    #[staticmethod]
    fn drop_constraint(name: String, if_exists: bool) -> Self {
        Self(CoreChange::DropConstraint { name, if_exists })
    }
}

/// Changes a table, and returns its new version.
#[pyfunction(name = "alter_table")]
pub(crate) fn alter(
    py: Python<'_>,
    snapshot: &Bound<'_, Snapshot>,
    change: &Bound<'_, TableChange>,
    commit: CommitArguments,
) -> PyResult<u64> {
    let (snapshot, change) = (snapshot.get().0.clone(), change.get().0.clone());
    call_that_commits(py, || {
        let committed = alter_table(&snapshot, &change, commit.only_fields()?, &upkeep::environment())?;
        Ok(committed.map_or(snapshot.version(), |committed| committed.version))
    })
}

/// Drops a table feature. Returns the versions that were committed for this; the last one is the table's new version.
#[pyfunction(name = "drop_feature")]
pub(crate) fn drop_from(
    py: Python<'_>,
    snapshot: &Bound<'_, Snapshot>,
    name: &str,
    truncate_history: bool,
    commit: CommitArguments,
) -> PyResult<Vec<u64>> {
    let snapshot = snapshot.get().0.clone();
    call_that_commits(py, || {
        let (fields, commits) = (commit.only_fields()?, Arc::default());
        let environment = upkeep::environment().with_commits_in(&commits);
        drop_feature(&snapshot, name, truncate_history, fields, &environment)?;
        Ok(upkeep::noted(&commits))
    })
}
