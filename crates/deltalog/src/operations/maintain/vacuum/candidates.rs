//! The list of files that a VACUUM may delete, and the rule by which files from a listing or an inventory are added.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Int64Array, Int64Builder, RecordBatch, StringArray, StringBuilder, TimestampMillisecondArray,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use super::retained::Retained;
use super::visible::{CHANGES, name_of};
use crate::error::{Error, Result};
use crate::storage::FileMeta;

/// The number of files in a chunk of the list.
const CHUNK: usize = 64 * 1024;

/// The reason why a file may be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VacuumReason {
    /// The file was removed from the table, longer ago than the retention.
    Removed,
    /// No version in the log needs the file. It was left by a failed write, or the log no longer shows when it was
    /// removed.
    Unreferenced,
    /// The file is a change data file that was written longer ago than the retention.
    ChangeData,
    /// The file contains deletion vectors, which no data file needs any more.
    DeletionVector,
}

impl VacuumReason {
    /// Returns the name of the reason: `removed`, `unreferenced`, `change data` or `deletion vector`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Unreferenced => "unreferenced",
            Self::ChangeData => "change data",
            Self::DeletionVector => "deletion vector",
        }
    }

    fn of(path: &str, retained: &Retained) -> Self {
        let name = name_of(path);
        if path.strip_prefix(CHANGES).is_some_and(|rest| rest.starts_with('/')) {
            Self::ChangeData
        } else if name.starts_with("deletion_vector_") && name.ends_with(".bin") {
            Self::DeletionVector
        } else if retained.has_expired(path) {
            Self::Removed
        } else {
            Self::Unreferenced
        }
    }
}

/// Returns the reason why a visible file may be deleted: it is older than the cut-off, and the log does not need it.
/// Returns `None` if the file must be kept.
pub(super) fn reason(file: &FileMeta, retained: &Retained, cutoff_ms: i64) -> Option<VacuumReason> {
    let may_go = file.modified_ms < cutoff_ms && !retained.keeps(&file.name);
    may_go.then(|| VacuumReason::of(&file.name, retained))
}

/// One chunk of the list.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) paths: StringArray,
    pub(super) sizes: Int64Array,
    /// The times when the files were last written, or removed from the table, in milliseconds since the epoch.
    pub(super) times: Int64Array,
    reasons: Vec<VacuumReason>,
}

/// The files that may be deleted.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    chunks: Vec<Chunk>,
    open: Open,
}

#[derive(Debug, Default)]
struct Open {
    paths: StringBuilder,
    sizes: Int64Builder,
    times: Int64Builder,
    reasons: Vec<VacuumReason>,
}

impl Candidates {
    pub(super) fn push(&mut self, file: &FileMeta, reason: VacuumReason) {
        let open = &mut self.open;
        open.paths.append_value(&file.name);
        open.sizes.append_value(i64::try_from(file.size).unwrap_or(i64::MAX));
        open.times.append_value(file.modified_ms);
        open.reasons.push(reason);
        if open.reasons.len() == CHUNK {
            self.close();
        }
    }

    fn close(&mut self) {
        let Open { paths, sizes, times, reasons } = &mut self.open;
        if !reasons.is_empty() {
            self.chunks.push(Chunk {
                paths: paths.finish(),
                sizes: sizes.finish(),
                times: times.finish(),
                reasons: std::mem::take(reasons),
            });
        }
    }

    /// Returns all directories that contain the files, at any depth, except for the table's root.
    pub(super) fn directories(&mut self) -> BTreeSet<String> {
        self.close();
        let mut found = BTreeSet::new();
        for chunk in &self.chunks {
            for path in chunk.paths.iter().flatten() {
                let mut rest = path;
                while let Some((directory, _)) = rest.rsplit_once('/') {
                    // If a directory was already found, so were its parents.
                    if !found.insert(directory.to_owned()) {
                        break;
                    }
                    rest = directory;
                }
            }
        }
        found
    }

    /// Completes the list. Leaves out the files if `is_kept` returns true for their paths.
    pub(super) fn finish(mut self, is_kept: Option<&dyn Fn(&str) -> bool>) -> Files {
        self.close();
        let Some(is_kept) = is_kept else { return Files(self.chunks) };
        let mut left = Self::default();
        for chunk in &self.chunks {
            for row in (0..chunk.len()).filter(|row| !is_kept(chunk.paths.value(*row))) {
                left.push(&chunk.file(row), chunk.reason(row));
            }
        }
        left.finish(None)
    }
}

impl Chunk {
    pub(super) fn len(&self) -> usize {
        self.reasons.len()
    }

    fn reason(&self, row: usize) -> VacuumReason {
        self.reasons.get(row).copied().unwrap_or(VacuumReason::Unreferenced)
    }

    fn file(&self, row: usize) -> FileMeta {
        FileMeta {
            name: self.paths.value(row).to_owned(),
            size: u64::try_from(self.sizes.value(row)).unwrap_or_default(),
            modified_ms: self.times.value(row),
            tag: None,
        }
    }

    fn batch(&self) -> Result<RecordBatch> {
        let times: TimestampMillisecondArray = self.times.reinterpret_cast();
        let reasons = StringArray::from_iter_values(self.reasons.iter().map(|reason| reason.name()));
        let columns: [ArrayRef; 4] = [
            Arc::new(self.paths.clone()),
            Arc::new(self.sizes.clone()),
            Arc::new(times.with_timezone("UTC")),
            Arc::new(reasons),
        ];
        RecordBatch::try_new(schema(), columns.into())
            .map_err(|error| Error::corrupt_data("the list of files cannot be built").with_source(error))
    }
}

/// The completed list.
#[derive(Debug, Default)]
pub(super) struct Files(Vec<Chunk>);

impl Files {
    pub(super) fn chunks(&self) -> &[Chunk] {
        &self.0
    }

    pub(super) fn len(&self) -> u64 {
        self.0.iter().map(|chunk| chunk.len() as u64).sum()
    }

    pub(super) fn bytes(&self) -> u64 {
        let size = |size: &i64| u64::try_from(*size).unwrap_or_default();
        self.0.iter().flat_map(|chunk| chunk.sizes.values()).map(size).sum()
    }

    pub(super) fn batches(&self) -> impl Iterator<Item = Result<RecordBatch>> {
        self.0.iter().map(Chunk::batch)
    }
}

pub(super) fn schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("path", DataType::Utf8, false),
        Field::new("size", DataType::Int64, false),
        Field::new("modification_time", time, false),
        Field::new("reason", DataType::Utf8, false),
    ]))
}
