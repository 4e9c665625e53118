//! The file actions of a clone.

use std::collections::HashMap;

use arrow::array::RecordBatch;
use std::slice::from_ref;

use super::CloneMetrics;
use super::copy::{Copy, copy_all};
use super::origin::{Origin, TAG};
use crate::deletion_vector::{relocated_vector, vector_file, vector_path};
use crate::environment::Environment;
use crate::error::{Error, Result};
use crate::protocol::{
    Add, DeletionVectorDescriptor, DeletionVectorStorage, LogPath, PathResolver, TableFeature, path,
};
use crate::replay::{AddRequest, FileColumns, FileSet, adds_of, batches_of_adds, without};
use crate::restore::counted;
use crate::snapshot::Snapshot;
use crate::storage::Storage;

/// How a clone has the files of its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By their absolute paths.
    Shallow,
    /// As copies.
    Deep,
}

/// What differs between the files of a clone and those of the table that it replaces.
pub(super) struct ClonedFiles {
    /// The files that are added, as `add` actions.
    pub(super) adds: Vec<RecordBatch>,
    /// The files that are removed, as the `add` actions that they have.
    pub(super) removes: Vec<RecordBatch>,
    pub(super) metrics: CloneMetrics,
    copies: Vec<Copy>,
}

impl ClonedFiles {
    /// Returns what makes the files of a clone of `source` of those of `base`. Copies nothing yet.
    ///
    /// # Errors
    /// `CorruptLog`, and errors of the store. `Unsupported` for files of the source outside of the roots that its
    /// caller has allowed.
    pub(super) fn of(
        source: &Snapshot,
        target: &Storage,
        base: Option<&Snapshot>,
        way: Way,
        tracks_rows: bool,
        environment: &Environment,
    ) -> Result<Self> {
        // Files that stay would have no row ids.
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
        let mut making =
            Making { source, way, environment, copied, vectors: HashMap::new(), copies: Vec::new() };
        let mut after = FileSet::of_logical_files(&resolver);
        let (mut adds, mut metrics) = (Vec::new(), CloneMetrics::default());
        for batch in source.replay(AddRequest::new(FileColumns::all()))? {
            let batch = batch?;
            let (files, bytes) = counted(from_ref(&batch));
            metrics.source_files += files;
            metrics.source_bytes += bytes;
            let cloned =
                adds_of(&batch)?.into_iter().map(|add| making.clone_of(add)).collect::<Result<Vec<_>>>()?;
            for batch in batches_of_adds(&cloned)? {
                after.insert(&batch)?;
                let stay = before.contains(&batch)?;
                if begins_ids && stay.has_true() {
                    return Err(Error::unsupported(
                        "row tracking cannot begin with a clone that keeps files which the table has already",
                    )
                    .with_hint("enable row tracking of the table first (delta.enableRowTracking)"));
                }
                let new = without(&batch, &stay)?;
                if new.num_rows() > 0 {
                    adds.push(new);
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
        for copy in &making.copies {
            if let Some(size) = copy.size {
                metrics.copied_files += 1;
                metrics.copied_bytes += size;
            }
        }
        Ok(Self { adds, removes, metrics, copies: making.copies })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.adds.is_empty() && self.removes.is_empty()
    }

    /// Returns the paths of all copies, as actions have them.
    pub(super) fn copied_paths(&self) -> Vec<String> {
        self.copies.iter().map(|copy| path::encode(&copy.to)).collect()
    }

    /// Copies the files that the target does not have.
    ///
    /// # Errors
    /// As [`copy_all`].
    pub(super) fn copy(&self, source: &Snapshot, target: &Storage) -> Result<()> {
        copy_all(source.storage(), target, &self.copies)
    }
}

/// The making of file actions.
struct Making<'a> {
    source: &'a Snapshot,
    way: Way,
    environment: &'a Environment,
    /// The files of the target that are copies, by the files that they are copies of.
    copied: HashMap<(String, String), Add>,
    /// The new id of each file of vectors that is copied.
    vectors: HashMap<LogPath, uuid::Uuid>,
    copies: Vec<Copy>,
}

impl Making<'_> {
    fn clone_of(&mut self, file: Add) -> Result<Add> {
        // Row ids of the source are not those of the clone.
        let file = Add { data_change: true, base_row_id: None, default_row_commit_version: None, ..file };
        match self.way {
            Way::Shallow => self.referring(file),
            Way::Deep => self.copy_of(file),
        }
    }

    fn referring(&self, file: Add) -> Result<Add> {
        let resolver = self.source.resolver();
        // The spelling of Hadoop: the JVM implementation compares these texts with those that Spark has of a file.
        let absolute = |path: &LogPath| resolver.absolute(path).to_uri().replacen("file:///", "file:/", 1);
        // What the source itself may not read, its clone may not either.
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
            // The rows are the same, and keep the ids that they have.
            Some(known) => (known.path.clone(), (known.base_row_id, known.default_row_commit_version)),
            None => {
                let from = self.source.resolver().resolve(&file.path)?;
                let to = self.new_path(&from);
                let size = u64::try_from(file.size).ok();
                self.copies.push(Copy { from, to: to.clone(), size });
                (path::encode(&to), (None, None))
            }
        };
        let deletion_vector = file.deletion_vector.as_ref().map(|vector| self.vector(vector)).transpose()?;
        let origin = Origin::new(&id, &file, deletion_vector.as_ref());
        let mut tags = file.tags.clone().unwrap_or_default();
        tags.insert(TAG.to_owned(), Some(origin.to_string()));
        let (base_row_id, default_row_commit_version) = row_ids;
        Ok(Add { path, deletion_vector, tags: Some(tags), base_row_id, default_row_commit_version, ..file })
    }

    /// Returns a path that no file has: copies never replace anything.
    fn new_path(&self, from: &LogPath) -> String {
        let unique = self.environment.uuid().simple();
        let (directory, name) = match from {
            LogPath::Relative(path) => path.rsplit_once('/').unwrap_or(("", path)),
            // What is outside of the source has no place in its partitions.
            LogPath::Absolute(path) => ("", path.path().rsplit_once('/').map_or("", |(_, name)| name)),
        };
        let slash = if directory.is_empty() { "" } else { "/" };
        format!("{directory}{slash}{unique}-{}", name_in_copy(name))
    }

    /// Returns the descriptor of a vector whose file is copied, once for all of its vectors.
    fn vector(&mut self, vector: &DeletionVectorDescriptor) -> Result<DeletionVectorDescriptor> {
        let resolver = self.source.resolver();
        let Some(from) = vector_path(vector, resolver)? else { return Ok(vector.clone()) };
        if let LogPath::Absolute(path) = &from {
            resolver.resolve(&path.to_uri())?;
        }
        let id = match self.vectors.get(&from) {
            Some(id) => *id,
            None => {
                let id = self.environment.uuid();
                self.copies.push(Copy { from: from.clone(), to: vector_file(id), size: None });
                self.vectors.insert(from, id);
                id
            }
        };
        Ok(relocated_vector(vector, id))
    }
}

/// Returns the files of a table that are copies, by the files that they are copies of. A file outside of the table is
/// none, whatever its tag says: a shallow clone of a deep one may have kept it.
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

/// Returns what a copy's name has of the name of the file that it is a copy of: without that of an earlier copy, so
/// that copies of copies do not get ever longer names, and not all of a very long one.
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
