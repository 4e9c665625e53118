//! Manifests that list the files of a table, for engines that read Hive's `SymlinkTextInputFormat`, such as Presto and
//! Athena.
//!
//! ```text
//!   _symlink_format_manifest/manifest             of a table without partition columns
//!   _symlink_format_manifest/p=1/q=a%2Fb/manifest  of each partition that has files
//!       file:/table/p=1/q=a%2Fb/part-0.parquet     one full path per line, not encoded
//! ```
//!
//! - Layout and content are the same as in the JVM implementation.
//! - Such engines read whole Parquet files, and find columns by the table's column names. With deletion vectors or
//!   column mapping, they would return wrong rows, so manifests are refused for tables with these features.
//! - A file in a manifest must be one that a reader of the table may open, that is, below the table or below an allowed
//!   root. This matters because the engine that reads the manifests uses its own credentials and trusts the manifests.
//!   The path must also fit on one line.
//! - Each manifest is replaced as a whole, but the manifests are not replaced together. If several are read while they
//!   are being written, the reader may see two versions.
//! - If the table requests it (`delta.compatibility.symlinkFormatManifest.enabled`), each commit updates the manifests
//!   of the affected partitions before it returns ([`keep`]). Each writer then looks for newer versions and continues
//!   with them, so that the last of several writers leaves the manifests of the newest version. If an update fails, the
//!   commit remains valid, and a warning says that manifests must be generated again. An update also fails if other
//!   writers are still committing after [`MOST_ROUNDS`] rounds.

mod content;

use std::collections::BTreeSet;

use arrow::array::RecordBatch;

use self::content::{Partitions, directory_of, manifests, path_in};
use crate::commit::Objection;
use crate::commit::own_files::delete_data_file;
use crate::error::{Error, ErrorKind, Result};
use crate::log::CommitFile;
use crate::log::replay::{
    FileColumn, FileColumns, adds_of, has_vectors, path_of, removes_of, visit_commits, with_vectors,
};
use crate::protocol::{Metadata, PathResolver};
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// The directory of the manifests, below the table's root.
const MANIFESTS: &str = "_symlink_format_manifest";

/// The table property that requests manifests after each commit.
pub(crate) const KEEPS_MANIFESTS: &str = "delta.compatibility.symlinkFormatManifest.enabled";

/// How many times an update continues with newer commits of other writers before it fails.
const MOST_ROUNDS: usize = 16;

/// The metrics of an update of manifests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GeneratedManifests {
    /// The version that the manifests describe.
    pub version: u64,
    /// The number of manifests that were written.
    pub written: u64,
    /// The number of manifests that were deleted because their partitions no longer have files.
    pub deleted: u64,
}

/// Writes the manifests of the newest version, and deletes the manifests of partitions without files.
///
/// # Errors
/// `Unsupported` for a table with deletion vectors or column mapping, for files outside the table and its allowed
/// roots, and for partition values that are too long for the name of a directory; `Unavailable` if other writers commit
/// faster than manifests are written; `CorruptLog`; errors from the store. After the last three kinds of errors, some
/// manifests may describe an older version.
pub fn generate_manifests(snapshot: &Snapshot) -> Result<GeneratedManifests> {
    let newest = snapshot.refresh()?;
    let located = |error: Error| newest.located(error);
    let done = generate(&newest, &None).map_err(located)?;
    catch_up(newest, done)
}

/// Updates the manifests after a commit, if the table requests that. The transaction was based on `base`, or it created
/// the table.
///
/// # Errors
/// Returns the same errors as [`generate_manifests`].
pub(crate) fn keep(
    base: Option<&Snapshot>,
    storage: &Storage,
    resolver: &PathResolver,
    version: u64,
) -> Result<()> {
    let newest = newest(base, storage, resolver)?;
    let Some(base) = base else { return generate_manifests(&newest).map(drop) };
    if newest.version() < version {
        return Err(newest.located(Error::new(
            ErrorKind::Unavailable,
            format!("the listing of the log does not show version {version} yet"),
        )));
    }
    if !is_asked_for(newest.metadata()) {
        return Ok(());
    }
    let was_kept = is_asked_for(base.metadata())
        && base.metadata().partition_columns == newest.metadata().partition_columns;
    let partitions = if was_kept { changed(base, &newest)? } else { None };
    let done = generate(&newest, &partitions)?;
    catch_up(newest, done).map(drop)
}

/// Opens the newest version. `resolver` decides where its files may be.
fn newest(base: Option<&Snapshot>, storage: &Storage, resolver: &PathResolver) -> Result<Snapshot> {
    match base {
        Some(base) if base.resolver().allowed_roots().eq(resolver.allowed_roots()) => base.refresh(),
        _ => {
            let builder = Snapshot::builder(storage);
            resolver.allowed_roots().try_fold(builder, |builder, root| builder.allow_root(&root))?.open()
        }
    }
}

/// Returns whether a table requests manifests.
pub(crate) fn is_asked_for(metadata: &Metadata) -> bool {
    metadata.is_enabled(KEEPS_MANIFESTS)
}

/// Refuses to keep manifests for a table if they would lead engines to wrong rows.
///
/// # Errors
/// `InvalidArgument`, `Unsupported`.
pub(crate) fn ensure_keepable(metadata: &Metadata) -> Result<()> {
    if !is_asked_for(metadata) {
        return Ok(());
    }
    if metadata.is_enabled("delta.enableDeletionVectors") {
        return Err(Error::invalid_argument(format!(
            "a table cannot have manifests ({KEEPS_MANIFESTS}) and deletion vectors (delta.enableDeletionVectors)"
        ))
        .with_hint("set one of the two properties to false"));
    }
    ensure_mappable(metadata)
}

fn ensure_mappable(metadata: &Metadata) -> Result<()> {
    match metadata.property("delta.columnMapping.mode").map(str::trim) {
        None | Some("" | "none") => Ok(()),
        Some(mode) => Err(Error::unsupported(format!(
            "with the column mapping mode '{mode}', columns have other names in data files, and manifests cannot \
             express these names"
        ))
        .with_hint(format!(
            "do not set {KEEPS_MANIFESTS} in a table with column mapping, or drop the table feature columnMapping first"
        ))),
    }
}

/// Refuses a version that has files with deletion vectors.
///
/// # Errors
/// `Unsupported`; `CorruptLog`; errors from the store.
pub(crate) fn ensure_no_vectors(snapshot: &Snapshot) -> Result<()> {
    for batch in snapshot.replay_files(FileColumns::of(&[FileColumn::Path, FileColumn::DeletionVector]))? {
        ensure_none_has_vector(&batch?).map_err(|error| snapshot.located(error))?;
    }
    Ok(())
}

fn ensure_none_has_vector(adds: &RecordBatch) -> Result<()> {
    match has_vectors(adds) {
        false => Ok(()),
        true => Err(Error::unsupported(
            "the table has files with deletion vectors, and manifests cannot express which rows of a file are deleted",
        )
        .with_hint("write these files again without them (REORG TABLE ... APPLY (PURGE), or optimize.purge())")),
    }
}

/// Returns an objection for a transaction that turns manifests on. It objects to files with deletion vectors that other
/// writers add.
pub(crate) fn objection() -> Objection {
    let find = |adds: &RecordBatch| {
        let first = with_vectors(adds).values().iter().position(|has_vector| has_vector);
        Ok(first.and_then(|row| path_of(adds, row)))
    };
    Objection::new("have deletion vectors, which manifests cannot express".to_owned(), find)
}

/// Writes the manifests of some partitions, or of all. Deletes the manifests of those partitions that have no files.
fn generate(snapshot: &Snapshot, partitions: &Partitions) -> Result<GeneratedManifests> {
    ensure_mappable(snapshot.metadata())?;
    let mut done = GeneratedManifests { version: snapshot.version(), ..GeneratedManifests::default() };
    if partitions.as_ref().is_some_and(BTreeSet::is_empty) {
        return Ok(done);
    }
    let storage = snapshot.storage();
    let is_partitioned = !snapshot.metadata().partition_columns.is_empty();
    let manifests = manifests(snapshot, partitions)?;
    if is_partitioned && manifests.contains_key("") {
        return Err(Error::unsupported("a partition value is too long for the name of a directory"));
    }
    for (directory, text) in &manifests {
        storage.publish_file(&path_in(directory), text.clone().into())?;
        done.written += 1;
    }
    let mut others = BTreeSet::new();
    match partitions {
        Some(partitions) => others.extend(partitions.iter().map(|directory| path_in(directory))),
        None => storage.walk(MANIFESTS, &|_| true, |files| {
            let names = files.into_iter().map(|file| file.name);
            let is_manifest = |name: &String| name == "manifest" || name.ends_with("/manifest");
            others.extend(names.filter(is_manifest).map(|name| format!("{MANIFESTS}/{name}")));
            Ok(())
        })?,
    }
    for directory in manifests.keys() {
        others.remove(&path_in(directory));
    }
    for path in &others {
        delete_data_file(storage, path)?;
        done.deleted += 1;
    }
    if !others.is_empty() && is_partitioned {
        storage.delete_empty_directories(MANIFESTS)?;
    }
    Ok(done)
}

/// Continues with the versions that other writers have committed in the meantime, until there are no newer ones.
///
/// # Errors
/// `Unavailable` if there are still newer versions after [`MOST_ROUNDS`] rounds. The manifests written so far may then
/// have replaced newer ones of another writer.
fn catch_up(mut shown: Snapshot, mut done: GeneratedManifests) -> Result<GeneratedManifests> {
    for round in 0.. {
        let newest = shown.refresh()?;
        if newest.version() == shown.version() {
            break;
        }
        if round == MOST_ROUNDS {
            return Err(newest.located(never_ends(shown.version())));
        }
        let is_same = newest.metadata().partition_columns == shown.metadata().partition_columns;
        let partitions = if is_same { changed(&shown, &newest)? } else { None };
        let GeneratedManifests { version, written, deleted } = generate(&newest, &partitions)?;
        done =
            GeneratedManifests { version, written: done.written + written, deleted: done.deleted + deleted };
        shown = newest;
    }
    Ok(done)
}

fn never_ends(shown: u64) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!(
            "other writers commit faster than manifests are written: \
             these show version {shown} after {MOST_ROUNDS} rounds"
        ),
    )
    .with_hint("generate the manifests again when other writers commit less often")
}

/// Returns the partitions that the commits after `base` up to `newest` affect; `None` if they cannot be determined.
fn changed(base: &Snapshot, newest: &Snapshot) -> Result<Partitions> {
    let times = newest.commit_times(Some(newest.version()))?;
    let commits: Vec<CommitFile> =
        times.commits().iter().filter(|commit| commit.version > base.version()).copied().collect();
    // Some of the commits may have been cleaned up.
    let mut is_known = commits.len() as u64 == newest.version() - base.version();
    let mut partitions = BTreeSet::new();
    visit_commits(newest.storage(), &commits, |_, commit| {
        let commit = commit?;
        for add in adds_of(&commit.adds)? {
            partitions.insert(directory_of(newest, &add.partition_values));
        }
        for remove in removes_of(&commit.removes)? {
            match remove.partition_values {
                Some(values) => {
                    partitions.insert(directory_of(newest, &values));
                }
                None if newest.metadata().partition_columns.is_empty() => {
                    partitions.insert(String::new());
                }
                None => is_known = false,
            }
        }
        Ok(is_known)
    })?;
    Ok(is_known.then_some(partitions))
}
