//! FSCK: checks whether the files of a version exist and match the log. On request, removes missing and damaged files
//! from the table.
//! (Protocol: "Add File and Remove File", "Deletion Vectors", "Per-file Statistics".)
//!
//! ```text
//!   snapshot ──► named files ──┐
//!   walk of the root ──────────┴─► sizes, unreferenced files
//!                                     │
//!   each file of the version ─────────┴─► footer, vector, rows ──► report
//!                                                                     │ repair
//!                                                one commit removes the files that cannot be read
//! ```
//!
//! - A file counts as missing only if the store says that it does not exist. If a request fails for another reason,
//!   that is an error, and nothing is committed.
//! - Nothing is deleted in the store. Unreferenced files are only reported; VACUUM deletes them.
//! - If a file's deletion vector cannot be read, it is not known which of the file's rows are deleted. Without the
//!   vector, these rows would return; without the file, its other rows would be lost. A repair therefore fails if
//!   there is such a file, unless the caller agrees to lose all rows of the file.
//! - A repair removes rows from the table, so `dataChange` is true, and readers of changes notice it. It is not known
//!   which rows these were, so a change data feed cannot be read for that version. An append-only table is not
//!   repaired (protocol, "Append-only Tables").
//! - The repair depends on the files that it removes. It conflicts with another commit that removes one of them or
//!   changes its deletion vector. Rows that other writers add do not matter.
//! - Several files are checked concurrently. Only the sizes of the files and the problems are kept in memory.
//!
//! | file | what it does |
//! | --- | --- |
//! | `stored` | lists the files in the store |
//! | `inspect` | checks one file of the log |
//! | `rows` | compares the rows of a file with its statistics |
//! | `problem` | the kinds of problems |
//! | `report` | returns the problems as Arrow data |

mod inspect;
mod problem;
mod report;
mod rows;
mod stored;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use self::inspect::Inspector;
use self::report::FaultyFile;
use self::stored::Stored;
use crate::commit::{Committed, Operation, Transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::log::deletion_vector::vector_path;
use crate::log::replay::{add_at, batches_of_adds};
use crate::operations::rewrite::{ListedFile, visit_files};
use crate::protocol::{Add, ensure_writable};
use crate::runtime::environment::Environment;
use crate::runtime::parallel;
use crate::runtime::progress::Progress;
use crate::snapshot::Snapshot;

pub use problem::FileProblem;

/// The maximum number of files in an error message.
const NAMED: usize = 10;

/// How thoroughly files are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum CheckLevel {
    /// Checks whether data files and the files of deletion vectors exist, and whether data files have the sizes in the
    /// log.
    Files,
    /// Also checks the footers of data files, the numbers of rows in them, and the contents of deletion vectors.
    #[default]
    Footers,
    /// Also reads all rows, and checks whether they contradict the statistics.
    Rows,
}

/// The result of a check.
#[derive(Debug)]
pub struct FileCheck {
    snapshot: Snapshot,
    files: u64,
    faulty: Vec<FaultyFile>,
    stored: Stored,
}

/// Checks the files of a version, and looks for unreferenced files ([`FileProblem::UnreferencedFile`]).
///
/// ```
/// use deltalog::{CheckLevel, Snapshot, check_files};
///
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/example_table.rs"));
/// # fn main() -> deltalog::Result<()> {
/// # let (_directory, storage) = example_table()?;
/// let snapshot = Snapshot::open(&storage, None)?;
/// let found = check_files(&snapshot, CheckLevel::Rows)?;
/// assert_eq!(found.batch()?.num_rows(), 0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Returns `CorruptLog`, `Unsupported` for files outside of the table that the caller does not allow, and errors from
/// the store.
pub fn check_files(snapshot: &Snapshot, level: CheckLevel) -> Result<FileCheck> {
    let located = |error: Error| snapshot.located(error);
    let stored = Stored::of(snapshot).map_err(located)?;
    let inspector = Inspector::new(snapshot, &stored, level).map_err(located)?;
    let (mut files, mut faulty) = (0, Vec::new());
    let progress = Progress::new("FSCK", snapshot.storage().url(), None, "files");
    visit_files(snapshot, None, |batch, listed| {
        let listed = listed.into_iter().enumerate();
        let listed: Vec<ListedFile> = listed
            .map(|(row, file)| Ok(ListedFile { add: add_at(batch, row)?, file }))
            .collect::<Result<_>>()?;
        files += listed.len() as u64;
        let threads = snapshot.storage().readers(listed.len());
        let findings = parallel::each(&listed, threads, |file| {
            let findings = inspector.inspect(file)?;
            progress.add(1);
            Ok::<_, Error>(findings)
        })?;
        let found = listed.into_iter().zip(findings).filter(|(_, findings)| !findings.is_empty());
        faulty.extend(found.map(|(file, findings)| FaultyFile { file, findings }));
        Ok(())
    })?;
    Ok(FileCheck { snapshot: snapshot.clone(), files, faulty, stored })
}

impl FileCheck {
    /// Returns the number of files of the version.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Returns the schema of [`FileCheck::batch`].
    pub fn schema() -> SchemaRef {
        report::schema()
    }

    /// Returns one row for each problem, and one for each unreferenced file. Columns:
    ///
    /// - `path: Utf8`, as in [`ListColumn::Path`](crate::ListColumn::Path);
    /// - `problem: Utf8`, the name of a [`FileProblem`], and `detail: Utf8`;
    /// - `partition_values: Map<Utf8, Utf8>`, the values as the log spells them, by column name; NULL for an
    ///   unreferenced file;
    /// - `size: Int64` and `modification_time: Timestamp(ms, UTC)`, from the log or, for an unreferenced file, from
    ///   the store;
    /// - `num_rows: Int64`, the number of rows in the file that are not deleted, if the log states it.
    ///
    /// # Errors
    /// Returns `CorruptData` if the report is too large for an Arrow array.
    pub fn batch(&self) -> Result<RecordBatch> {
        report::batch(self)
    }
}

/// A request to remove unreadable files from the table.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RepairRequest {
    /// Whether to remove existing files that cannot be read as Parquet, in addition to missing files. This requires
    /// reading footers and deletion vectors.
    pub removes_damaged: bool,
    /// Whether to remove files whose deletion vectors are missing or, with [`Self::removes_damaged`], are damaged or do
    /// not match them. All rows of these files are then lost. Otherwise, such a file is an error.
    pub drops_files_without_vectors: bool,
    /// Whether to make no commit, and only return the files that would be removed.
    pub dry_run: bool,
    /// Additional fields of the commit, such as user metadata.
    pub operation: Operation,
}

/// The result of a repair.
#[derive(Debug)]
#[non_exhaustive]
pub struct Repaired {
    /// The commit; `None` if there were no files to remove, or after a dry run.
    pub committed: Option<Committed>,
    /// The files that were removed, or would be removed by a repair that is not a dry run, in the order of the log.
    pub removed: Vec<RepairedFile>,
    /// The metrics of the repair.
    pub metrics: RepairMetrics,
}

/// A file that a repair removes from the table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairedFile {
    /// The path, as in [`ListColumn::Path`](crate::ListColumn::Path).
    pub path: String,
    /// The path of the file that contains the data file's deletion vector; `None` if there is no such file.
    pub vector_path: Option<String>,
    /// Whether the data file is missing.
    pub is_missing: bool,
    /// Whether the data file exists but is damaged.
    pub is_damaged: bool,
    /// Whether the file with the deletion vector is missing.
    pub is_vector_missing: bool,
}

/// The numbers of files in a repair.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairMetrics {
    /// The number of files in the table before the repair.
    pub scanned_files: u64,
    /// The number of files that were removed.
    pub removed_files: u64,
    /// The total size of the removed files in bytes, as the log states it.
    pub removed_bytes: u64,
    /// The number of rows in the removed files that were not deleted, as far as the log states it.
    pub removed_rows: u64,
    /// The number of missing files.
    pub missing_files: u64,
    /// The number of removed files whose deletion vectors are missing or damaged, or do not match the files.
    pub files_without_vectors: u64,
}

/// Removes missing files, and on request also damaged files, from the table of `base`, in one commit. Nothing is
/// deleted in the store.
///
/// # Errors
/// Returns `InvalidArgument` for a table that is append-only, and `Unsupported` for a table that cannot be written.
/// Returns `FileNotFound` or `CorruptData` for files whose deletion vectors cannot be read, unless the request allows
/// dropping them. Returns `CommitConflict` if another writer has removed one of the files. Also returns
/// `CommitStateUnknown`, `CorruptLog`, and errors from the store.
pub fn repair(base: &Snapshot, request: RepairRequest, environment: &Environment) -> Result<Repaired> {
    let base = &base.refresh()?;
    ensure_writable(base.protocol(), base.metadata()).map_err(|error| base.located(error))?;
    let level = if request.removes_damaged { CheckLevel::Footers } else { CheckLevel::Files };
    let check = check_files(base, level)?;
    let plan = Plan::of(&check, &request);
    plan.ensure_certain(base)?;
    if !plan.chosen.is_empty() {
        base.ensure_removable()?;
    }
    let metrics = plan.metrics(check.files());
    let removed = plan.chosen.iter().map(|faulty| repaired_file(base, faulty)).collect();
    if request.dry_run || plan.chosen.is_empty() {
        return Ok(Repaired { committed: None, removed, metrics });
    }
    let adds: Vec<Add> = plan.chosen.iter().map(|faulty| faulty.file.add.clone()).collect();
    let mut transaction = Transaction::new(base, described(request, &metrics), environment)?;
    for batch in batches_of_adds(&adds)? {
        transaction.remove_files(&batch)?;
    }
    let committed = transaction.commit_or_fail()?;
    Ok(Repaired { committed: Some(committed), removed, metrics })
}

/// The faulty files that a repair will remove, and the faulty files that prevent the repair.
struct Plan<'a> {
    chosen: Vec<&'a FaultyFile>,
    uncertain: Vec<&'a FaultyFile>,
}

impl<'a> Plan<'a> {
    fn of(check: &'a FileCheck, request: &RepairRequest) -> Self {
        let mut plan = Self { chosen: Vec::new(), uncertain: Vec::new() };
        for faulty in &check.faulty {
            let is_unreadable = faulty.has(FileProblem::MissingFile)
                || (request.removes_damaged && faulty.has(FileProblem::DamagedFile));
            if is_unreadable || (is_without_vector(faulty) && request.drops_files_without_vectors) {
                plan.chosen.push(faulty);
            } else if is_without_vector(faulty) {
                plan.uncertain.push(faulty);
            }
        }
        plan
    }

    /// Refuses to continue if it is not known which rows of some file are deleted.
    fn ensure_certain(&self, base: &Snapshot) -> Result<()> {
        if self.uncertain.is_empty() {
            return Ok(());
        }
        let missing = self.uncertain.iter().any(|faulty| faulty.has(FileProblem::MissingVector));
        let kind = if missing { ErrorKind::FileNotFound } else { ErrorKind::CorruptData };
        let count = self.uncertain.len();
        let named: Vec<String> =
            self.uncertain.iter().take(NAMED).map(|faulty| faulty.file.file.path.to_string()).collect();
        let more = if count > NAMED { ", …" } else { "" };
        Err(base.located(
            Error::new(
                kind,
                format!(
                    "the table cannot be repaired: the deletion vectors of {count} of its files cannot be read, so it \
                     is not known which rows of these files are deleted: {}{more}",
                    named.join(", ")
                ),
            )
            .with_hint(
                "restore the deletion vector files, or restore an earlier version of the table; or remove these files \
                 with all of their rows (drop_files_without_vectors)",
            ),
        ))
    }

    fn metrics(&self, scanned_files: u64) -> RepairMetrics {
        let count =
            |is: &dyn Fn(&FaultyFile) -> bool| self.chosen.iter().filter(|file| is(file)).count() as u64;
        RepairMetrics {
            scanned_files,
            removed_files: self.chosen.len() as u64,
            removed_bytes: self.chosen.iter().map(|faulty| faulty.file.file.size).sum(),
            removed_rows: self.chosen.iter().filter_map(|faulty| faulty.live_rows()).sum(),
            missing_files: count(&|faulty| faulty.has(FileProblem::MissingFile)),
            files_without_vectors: count(&is_without_vector),
        }
    }
}

fn is_without_vector(faulty: &FaultyFile) -> bool {
    faulty.has(FileProblem::MissingVector) || faulty.has(FileProblem::DamagedVector)
}

fn repaired_file(base: &Snapshot, faulty: &FaultyFile) -> RepairedFile {
    let vector = faulty.file.add.deletion_vector.as_ref();
    // A descriptor that cannot be parsed does not refer to any file.
    let vector = vector.and_then(|descriptor| vector_path(descriptor, base.resolver()).ok().flatten());
    RepairedFile {
        path: faulty.file.file.path.to_string(),
        vector_path: vector.map(|path| path.to_string()),
        is_missing: faulty.has(FileProblem::MissingFile),
        is_damaged: faulty.has(FileProblem::DamagedFile),
        is_vector_missing: faulty.has(FileProblem::MissingVector),
    }
}

/// Returns the description of the commit.
fn described(request: RepairRequest, metrics: &RepairMetrics) -> Operation {
    let RepairRequest { removes_damaged, drops_files_without_vectors, mut operation, .. } = request;
    "FSCK REPAIR TABLE".clone_into(&mut operation.name);
    operation
        .parameter("verifyAllFiles", removes_damaged)
        .parameter("dropFilesWithoutVectors", drops_files_without_vectors)
        .metric("numFilesScanned", metrics.scanned_files)
        .metric("numRemovedFiles", metrics.removed_files)
        .metric("numRemovedBytes", metrics.removed_bytes)
        .metric("numRemovedRows", metrics.removed_rows)
        .metric("numMissingFiles", metrics.missing_files)
        .metric("numFilesWithoutVectors", metrics.files_without_vectors)
}
