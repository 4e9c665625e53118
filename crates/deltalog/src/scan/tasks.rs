//! Divides a scan into tasks, which other processes read.
//!
//! ```text
//!   coordinator                                workers (any process or machine that reaches the table)
//!   TableScan::tasks(n)
//!     ScanTask, as JSON ─────────────────────► read(storage) ── rows
//! ```
//!
//! - A task contains the table's location, the schema of the version, the predicate, and some of the files. A worker
//!   does not read the log, so all tasks read the same version, even if the table changes.
//! - A task contains no credentials. Each process opens the store with its own.
//! - A task may refer to files outside of the table's directory, below the roots that the coordinator allowed. A
//!   worker must therefore trust the source of its tasks.

use serde::{Deserialize, Serialize};

use super::files::FileListing;
use super::rows::{DataFile, RowScan, RowStream, with_row_ids};
use super::table::TableScan;
use super::task_files::{Listed, TaskFile, data_files, task_files};
use crate::error::{Error, Result};
use crate::expression::predicate::SavedPredicate;
use crate::protocol::{
    ColumnMappingMode, DeletionVectorDescriptor, MappedSchema, MaterializedRowTracking, PathResolver,
    StructType,
};
use crate::runtime::passed_text;
use crate::storage::{Storage, parse_location};

/// A part of a scan: some files of one version of a table, and which rows and columns to read from them. It contains
/// no credentials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScanTask {
    format: u32,
    table: String,
    version: u64,
    allowed_roots: Vec<String>,
    schema: String,
    column_mapping: ColumnMappingMode,
    partition_columns: Vec<String>,
    /// The columns in which files store row ids and row commit versions, if these are requested.
    row_ids: Option<[String; 2]>,
    /// The columns to read; `None` for all columns.
    columns: Option<Vec<String>>,
    /// The condition on the rows to return; `None` for all rows.
    predicate: Option<SavedPredicate>,
    view_types: bool,
    threads: Option<usize>,
    batch_rows: Option<usize>,
    rows: Option<u64>,
    files: Vec<TaskFile>,
}

impl TableScan {
    /// Divides the scan into at most `count` tasks of about the same size in bytes. Together, they return the rows of
    /// the scan. There are fewer tasks if there are fewer files, and no tasks if no file can contain a row of the
    /// scan.
    ///
    /// With [`TableScan::in_order`], each task has consecutive files of the file list, and the tasks follow the same
    /// order.
    ///
    /// ```
    /// use deltalog::{ScanTask, Snapshot, Storage, TableScan, col, lit};
    ///
    /// /// Runs in any process: a text comes in, and rows are read.
    /// fn work(task: &str) -> deltalog::Result<usize> {
    ///     let task = ScanTask::from_json(task)?;
    ///     let storage = Storage::open(task.table_url(), [])?;
    ///     task.read(&storage)?.map(|batch| Ok(batch?.num_rows())).sum()
    /// }
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
    /// # fn main() -> deltalog::Result<()> {
    /// # let (_directory, storage) = example_table()?;
    /// let snapshot = Snapshot::open(&storage, None)?;
    /// let tasks = TableScan::new(&snapshot).predicate(col("id").gt(lit(1))).tasks(4)?;
    /// assert_eq!(tasks.len(), 2);
    /// let mut rows = 0;
    /// for task in tasks {
    ///     rows += work(&task.to_json()?)?;
    /// }
    /// assert_eq!(rows, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns the same errors as [`TableScan::read`]. Returns `InvalidArgument` if `count` is 0, and for a scan with
    /// a limit, because separate tasks cannot count their rows together. Returns `Unsupported` for a predicate whose
    /// parts were parsed for different time zones.
    pub fn tasks(&self, count: usize) -> Result<Vec<ScanTask>> {
        if count == 0 {
            return Err(Error::invalid_argument("a scan needs at least one task"));
        }
        if self.limit.is_some() {
            return Err(Error::invalid_argument("a scan with a limit cannot be divided into tasks")
                .with_hint("leave out the limit, and stop reading after enough rows"));
        }
        self.scan()?;
        self.bound_predicate()?;
        self.divided(self.listing()?, count, true)
    }

    /// Divides the files of `listing`, a listing of the same snapshot, into tasks as [`TableScan::tasks`] does, but
    /// does not count their rows.
    ///
    /// # Errors
    /// Returns the same errors as [`TableScan::tasks`].
    #[doc(hidden)]
    pub fn tasks_of(&self, listing: FileListing, count: usize) -> Result<Vec<ScanTask>> {
        self.divided(listing, count, false)
    }

    fn divided(&self, listing: FileListing, count: usize, counts_rows: bool) -> Result<Vec<ScanTask>> {
        let snapshot = &self.snapshot;
        let files = task_files(snapshot, listing, Listed { row_ids: self.row_ids, rows: counts_rows })?;
        let empty = ScanTask {
            format: ScanTask::FORMAT,
            table: snapshot.storage().url(),
            version: snapshot.version(),
            allowed_roots: snapshot.resolver().allowed_roots().collect(),
            schema: snapshot.metadata().schema_string.clone(),
            column_mapping: snapshot.mapped_schema().mode(),
            partition_columns: snapshot.metadata().partition_columns.clone(),
            row_ids: self.row_tracking_columns()?.map(|columns| [columns.row_id, columns.row_commit_version]),
            columns: self.columns.clone(),
            predicate: self.predicate.as_ref().map(SavedPredicate::of).transpose()?,
            view_types: self.view_types,
            threads: self.threads,
            batch_rows: self.batch_rows,
            rows: None,
            files: Vec::new(),
        };
        let parts = if self.in_order { in_sequence(files, count) } else { balanced(files, count) };
        let task = |files: Vec<TaskFile>| ScanTask {
            rows: files.iter().map(|file| file.rows).sum(),
            files,
            ..empty.clone()
        };
        Ok(parts.into_iter().filter(|files| !files.is_empty()).map(task).collect())
    }
}

impl ScanTask {
    /// The version of the serialized format. All processes of a scan must use the same version.
    const FORMAT: u32 = 1;

    /// Parses a string that [`ScanTask::to_json`] has returned.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for any other string, including one from another version of this crate.
    pub fn from_json(json: &str) -> Result<Self> {
        passed_text::parse(json, "a scan task", Self::FORMAT)
    }

    /// Serializes the task for other processes.
    ///
    /// # Errors
    /// Returns `InvalidArgument` if the task cannot be represented in JSON.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| Error::invalid_argument("the scan task cannot be serialized").with_source(error))
    }

    /// Returns the location of the table.
    pub fn table_url(&self) -> &str {
        &self.table
    }

    /// Returns the number of files.
    pub fn num_files(&self) -> usize {
        self.files.len()
    }

    /// Returns the total size of the files in bytes.
    pub fn size_in_bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size))
    }

    /// Returns the number of rows in the files, without deleted rows. Rows for which the predicate is not true count as
    /// well. Returns `None` if the log does not state the number for all files.
    pub fn num_rows(&self) -> Option<u64> {
        self.rows
    }

    /// Reads only the given top-level columns, in this order, instead of the scan's columns. The predicate still
    /// applies.
    #[must_use]
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Reads the rows from `storage`, which is the same table opened with the worker's own credentials. The files are
    /// read in order, and the log is not read.
    ///
    /// # Errors
    /// Returns `InvalidArgument` for an unknown column, and if the task's predicate does not match its schema.
    /// Returns `CorruptLog` if its schema or a partition value is invalid. Errors while reading are returned with the
    /// batches.
    pub fn read(&self, storage: &Storage) -> Result<RowStream> {
        let (scan, files, _) = self.opened(storage)?;
        Ok(scan.read(files.into_iter().map(Ok)))
    }

    /// Returns the scan of rows, the files to read, and the resolver for their paths.
    ///
    /// # Errors
    /// Returns the same errors as [`ScanTask::read`].
    #[doc(hidden)]
    pub fn opened(&self, storage: &Storage) -> Result<(RowScan, Vec<DataFile>, PathResolver)> {
        self.open(storage).map_err(|error| error.in_table(storage.url()).at_version(self.version))
    }

    fn open(&self, storage: &Storage) -> Result<(RowScan, Vec<DataFile>, PathResolver)> {
        let schema = MappedSchema::new(StructType::from_json(&self.schema)?, self.column_mapping)?;
        let own = PathResolver::new(storage.root())?;
        let resolver = self
            .allowed_roots
            .iter()
            .try_fold(own, |resolver, root| resolver.allow(&parse_location(root)?))?;
        let mut scan = RowScan::new(storage.clone(), schema.arrow(), &self.partition_columns)?
            .with_physical_schema(schema.physical_arrow())?
            .with_resolver(resolver.clone())
            .at_version(self.version);
        let mut columns = schema.arrow().clone();
        if let Some(names) = &self.columns {
            scan = scan.with_projection(names)?;
        }
        if let Some([row_id, row_commit_version]) = self.row_ids.clone() {
            scan = scan.with_row_ids(&MaterializedRowTracking { row_id, row_commit_version })?;
            columns = with_row_ids(&columns);
        }
        if let Some(saved) = &self.predicate {
            scan = scan.with_predicate(&saved.predicate()?.bind(&columns)?)?;
        }
        scan = scan.with_settings(self.view_types, self.threads, self.batch_rows);
        let files = data_files(&self.files, &schema, &self.partition_columns, &resolver)?;
        Ok((scan, files, resolver))
    }

    /// Returns the path of each file as the log spells it, and its deletion vector.
    #[doc(hidden)]
    pub fn files(&self) -> impl Iterator<Item = (&str, Option<&DeletionVectorDescriptor>)> {
        self.files.iter().map(|file| (file.path.as_str(), file.deletion_vector.as_ref()))
    }
}

/// Assigns each file, starting with the largest, to the part that is smallest so far.
fn balanced(mut files: Vec<TaskFile>, count: usize) -> Vec<Vec<TaskFile>> {
    files.sort_by_key(|file| std::cmp::Reverse(file.size));
    let mut parts: Vec<(u64, Vec<TaskFile>)> = vec![(0, Vec::new()); count.clamp(1, files.len().max(1))];
    for file in files {
        if let Some((bytes, part)) = parts.iter_mut().min_by_key(|(bytes, _)| *bytes) {
            *bytes = bytes.saturating_add(file.size.max(1));
            part.push(file);
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

/// Divides the list of files into consecutive parts of about equal size. A file belongs to the part that contains the
/// file's middle.
fn in_sequence(files: Vec<TaskFile>, count: usize) -> Vec<Vec<TaskFile>> {
    let count = count.clamp(1, files.len().max(1));
    let weight = |file: &TaskFile| u128::from(file.size.max(1));
    let all: u128 = files.iter().map(weight).sum();
    let mut parts = vec![Vec::new(); count];
    let mut before = 0;
    for file in files {
        let middle = 2 * before + weight(&file);
        before += weight(&file);
        let part = usize::try_from(middle * count as u128 / (2 * all)).unwrap_or_default().min(count - 1);
        if let Some(part) = parts.get_mut(part) {
            part.push(file);
        }
    }
    parts
}
