//! The bytes of a file list, packed file by file.

use std::collections::HashMap;
use std::io::{self, Write};

use arrow::array::ArrayRef;
use deltalog::engine::deletion_vector::{DeletionVector, VectorPlace};
use deltalog::engine::protocol::{DeletionVectorDescriptor, LogPath, PathResolver};
use deltalog::engine::scan::FileRows;
use deltalog::{Error, Result};

use super::statement::GivenRows;
use super::values::pack_partition_row;

/// The flags of a file, which show the fields that follow its path.
const WITHOUT_ROWS: u8 = 1;
const ONLY_ROWS: u8 = 2;
const CHANGE_TYPE: u8 = 4;
const ROW_TRACKING: u8 = 8;
const OUTSIDE: u8 = 16;
const NUMBER: u8 = 32;

/// The kinds of places of a deletion vector.
const INLINE: u8 = 0;
const BELOW_ROOT: u8 = 1;
const ABSOLUTE: u8 = 2;

/// The decoded location of a file.
pub(super) enum PlannedPath<'a> {
    /// Relative to the table's root.
    Relative(&'a str),
    /// Outside the table, spelled as in Hadoop.
    Outside(String),
}

impl<'a> PlannedPath<'a> {
    pub(super) fn new(path: &'a LogPath) -> Self {
        match path {
            LogPath::Relative(path) => Self::Relative(path),
            LogPath::Absolute(path) if path.authority().is_empty() => {
                Self::Outside(format!("{}:{}", path.scheme(), path.path()))
            }
            LogPath::Absolute(path) => {
                Self::Outside(format!("{}://{}{}", path.scheme(), path.authority(), path.path()))
            }
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Relative(path) => path,
            Self::Outside(path) => path,
        }
    }
}

/// A file to pack.
pub(super) struct PlannedFile<'a> {
    /// The location of the file.
    pub(super) path: PlannedPath<'a>,
    pub(super) size: i64,
    pub(super) modification_time_ms: i64,
    /// The columns whose row `row` contains the partition values.
    pub(super) values: &'a [ArrayRef],
    pub(super) row: usize,
    pub(super) rows: FileRows,
    /// The change type of all rows, in a change data feed.
    pub(super) change_type: Option<&'static str>,
    /// The id of the first row, and the version that added the rows.
    pub(super) row_tracking: Option<(i64, i64)>,
    /// The number of the file in the plan of a statement that changes rows.
    pub(super) number: Option<i32>,
    /// The rows that are read, in place of `rows`.
    pub(super) given: Option<&'a GivenRows>,
}

pub(super) struct Packer<'a> {
    resolver: &'a PathResolver,
    /// The index of the directory for each packed partition row.
    numbers: HashMap<Vec<u8>, usize>,
    directories: Vec<Directory>,
    scratch: Vec<u8>,
    files: u64,
    has_vectors: bool,
}

/// The files with the same partition row.
#[derive(Default)]
struct Directory {
    row: Vec<u8>,
    count: i32,
    /// The total size of the files in bytes.
    size: i64,
    files: Vec<u8>,
}

/// A packed file list, as parts to be concatenated.
pub(super) struct Packed(Vec<Vec<u8>>);

impl Packed {
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(Vec::len).sum()
    }

    pub(super) fn write(&self, target: &mut dyn Write) -> io::Result<()> {
        self.0.iter().try_for_each(|part| target.write_all(part))
    }
}

impl<'a> Packer<'a> {
    /// Creates a packer for the files of a table whose paths `resolver` decodes.
    pub(super) fn new(resolver: &'a PathResolver) -> Self {
        Self {
            resolver,
            numbers: HashMap::new(),
            directories: Vec::new(),
            scratch: Vec::new(),
            files: 0,
            has_vectors: false,
        }
    }

    /// Returns the number of files added.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// Returns whether any file has rows that are not returned.
    pub(super) fn has_vectors(&self) -> bool {
        self.has_vectors
    }

    pub(super) fn add(&mut self, file: PlannedFile<'_>) -> Result<()> {
        let resolver = self.resolver;
        self.has_vectors |= !matches!(file.rows, FileRows::All) || file.given.is_some();
        let directory = self.directory(file.values, file.row)?;
        directory.count = directory.count.checked_add(1).ok_or_else(too_many)?;
        directory.size = directory.size.saturating_add(file.size);
        let bytes = &mut directory.files;
        bytes.extend(file.size.to_be_bytes());
        bytes.extend(file.modification_time_ms.to_be_bytes());
        text(file.path.as_str(), bytes)?;
        facts(&file, resolver, bytes).map_err(|error| error.at_path(file.path.as_str()))?;
        self.files += 1;
        Ok(())
    }

    fn directory(&mut self, values: &[ArrayRef], row: usize) -> Result<&mut Directory> {
        self.scratch.clear();
        pack_partition_row(values, row, &mut self.scratch)?;
        let number = match self.numbers.get(&self.scratch) {
            Some(number) => *number,
            None => {
                self.numbers.insert(self.scratch.clone(), self.directories.len());
                self.directories.push(Directory { row: self.scratch.clone(), ..Directory::default() });
                self.directories.len() - 1
            }
        };
        self.directories.get_mut(number).ok_or_else(too_many)
    }

    /// Packs the whole list; `total` is the number of files of the snapshot.
    pub(super) fn finish(self, total: u64, root: &str) -> Result<Packed> {
        let mut head = Vec::new();
        pack_version(&mut head)?;
        head.extend(total.to_be_bytes());
        head.push(u8::from(self.has_vectors));
        text(root, &mut head)?;
        head.extend(count(self.directories.len())?.to_be_bytes());
        let mut parts = Vec::with_capacity(1 + 2 * self.directories.len());
        for directory in self.directories {
            head.extend(directory.row);
            head.extend(directory.count.to_be_bytes());
            head.extend(directory.size.to_be_bytes());
            head.extend(count(directory.files.len())?.to_be_bytes());
            parts.push(std::mem::take(&mut head));
            parts.push(directory.files);
        }
        parts.push(head);
        let packed = Packed(parts);
        match i32::try_from(packed.len()) {
            Ok(_) => Ok(packed),
            Err(_) => Err(Error::unsupported("the file list is larger than 2 GiB")
                .with_hint("filter by a partition column")),
        }
    }
}

/// Rows of a file.
enum Vector<'a> {
    OfTable(&'a DeletionVectorDescriptor),
    Given(&'a DeletionVector),
}

fn facts(file: &PlannedFile<'_>, resolver: &PathResolver, bytes: &mut Vec<u8>) -> Result<()> {
    let (without, only) = match (file.given, &file.rows) {
        (Some(GivenRows::Without(rows)), _) => (Some(Vector::Given(rows)), None),
        (Some(GivenRows::Only(rows)), _) => (None, Some(Vector::Given(rows))),
        (None, FileRows::All) => (None, None),
        (None, FileRows::Live(deleted)) => (Some(Vector::OfTable(deleted)), None),
        (None, FileRows::Between { named_by, not_by }) => {
            (not_by.as_ref().map(Vector::OfTable), Some(Vector::OfTable(named_by)))
        }
        (None, FileRows::Chosen(_)) => {
            return Err(Error::unsupported("rows that were chosen in this process cannot be read by Spark"));
        }
    };
    let bit = |present: bool, bit: u8| if present { bit } else { 0 };
    bytes.push(
        bit(without.is_some(), WITHOUT_ROWS)
            | bit(only.is_some(), ONLY_ROWS)
            | bit(file.change_type.is_some(), CHANGE_TYPE)
            | bit(file.row_tracking.is_some(), ROW_TRACKING)
            | bit(matches!(file.path, PlannedPath::Outside(_)), OUTSIDE)
            | bit(file.number.is_some(), NUMBER),
    );
    for vector in [without, only].into_iter().flatten() {
        match vector {
            Vector::OfTable(descriptor) => pack_vector(descriptor, resolver, bytes)?,
            Vector::Given(rows) => {
                let cardinality = i64::try_from(rows.cardinality()).map_err(|_| too_many())?;
                bytes.extend(cardinality.to_be_bytes());
                bytes.push(INLINE);
                blob(&rows.to_bytes(), bytes)?;
            }
        }
    }
    if let Some(change_type) = file.change_type {
        text(change_type, bytes)?;
    }
    if let Some((base_row_id, commit_version)) = file.row_tracking {
        bytes.extend(base_row_id.to_be_bytes());
        bytes.extend(commit_version.to_be_bytes());
    }
    if let Some(number) = file.number {
        bytes.extend(number.to_be_bytes());
    }
    Ok(())
}

fn pack_vector(
    descriptor: &DeletionVectorDescriptor,
    resolver: &PathResolver,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    bytes.extend(descriptor.cardinality.to_be_bytes());
    let (path, offset) = match VectorPlace::of(descriptor, resolver)? {
        VectorPlace::Inline(vector) => {
            bytes.push(INLINE);
            return blob(&vector, bytes);
        }
        VectorPlace::File { path, offset, .. } => (path, offset),
    };
    match path {
        LogPath::Relative(path) => {
            bytes.push(BELOW_ROOT);
            text(&path, bytes)?;
        }
        LogPath::Absolute(path) => {
            bytes.push(ABSOLUTE);
            text(&format!("{}://{}{}", path.scheme(), path.authority(), path.path()), bytes)?;
        }
    }
    bytes.extend(offset.to_be_bytes());
    bytes.extend(descriptor.size_in_bytes.to_be_bytes());
    Ok(())
}

/// Returns whether a path of the file list is outside the table: an absolute path, or one with a scheme.
pub(super) fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || path.split_once(":/").is_some_and(|(scheme, _)| !scheme.contains('/'))
}

/// Packs the version of this wheel, with which everything packed begins.
pub(super) fn pack_version(bytes: &mut Vec<u8>) -> Result<()> {
    text(env!("CARGO_PKG_VERSION"), bytes)
}

pub(super) fn text(text: &str, bytes: &mut Vec<u8>) -> Result<()> {
    blob(text.as_bytes(), bytes)
}

pub(super) fn blob(blob: &[u8], bytes: &mut Vec<u8>) -> Result<()> {
    let length = i32::try_from(blob.len()).map_err(|_| Error::unsupported("a value is larger than 2 GiB"))?;
    bytes.extend(length.to_be_bytes());
    bytes.extend(blob);
    Ok(())
}

fn count(count: usize) -> Result<i32> {
    i32::try_from(count).map_err(|_| too_many())
}

fn too_many() -> Error {
    Error::unsupported("the table has more files or partitions than Spark can plan")
        .with_hint("filter by a partition column")
}
