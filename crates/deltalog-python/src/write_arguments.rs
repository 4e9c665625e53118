//! The options of a write.

use deltalog::engine::commit::{Operation, PartitionOverwrite, SaveMode};
use deltalog::engine::protocol::StructType;
use deltalog::{Environment, PendingWrite, ReplaceWhere, Result, SchemaMode, WriteRequest};
use pyo3::prelude::*;

use crate::commit_arguments::CommitArguments;
use crate::table_options::TableOptions;
use crate::upkeep::environment_with;

/// The arguments of a write: `deltalog.arguments.WriteArguments` in Python.
#[derive(FromPyObject)]
pub(crate) struct WriteArguments {
    mode: String,
    options: TableOptions,
    commit: CommitArguments,
    partition_overwrite: String,
    predicate: Option<String>,
    schema_mode: Option<String>,
    target_file_size: Option<u64>,
    /// A `FileFormat` as JSON.
    file_format: Option<String>,
}

impl WriteArguments {
    /// Returns a request to write data with the schema `schema`.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for an unknown name of a mode.
    pub(crate) fn request(&self, schema: StructType) -> Result<WriteRequest> {
        let mut request = self.options.clone().request(schema, SaveMode::parse(&self.mode)?);
        request.partition_overwrite = PartitionOverwrite::parse(&self.partition_overwrite)?;
        request.app_transactions = self.commit.progress();
        request.replace_where = self.predicate.as_deref().map(ReplaceWhere::new);
        request.schema_mode =
            self.schema_mode.as_deref().map(SchemaMode::parse).transpose()?.unwrap_or_default();
        request.target_file_size = self.target_file_size;
        Ok(request)
    }

    /// Returns whether the write gives an existing table the columns of the data.
    pub(crate) fn redefines_columns(&self) -> Result<bool> {
        let mode = self.schema_mode.as_deref().map(SchemaMode::parse).transpose()?;
        Ok(mode == Some(SchemaMode::Overwrite))
    }

    /// Returns the environment of the write.
    ///
    /// # Errors
    /// Returns the errors of [`environment_with`].
    pub(crate) fn environment(&self) -> Result<Environment> {
        environment_with(self.file_format.as_deref())
    }

    /// Returns the description that the commit of `pending` records.
    ///
    /// # Errors
    /// Returns the errors of [`CommitArguments::describe`].
    pub(crate) fn operation(&self, pending: &PendingWrite) -> Result<Operation> {
        let partition_by = serde_json::Value::from(pending.partition_columns()).to_string();
        let operation = Operation::new("WRITE")
            .parameter("mode", SaveMode::parse(&self.mode)?.name())
            .parameter("partitionBy", partition_by);
        let predicate = self.predicate.as_deref();
        self.commit.describe(
            predicate.into_iter().fold(operation, |operation, sql| operation.parameter("predicate", sql)),
        )
    }
}
