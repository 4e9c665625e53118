//! Creates and replaces tables, with or without rows.

use std::collections::BTreeMap;

use deltalog::engine::protocol::StructType;
use deltalog::{ColumnPath, CreationMode, Error, Result};
use pyo3::prelude::*;

use crate::call::call_that_commits;
use crate::commit_arguments::{AlreadyApplied, Answer, CommitArguments};
use crate::snapshot::Snapshot;
use crate::store_options::StoreOptions;
use crate::stream::reader_of;
use crate::table_options::TableOptions;
use crate::upkeep::environment_with;
use crate::write_batches::{rows_of, written};
use crate::write_target::WriteTarget;

/// Creates or replaces a table, and writes the rows of `stream` in the same commit. If `schema_json` is not given,
/// the table has the schema of the stream. Returns `None` if the mode is `ignore` and the table exists.
#[pyfunction]
#[pyo3(signature = (
    uri, schema_json, mode, options, commit, storage_options = None, stream = None, cluster_by = None,
    constraints = None, base = None, file_format = None
))]
#[allow(clippy::too_many_arguments, reason = "the arguments of a Python function")]
pub(crate) fn create_table(
    py: Python<'_>,
    uri: &str,
    schema_json: Option<&str>,
    mode: &str,
    options: TableOptions,
    commit: CommitArguments,
    storage_options: Option<StoreOptions>,
    stream: Option<&Bound<'_, PyAny>>,
    cluster_by: Option<Vec<String>>,
    constraints: Option<BTreeMap<String, String>>,
    base: Option<Bound<'_, Snapshot>>,
    file_format: Option<String>,
) -> PyResult<Option<Answer>> {
    let reader = stream.map(reader_of).transpose()?;
    let base = base.map(|base| base.get().0.clone());
    call_that_commits(py, || {
        let target = WriteTarget::new(uri, storage_options, base)?;
        let mode = parse_mode(mode)?;
        let schema = match (schema_json, &reader) {
            (Some(json), _) => StructType::from_json(json),
            (None, Some(reader)) => StructType::from_arrow(&reader.schema()),
            (None, None) => Err(Error::invalid_argument("a table needs a schema, or data that has one")
                .with_hint("pass schema, such as Schema([Field('id', 'long')]), or data")),
        };
        let mut definition =
            options.definition(schema.map_err(|error| error.in_table(target.storage().url()))?);
        definition.clustering_columns =
            cluster_by.map(|columns| columns.iter().map(|column| ColumnPath::parse(column)).collect());
        definition.constraints = constraints.unwrap_or_default();
        let environment = environment_with(file_format.as_deref())?;
        let pending = target.define(&definition, mode, commit.progress(), &environment)?;
        let Some(pending) = pending else { return Ok(None) };
        if let Some(applied) = pending.already_applied() {
            return Ok(Some(Answer::AlreadyApplied(AlreadyApplied::new(applied))));
        }
        let operation = commit.describe(pending.definition_operation(reader.is_some()))?;
        let files = reader.map(|reader| written(pending.writer()?, rows_of(reader))?.finish()).transpose()?;
        Ok(Answer::of(pending.commit(files.unwrap_or_default(), operation)?))
    })
}

/// Parses the name of a mode, ignoring case.
pub(crate) fn parse_mode(name: &str) -> Result<CreationMode> {
    match name.to_ascii_lowercase().as_str() {
        "error" => Ok(CreationMode::ErrorIfExists),
        "ignore" => Ok(CreationMode::Ignore),
        "overwrite" => Ok(CreationMode::CreateOrReplace),
        _ => Err(Error::invalid_argument(format!("a table cannot be created with the mode '{name}'"))
            .with_hint("use error, ignore or overwrite")),
    }
}
