//! The information that a worker needs to write files that are part of a write.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::expression::constraints::Lane;
use crate::operations::insert::PendingWrite;
use crate::operations::insert::replacement::ReplaceWhere;
use crate::operations::insert::write_request::checking;
use crate::protocol::{Metadata, Protocol};
use crate::runtime::environment::{Environment, FileFormat};
use crate::runtime::passed_text;
use crate::storage::Storage;
use crate::write::{DataWriter, TableWriteSpec, WriteOptions};

use super::fragment::Fragment;

/// A description of a write for the processes that write its files: schema, partition columns, rules, file sizes, and
/// the columns with statistics. It is derived from the table's protocol and metadata, and contains no credentials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WriteTask {
    format: u32,
    table: String,
    /// The id of the write, which is also the directory of its files, relative to the table's root.
    write: String,
    protocol: Protocol,
    metadata: Metadata,
    clustering: Vec<Vec<String>>,
    replace_where: Option<ReplaceWhere>,
    target_file_size: u64,
    #[serde(default)]
    file_format: FileFormat,
    /// The lane in which the task's writer counts the values of identity columns; `None` if the task has no number.
    lane: Option<Lane>,
}

impl WriteTask {
    /// Describes the write `pending`, whose files are in `directory`.
    #[doc(hidden)]
    pub fn of(pending: &PendingWrite, directory: String) -> Self {
        let (protocol, metadata) = pending.table();
        Self {
            format: Fragment::FORMAT,
            table: pending.storage().url(),
            write: directory,
            protocol: protocol.clone(),
            metadata: metadata.clone(),
            clustering: pending.spec().clustering().to_vec(),
            replace_where: pending.replace_where().cloned(),
            target_file_size: pending.spec().target_file_size(),
            file_format: pending.environment().file_format().clone(),
            lane: None,
        }
    }

    /// Returns this task with the number `number`, counted from 0, out of `of` tasks.
    ///
    /// The number determines which values of identity columns the task assigns, so that no two tasks assign the same
    /// value. All tasks of a write must be numbered with the same `of`. At most one fragment per number can be
    /// committed, because a worker that ran twice has assigned the same values twice. Numbers that no task uses leave
    /// gaps in the values.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if `number` is not less than `of`.
    pub fn numbered(&self, number: u32, of: u32) -> Result<Self> {
        Ok(Self { lane: Some(Lane::new(number, of)?), ..self.clone() })
    }

    /// Parses a string that [`WriteTask::to_json`] has returned.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for any other string, including one from another version of this crate.
    pub fn from_json(json: &str) -> Result<Self> {
        passed_text::parse(json, "a write task", Fragment::FORMAT)
    }

    /// Serializes the task for other processes.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if the task cannot be represented in JSON.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| {
            Error::invalid_argument("the task of the write cannot be serialized").with_source(error)
        })
    }

    /// Returns the location of the table.
    pub fn table_url(&self) -> &str {
        &self.table
    }

    /// Returns the directory of the files, relative to the table's root. Its name is the write's id.
    pub fn directory(&self) -> &str {
        &self.write
    }

    /// Returns a writer of files at `storage`, which is the same table opened with the worker's own credentials. The
    /// log is not read.
    ///
    /// If the writer fails or is dropped, it deletes its files. Rows that lack an identity column can only be written
    /// with a task that has a number ([`WriteTask::numbered`]).
    ///
    /// # Errors
    /// Returns `CorruptLog` if the task's metadata is invalid, and the errors of [`DataWriter::new`].
    pub fn writer(&self, storage: &Storage, environment: &Environment) -> Result<DataWriter> {
        let located = |error: Error| error.in_table(storage.url());
        let spec = checking(self.spec().map_err(located)?, self.replace_where.as_ref()).in_lane(self.lane);
        self.writer_by(spec, storage, environment)
    }

    /// Returns the rules that writers of the table's files must follow.
    ///
    /// # Errors
    /// Returns `CorruptLog` if the task's metadata is invalid.
    pub(crate) fn spec(&self) -> Result<TableWriteSpec> {
        TableWriteSpec::clustered(&self.protocol, &self.metadata, &self.clustering)
    }

    /// Returns the table's protocol and metadata.
    pub(crate) fn table(&self) -> (&Protocol, &Metadata) {
        (&self.protocol, &self.metadata)
    }

    /// Returns a writer of files for this write that follows the rules of `spec`.
    ///
    /// # Errors
    /// The errors of [`DataWriter::new`].
    pub(crate) fn writer_by(
        &self,
        spec: TableWriteSpec,
        storage: &Storage,
        environment: &Environment,
    ) -> Result<DataWriter> {
        let mut options = WriteOptions::new(environment.clone().with_file_format(self.file_format.clone()));
        options.target_file_size = Some(self.target_file_size);
        options.directory = Some(self.write.clone());
        DataWriter::new(storage.clone(), spec, options)
    }

    /// Completes the files of a writer of this task, and returns the fragment that lists them.
    ///
    /// # Errors
    /// Returns the same errors as [`DataWriter::finish`], and `InvalidArgument` for a writer that no task has
    /// created.
    pub fn fragment(&self, writer: DataWriter) -> Result<Fragment> {
        let identities = writer.identities().clone();
        Fragment::new(&self.write, writer.finish()?, identities.counted())
    }
}
