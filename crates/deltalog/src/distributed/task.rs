//! What a worker must know to write files of a write.

use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::pending_write::PendingWrite;
use crate::protocol::{Add, Metadata, Protocol};
use crate::replacement::ReplaceWhere;
use crate::storage::Storage;
use crate::write::{DataWriter, TableWriteSpec, WriteOptions};
use crate::write_request::checking;

use super::fragment::{Fragment, check_format};

/// A description of a write for the processes that write its files: schema, partition columns, rules, statistics and
/// sizes, as protocol and metadata of the table say. It holds no credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WriteTask {
    format: u32,
    table: String,
    /// The id of the write: the directory of its files, relative to the table's root.
    write: String,
    protocol: Protocol,
    metadata: Metadata,
    clustering: Vec<Vec<String>>,
    replace_where: Option<ReplaceWhere>,
    target_file_size: u64,
}

impl WriteTask {
    /// Describes `pending`, whose files are below `directory`.
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
        }
    }

    /// Reads what [`WriteTask::to_json`] has written.
    ///
    /// # Errors
    /// `InvalidArgument` for any other text, also for that of another version of this crate.
    pub fn from_json(json: &str) -> Result<Self> {
        check_format(json, "a task of a write")?;
        serde_json::from_str(json)
            .map_err(|error| Error::invalid_argument("the text is not a task of a write").with_source(error))
    }

    /// Returns the task as text, for other processes.
    ///
    /// # Errors
    /// `InvalidArgument` if it has no JSON form.
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

    /// Returns a writer of files at `storage`, the same table with the worker's own credentials. The log is not read.
    ///
    /// If the writer fails or is dropped, it deletes its files.
    ///
    /// # Errors
    /// `CorruptLog` if the task's metadata is not valid, and those of [`DataWriter::new`].
    pub fn writer(&self, storage: &Storage, environment: &Environment) -> Result<DataWriter> {
        let located = |error: Error| error.in_table(storage.url());
        let spec = TableWriteSpec::clustered(&self.protocol, &self.metadata, &self.clustering);
        let spec = checking(spec.map_err(located)?, self.replace_where.as_ref());
        let mut options = WriteOptions::new(environment.clone());
        options.target_file_size = Some(self.target_file_size);
        options.directory = Some(self.write.clone());
        DataWriter::new(storage.clone(), spec, options)
    }

    /// Returns the fragment of the files that a writer of this task has written.
    ///
    /// # Errors
    /// `InvalidArgument` for files that are not those of such a writer.
    pub fn fragment(&self, files: Vec<Add>) -> Result<Fragment> {
        Fragment::new(&self.write, files)
    }
}
