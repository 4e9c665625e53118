//! Computes the file actions of a clone.

use std::collections::HashMap;

use arrow::array::RecordBatch;
use std::slice::from_ref;
use uuid::Uuid;

use super::CloneMetrics;
use super::copy::{Copy, copy_all};
use super::origin::{Origin, TAG};
use crate::error::{Error, Result};
use crate::log::deletion_vector::{relocated_vector, vector_file, vector_path};
use crate::log::replay::{AddRequest, FileColumns, FileSet, adds_of, batches_of_adds, without};
use crate::operations::maintain::restore::counted;
use crate::protocol::{
    Add, DeletionVectorDescriptor, DeletionVectorStorage, LogPath, PathResolver, TableFeature, path,
};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::storage::Storage;
use crate::write::row_counts::{Counted, with_certain_counts};

/// How a clone refers to the files of its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By absolute paths.
    Shallow,
    /// By copies in the clone's own directory.
    Deep,
}

/// The changes that turn the files of the replaced table into the files of the clone.
pub(super) struct ClonedFiles {
    /// The files that are added, as `add` actions.
    pub(super) adds: Vec<RecordBatch>,
    /// The files that are removed, given by their current `add` actions.
    pub(super) removes: Vec<RecordBatch>,
    pub(super) metrics: CloneMetrics,
    /// The data files that are copied.
    copies: Vec<DataCopy>,
    /// The deletion vector files that are copied.
    vectors: Vec<Copy>,
}

/// A data file to copy.
#[derive(Debug)]
pub(super) struct DataCopy {
    pub(super) from: LogPath,
    pub(super) size: u64,
    /// The decoded path of the directory of the copy, relative to the clone. It is empty, or ends with a slash.
    pub(super) directory: String,
    /// The unique part of the copy's name, which ensures that a copy never replaces a file.
    unique: Uuid,
    /// The rest of the copy's name.
    pub(super) name: String,
}

impl DataCopy {
    /// Returns the decoded path of the copy.
    pub(super) fn path(&self) -> String {
        format!("{}{}-{}", self.directory, self.unique.simple(), self.name)
    }
}

impl ClonedFiles {
    /// Returns the changes that turn the files of `base` into the files of a clone of `source`.
    /// Copies nothing yet.
    ///
    /// # Errors
    /// Returns `CorruptLog`, and errors from the store. Returns `Unsupported` for files of the source outside of the
    /// roots that the caller has allowed.
    pub(super) fn of(
        source: &Snapshot,
        target: &Storage,
        base: Option<&Snapshot>,
        way: Way,
        tracks_rows: bool,
        environment: &Environment,
    ) -> Result<Self> {
        // If row tracking begins with this clone, files that the table keeps would have no row ids.
        let begins_ids =
            tracks_rows && base.is_some_and(|base| !base.protocol().supports(&TableFeature::RowTracking));
        let resolver = PathResolver::new(target.root())?;
        let mut before = FileSet::of_logical_files(&resolver);
        let mut copied = HashMap::new();
        for batch in base
            .map(|base| base.replay(AddRequest::new(FileColumns::all())))
            .transpose()?
            .into_iter()
            .flatten()
        {
            let batch = batch?;
            before.insert(&batch)?;
            if way == Way::Deep && !begins_ids {
                copied.extend(copies_in(&batch, &resolver)?);
            }
        }
        let mut making = Making {
            source,
            way,
            environment,
            copied,
            copies: Vec::new(),
            vector_ids: HashMap::new(),
            vectors: Vec::new(),
        };
        let mut after = FileSet::of_logical_files(&resolver);
        let (mut new_adds, mut metrics) = (Vec::new(), CloneMetrics::default());
        for batch in source.replay(AddRequest::new(FileColumns::all()))? {
            let batch = batch?;
            let (files, bytes) = counted(from_ref(&batch));
            metrics.source_files += files;
            metrics.source_bytes += bytes;
            let adds = adds_of(&batch)?;
            let cloned = adds.iter().map(|add| making.clone_of(add.clone())).collect::<Result<Vec<_>>>()?;
            // Maps the path of each file of the clone to the path of the source's file.
            let sources: HashMap<&str, &str> = cloned
                .iter()
                .zip(&adds)
                .filter(|_| tracks_rows)
                .map(|(clone, add)| (clone.path.as_str(), add.path.as_str()))
                .collect();
            for batch in batches_of_adds(&cloned)? {
                after.insert(&batch)?;
                let stay = before.contains(&batch)?;
                if begins_ids && stay.has_true() {
                    return Err(Error::unsupported(
                        "a clone that keeps files of the existing table cannot turn on row tracking",
                    )
                    .with_hint("enable row tracking of the table first (delta.enableRowTracking)"));
                }
                let new = without(&batch, &stay)?;
                if tracks_rows {
                    new_adds.extend(with_counted_rows(source, &new, &sources)?);
                } else if new.num_rows() > 0 {
                    new_adds.push(new);
                }
            }
        }
        let mut removes = Vec::new();
        for batch in base
            .map(|base| base.replay(AddRequest::new(FileColumns::of_removes())))
            .transpose()?
            .into_iter()
            .flatten()
        {
            let batch = batch?;
            let gone = without(&batch, &after.contains(&batch)?)?;
            if gone.num_rows() > 0 {
                let (files, bytes) = counted(from_ref(&gone));
                metrics.removed_files += files;
                metrics.removed_bytes += bytes;
                removes.push(gone);
            }
        }
        let Making { copies, vectors, .. } = making;
        metrics.copied_files = copies.len() as u64;
        metrics.copied_bytes = copies.iter().map(|copy| copy.size).sum();
        Ok(Self { adds: new_adds, removes, metrics, copies, vectors })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.adds.is_empty() && self.removes.is_empty()
    }

    /// Returns the data files that are copied.
    pub(super) fn copies(&self) -> &[DataCopy] {
        &self.copies
    }

    /// Returns the paths of all copies, as actions contain them.
    pub(super) fn copied_paths(&self) -> Vec<String> {
        let files = self.copies.iter().map(|copy| path::encode(&copy.path()));
        files.chain(self.vectors.iter().map(|copy| path::encode(&copy.to))).collect()
    }

    /// Copies the files that the target does not have yet.
    ///
    /// # Errors
    /// Returns the same errors as [`copy_all`].
    pub(super) fn copy(&self, source: &Snapshot, target: &Storage) -> Result<()> {
        let files = self.copies.iter().map(|copy| Copy {
            from: copy.from.clone(),
            to: copy.path(),
            size: Some(copy.size),
        });
        let all: Vec<Copy> = files.chain(self.vectors.iter().cloned()).collect();
        copy_all(source, target, &all)
    }

    /// Makes sure that the data files which the engine has copied exist and are durable. Then copies the deletion
    /// vector files, which the engine does not copy.
    ///
    /// # Errors
    /// Returns the same errors as [`Storage::sync_reported`] and [`copy_all`].
    pub(super) fn complete(&self, source: &Snapshot, target: &Storage) -> Result<()> {
        let paths: Vec<String> = self.copies.iter().map(DataCopy::path).collect();
        target.sync_reported(paths.iter().map(String::as_str))?;
        match self.vectors.is_empty() {
            true => Ok(()),
            false => copy_all(source, target, &self.vectors),
        }
    }

    /// Gives the copies in the plan the names that the engine has chosen. `unique` are the unique parts of these names,
    /// in the order of the copies.
    ///
    /// # Errors
    /// Returns `CorruptLog` if an action is invalid, which cannot happen because the actions were made by this
    /// process.
    pub(super) fn rename(&mut self, unique: impl IntoIterator<Item = Uuid>) -> Result<()> {
        let mut names = HashMap::with_capacity(self.copies.len());
        for (copy, unique) in self.copies.iter_mut().zip(unique) {
            let planned = path::encode(&copy.path());
            copy.unique = unique;
            names.insert(planned, path::encode(&copy.path()));
        }
        let mut adds = Vec::with_capacity(self.adds.len());
        for batch in &self.adds {
            let mut files = adds_of(batch)?;
            for file in &mut files {
                // A file that the clone already has keeps its name.
                if let Some(name) = names.get(&file.path) {
                    file.path.clone_from(name);
                }
            }
            adds.extend(batches_of_adds(&files)?);
        }
        self.adds = adds;
        Ok(())
    }
}

/// A builder of the file actions of a clone.
struct Making<'a> {
    source: &'a Snapshot,
    way: Way,
    environment: &'a Environment,
    /// The files of the target that are copies, by the table id and path of the original.
    copied: HashMap<(String, String), Add>,
    copies: Vec<DataCopy>,
    /// The new id of each deletion vector file that is copied.
    vector_ids: HashMap<LogPath, Uuid>,
    vectors: Vec<Copy>,
}

impl Making<'_> {
    fn clone_of(&mut self, file: Add) -> Result<Add> {
        // The row ids of the source are not valid in the clone.
        let file = Add { data_change: true, base_row_id: None, default_row_commit_version: None, ..file };
        match self.way {
            Way::Shallow => self.referring(file),
            Way::Deep => self.copy_of(file),
        }
    }

    fn referring(&self, file: Add) -> Result<Add> {
        let resolver = self.source.resolver();
        // Paths are spelled as Hadoop spells them, because the JVM implementation compares them with the paths that
        // Spark reports.
        let absolute = |path: &LogPath| resolver.absolute(path).to_uri().replacen("file:///", "file:/", 1);
        // If the source is not allowed to read a file, neither is its clone.
        let allowed = |path: &LogPath| match path {
            LogPath::Relative(_) => Ok(()),
            LogPath::Absolute(path) => resolver.resolve(&path.to_uri()).map(drop),
        };
        let deletion_vector = match &file.deletion_vector {
            None => None,
            Some(vector) => Some(match vector_path(vector, resolver)? {
                None => vector.clone(),
                Some(path) => {
                    allowed(&path)?;
                    DeletionVectorDescriptor {
                        storage_type: DeletionVectorStorage::AbsolutePath,
                        path_or_inline_dv: absolute(&path),
                        ..vector.clone()
                    }
                }
            }),
        };
        let path = absolute(&resolver.resolve(&file.path)?);
        let mut tags = file.tags.clone();
        tags.iter_mut().for_each(|tags| drop(tags.remove(TAG)));
        Ok(Add { path, deletion_vector, tags, ..file })
    }

    fn copy_of(&mut self, file: Add) -> Result<Add> {
        let id = self.source.metadata().id.clone();
        let known = self.copied.get(&(id.clone(), file.path.clone())).filter(|known| known.size == file.size);
        if let Some(known) = known
            && Origin::of(known).is_some_and(|origin| origin.has_same_vector(&file, known))
        {
            return Ok(known.clone());
        }
        let (path, row_ids) = match known {
            // The rows are the same as in the earlier copy, so they keep their row ids.
            Some(known) => (known.path.clone(), (known.base_row_id, known.default_row_commit_version)),
            None => {
                let copy = self.new_copy(&file)?;
                let path = path::encode(&copy.path());
                self.copies.push(copy);
                (path, (None, None))
            }
        };
        let deletion_vector = file.deletion_vector.as_ref().map(|vector| self.vector(vector)).transpose()?;
        let origin = Origin::new(&id, &file, deletion_vector.as_ref());
        let mut tags = file.tags.clone().unwrap_or_default();
        tags.insert(TAG.to_owned(), Some(origin.to_string()));
        let (base_row_id, default_row_commit_version) = row_ids;
        Ok(Add { path, deletion_vector, tags: Some(tags), base_row_id, default_row_commit_version, ..file })
    }

    fn new_copy(&self, file: &Add) -> Result<DataCopy> {
        let from = self.source.resolver().resolve(&file.path)?;
        let size = u64::try_from(file.size)
            .map_err(|_| Error::corrupt_log("the size of the file is negative").at_path(&file.path))?;
        let (directory, name) = match &from {
            LogPath::Relative(path) => path.rsplit_once('/').unwrap_or(("", path)),
            // Files outside of the source's directory do not belong to one of its partition directories.
            LogPath::Absolute(path) => ("", path.path().rsplit_once('/').map_or("", |(_, name)| name)),
        };
        let slash = if directory.is_empty() { "" } else { "/" };
        let (directory, name) = (format!("{directory}{slash}"), name_in_copy(name).to_owned());
        Ok(DataCopy { from, size, directory, unique: self.environment.uuid(), name })
    }

    /// Returns the descriptor of a deletion vector in the clone. The file that contains the vector is copied only
    /// once, even if it contains several vectors.
    fn vector(&mut self, vector: &DeletionVectorDescriptor) -> Result<DeletionVectorDescriptor> {
        let resolver = self.source.resolver();
        let Some(from) = vector_path(vector, resolver)? else { return Ok(vector.clone()) };
        if let LogPath::Absolute(path) = &from {
            resolver.resolve(&path.to_uri())?;
        }
        let id = match self.vector_ids.get(&from) {
            Some(id) => *id,
            None => {
                let id = self.environment.uuid();
                self.vectors.push(Copy { from: from.clone(), to: vector_file(id), size: None });
                self.vector_ids.insert(from, id);
                id
            }
        };
        Ok(relocated_vector(vector, id))
    }
}

/// Returns the actions `adds` with exact numbers of rows. `sources` maps the paths of the clone's files to the files
/// of `source`.
fn with_counted_rows(
    source: &Snapshot,
    adds: &RecordBatch,
    sources: &HashMap<&str, &str>,
) -> Result<Vec<RecordBatch>> {
    let adds = adds_of(adds)?;
    let of_source = |add: &Add| sources.get(add.path.as_str()).copied().unwrap_or_default();
    let files: Vec<Counted<'_>> =
        adds.iter().map(|add| Counted { add: add.clone(), path: of_source(add) }).collect();
    batches_of_adds(&with_certain_counts(source, &files)?)
}

/// Returns the files of a table that are copies, by the table id and path of their original. A file outside of the
/// table's directory is not a copy, even if it has the tag: a shallow clone of a deep clone may have kept the tag.
fn copies_in(batch: &RecordBatch, resolver: &PathResolver) -> Result<Vec<((String, String), Add)>> {
    let is_inside = |path: &LogPath| matches!(path, LogPath::Relative(_));
    let mut copies = Vec::new();
    for add in adds_of(batch)? {
        let Some(origin) = Origin::of(&add) else { continue };
        let vector = match &add.deletion_vector {
            Some(vector) => vector_path(vector, resolver)?,
            None => None,
        };
        if is_inside(&resolver.parse(&add.path)?) && vector.is_none_or(|path| is_inside(&path)) {
            copies.push((origin.file, add));
        }
    }
    Ok(copies)
}

/// Returns the part of the original's name that a copy's name contains. The unique part of an earlier copy is
/// omitted, so that names of copies of copies do not become longer and longer. Very long names are shortened.
fn name_in_copy(name: &str) -> &str {
    const MOST: usize = 200;
    let is_unique = |text: &str| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = match name.split_once('-') {
        Some((first, rest)) if is_unique(first) && !rest.is_empty() => rest,
        _ => name,
    };
    if name.len() <= MOST { name } else { "copy.parquet" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_copies_do_not_grow() {
        let unique = "0123456789abcdef0123456789abcdef";
        assert_eq!(name_in_copy("part-0.parquet"), "part-0.parquet");
        assert_eq!(name_in_copy(&format!("{unique}-part-0.parquet")), "part-0.parquet");
        assert_eq!(name_in_copy(&format!("{unique}-")), format!("{unique}-"));
        assert_eq!(name_in_copy(&"x".repeat(201)), "copy.parquet");
    }
}
