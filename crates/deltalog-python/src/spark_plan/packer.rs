//! Bytes of a file list, file by file.

use std::collections::HashMap;

use arrow::array::ArrayRef;
use deltalog::protocol::LogPath;
use deltalog::scan::FileRows;
use deltalog::{Error, Result};

use super::values::pack_partition_row;

/// Whether the file has a selection of rows, and which side of it is shown.
const WITHOUT_ROWS: u8 = 1;
const ONLY_ROWS: u8 = 2;

/// Where a file lies, decoded.
pub(super) enum PlannedPath<'a> {
    /// Relative to the table's root.
    Relative(&'a str),
    /// Outside of the table, as Hadoop writes it.
    Outside(String),
}

impl<'a> PlannedPath<'a> {
    pub(super) fn new(path: &'a LogPath) -> Self {
        match path {
            LogPath::Relative(path) => Self::Relative(path),
            LogPath::Absolute(path) if path.authority().is_empty() => Self::Outside(format!("{}:{}", path.scheme(), path.path())),
            LogPath::Absolute(path) => Self::Outside(format!("{}://{}{}", path.scheme(), path.authority(), path.path())),
        }
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Relative(path) => path,
            Self::Outside(path) => path,
        }
    }
}

/// A file as the planner knows it.
pub(super) struct PlannedFile<'a> {
    /// Where it lies.
    pub(super) path: PlannedPath<'a>,
    pub(super) size: i64,
    pub(super) modification_time_ms: i64,
    /// The row `row` of these columns holds its partition values.
    pub(super) values: &'a [ArrayRef],
    pub(super) row: usize,
    pub(super) rows: FileRows,
    /// What a change data feed says of all its rows.
    pub(super) change_type: Option<&'static str>,
    /// The id of its first row, and the version that its rows were added in.
    pub(super) row_tracking: Option<(i64, i64)>,
}

#[derive(Default)]
pub(super) struct Packer {
    /// Partition rows as bytes, and their numbers.
    partition_rows: HashMap<Vec<u8>, i32>,
    partition_bytes: Vec<u8>,
    scratch: Vec<u8>,
    directories: Vec<u8>,
    directory_count: i32,
    /// Where the count of files of the open directory stands, its row, and the count.
    open: Option<(usize, i32, i32)>,
    /// Which rows are shown of the files of which not all are, with the files' paths.
    selections: Vec<(String, FileRows)>,
    files: u64,
}

impl Packer {
    /// How many files were added.
    pub(super) fn files(&self) -> u64 {
        self.files
    }

    /// What must be known of the files of which not all rows are shown, in the order in which [`Packer::finish`] takes it.
    pub(super) fn selections(&self) -> &[(String, FileRows)] {
        &self.selections
    }

    pub(super) fn add(&mut self, file: PlannedFile<'_>) -> Result<()> {
        let number = self.partition_row(file.values, file.row)?;
        self.enter(number);
        self.directories.extend(file.size.to_be_bytes());
        self.directories.extend(file.modification_time_ms.to_be_bytes());
        let (is_relative, path) = match &file.path {
            PlannedPath::Relative(path) => (1, *path),
            PlannedPath::Outside(path) => (0, path.as_str()),
        };
        self.directories.push(is_relative);
        text(path, &mut self.directories)?;
        self.add_facts(file)?;
        self.files += 1;
        if let Some((_, _, count)) = &mut self.open {
            *count += 1;
        }
        Ok(())
    }

    fn add_facts(&mut self, file: PlannedFile<'_>) -> Result<()> {
        let flag = match file.rows {
            FileRows::All => 0,
            FileRows::Live(_) => WITHOUT_ROWS,
            FileRows::Between { .. } => ONLY_ROWS,
        };
        self.directories.push(flag);
        if flag != 0 {
            self.directories.extend(count(self.selections.len())?.to_be_bytes());
            self.selections.push((file.path.as_str().to_owned(), file.rows));
        }
        text(file.change_type.unwrap_or_default(), &mut self.directories)?;
        self.directories.push(u8::from(file.row_tracking.is_some()));
        if let Some((base_row_id, commit_version)) = file.row_tracking {
            self.directories.extend(base_row_id.to_be_bytes());
            self.directories.extend(commit_version.to_be_bytes());
        }
        Ok(())
    }

    fn partition_row(&mut self, values: &[ArrayRef], row: usize) -> Result<i32> {
        self.scratch.clear();
        pack_partition_row(values, row, &mut self.scratch)?;
        if let Some(number) = self.partition_rows.get(&self.scratch) {
            return Ok(*number);
        }
        let number = count(self.partition_rows.len())?;
        self.partition_rows.insert(self.scratch.clone(), number);
        self.partition_bytes.extend(&self.scratch);
        Ok(number)
    }

    /// Goes on in the open directory, or opens one for partition row `number`.
    fn enter(&mut self, number: i32) {
        if self.open.is_some_and(|(_, row, _)| row == number) {
            return;
        }
        self.close();
        self.directories.extend(number.to_be_bytes());
        self.open = Some((self.directories.len(), number, 0));
        self.directories.extend(0i32.to_be_bytes());
        self.directory_count += 1;
    }

    fn close(&mut self) {
        if let Some((at, _, count)) = self.open.take()
            && let Some(place) = self.directories.get_mut(at..at + 4)
        {
            place.copy_from_slice(&count.to_be_bytes());
        }
    }

    /// All of it; `total` is the number of files of the snapshot, `bitmaps` are those of [`Packer::selections`].
    pub(super) fn finish(mut self, total: u64, root: &str, bitmaps: &[Vec<u8>]) -> Result<Vec<u8>> {
        self.close();
        let of_bitmaps: usize = bitmaps.iter().map(|bitmap| bitmap.len() + 4).sum();
        let mut bytes = Vec::with_capacity(self.directories.len() + self.partition_bytes.len() + of_bitmaps + root.len() + 24);
        bytes.extend(total.to_be_bytes());
        bytes.extend(count(self.partition_rows.len())?.to_be_bytes());
        bytes.append(&mut self.partition_bytes);
        text(root, &mut bytes)?;
        bytes.extend(count(bitmaps.len())?.to_be_bytes());
        for bitmap in bitmaps {
            blob(bitmap, &mut bytes)?;
        }
        bytes.extend(self.directory_count.to_be_bytes());
        bytes.append(&mut self.directories);
        match i32::try_from(bytes.len()) {
            Ok(_) => Ok(bytes),
            Err(_) => Err(Error::unsupported("the file list is larger than 2 GiB").with_hint("filter by a partition column")),
        }
    }
}

/// Whether the file list speaks of a file outside of the table: by a path from the root, or with a scheme.
pub(super) fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || path.split_once(":/").is_some_and(|(scheme, _)| !scheme.contains('/'))
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
    i32::try_from(count).map_err(|_| Error::unsupported("the table has more files or partitions than Spark can plan"))
}
