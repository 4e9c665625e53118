//! Changes as lines of a commit. Protocol: "Delta Log Entries", "Actions".

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, MapArray, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use bytes::Bytes;

use super::changes::Changes;
use super::row_ids::RowIds;
use crate::error::{Error, Result};
use crate::protocol::{Action, Add, PartitionValues, Remove};
use crate::replay::{DeletionVectorColumn, FileColumn, remove_fields, with_columns};

/// The size in bytes at which a chunk of lines ends.
const CHUNK: usize = 8 << 20;

/// Lines of a commit, in chunks.
#[derive(Default)]
pub(super) struct Lines {
    chunks: Vec<Bytes>,
    last: Vec<u8>,
}

impl Lines {
    /// Appends the line of `action`.
    pub(super) fn push(&mut self, action: &Action) -> Result<()> {
        self.last.extend_from_slice(action.to_json_line()?.as_bytes());
        self.last.push(b'\n');
        if self.last.len() >= CHUNK {
            self.chunks.push(std::mem::take(&mut self.last).into());
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Vec<Bytes> {
        if !self.last.is_empty() {
            self.chunks.push(self.last.into());
        }
        self.chunks
    }
}

impl Changes {
    /// Returns the lines that are the same in every attempt: all but those of `commitInfo` and `add`.
    pub(super) fn fixed_lines(&self) -> Result<Vec<Bytes>> {
        let mut lines = Lines::default();
        if let Some(protocol) = &self.protocol {
            lines.push(&Action::Protocol(protocol.clone()))?;
        }
        if let Some(metadata) = &self.metadata {
            lines.push(&Action::Metadata(metadata.clone()))?;
        }
        for progress in &self.transactions {
            lines.push(&Action::Txn(progress.clone()))?;
        }
        for domain in &self.domains {
            lines.push(&Action::DomainMetadata(domain.clone()))?;
        }
        for remove in self.removes.iter().map(removes_of) {
            remove?.into_iter().try_for_each(|remove| lines.push(&Action::Remove(remove)))?;
        }
        Ok(lines.finish())
    }

    /// Returns the lines of the `add` actions. With row tracking, `row_ids` gives ids to the rows of new files.
    pub(super) fn add_lines(&self, mut row_ids: Option<&mut RowIds>) -> Result<Vec<Bytes>> {
        let mut lines = Lines::default();
        for batch in &self.adds {
            for mut add in adds_of(batch)? {
                if let Some(row_ids) = &mut row_ids {
                    row_ids.assign(&mut add)?;
                }
                lines.push(&Action::Add(add))?;
            }
        }
        Ok(lines.finish())
    }
}

/// Returns the rows of a batch of `add` actions as structs.
pub(super) fn adds_of(batch: &RecordBatch) -> Result<Vec<Add>> {
    let columns = with_columns(batch, FileColumn::ALL.map(FileColumn::field).to_vec())?;
    let rows = Rows::new(&columns)?;
    (0..columns.num_rows()).map(|row| rows.add(row)).collect()
}

/// Returns the rows of a batch of `remove` actions as structs.
pub(super) fn removes_of(batch: &RecordBatch) -> Result<Vec<Remove>> {
    let columns = with_columns(batch, remove_fields())?;
    let rows = Rows::new(&columns)?;
    (0..columns.num_rows()).map(|row| rows.remove(row)).collect()
}

/// The rows of a batch of file actions as structs.
struct Rows<'a> {
    path: &'a StringArray,
    partition_values: Option<&'a MapArray>,
    size: Option<&'a Int64Array>,
    modification_time: Option<&'a Int64Array>,
    deletion_timestamp: Option<&'a Int64Array>,
    data_change: Option<&'a BooleanArray>,
    extended_file_metadata: Option<&'a BooleanArray>,
    stats: Option<&'a StringArray>,
    tags: Option<&'a MapArray>,
    deletion_vector: DeletionVectorColumn<'a>,
    base_row_id: Option<&'a Int64Array>,
    default_row_commit_version: Option<&'a Int64Array>,
    clustering_provider: Option<&'a StringArray>,
}

impl<'a> Rows<'a> {
    fn new(batch: &'a RecordBatch) -> Result<Self> {
        let column = |name: &str| batch.column_by_name(name);
        let long = |name: &str| column(name).and_then(|column| column.as_primitive_opt::<Int64Type>());
        let boolean = |name: &str| column(name).and_then(|column: &ArrayRef| column.as_boolean_opt());
        let text = |name: &str| column(name).and_then(|column| column.as_string_opt::<i32>());
        let map = |name: &str| column(name).and_then(|column| column.as_map_opt());
        Ok(Self {
            path: text("path").ok_or_else(|| Error::corrupt_log("file actions have no column 'path'"))?,
            partition_values: map("partitionValues"),
            size: long("size"),
            modification_time: long("modificationTime"),
            deletion_timestamp: long("deletionTimestamp"),
            data_change: boolean("dataChange"),
            extended_file_metadata: boolean("extendedFileMetadata"),
            stats: text("stats"),
            tags: map("tags"),
            deletion_vector: DeletionVectorColumn::of_log(batch)?,
            base_row_id: long("baseRowId"),
            default_row_commit_version: long("defaultRowCommitVersion"),
            clustering_provider: text("clusteringProvider"),
        })
    }

    fn path(&self, row: usize) -> Result<String> {
        owned(Some(self.path), row).ok_or_else(|| Error::corrupt_log("a file action has no path"))
    }

    fn add(&self, row: usize) -> Result<Add> {
        Ok(Add {
            path: self.path(row)?,
            partition_values: pairs(self.partition_values, row).unwrap_or_default(),
            size: long(self.size, row).ok_or_else(|| Error::corrupt_log("an add action has no size"))?,
            modification_time: long(self.modification_time, row).unwrap_or_default(),
            data_change: boolean(self.data_change, row).unwrap_or(true),
            stats: owned(self.stats, row),
            tags: pairs(self.tags, row),
            deletion_vector: self.deletion_vector.get(row)?,
            base_row_id: long(self.base_row_id, row),
            default_row_commit_version: long(self.default_row_commit_version, row),
            clustering_provider: owned(self.clustering_provider, row),
        })
    }

    fn remove(&self, row: usize) -> Result<Remove> {
        Ok(Remove {
            path: self.path(row)?,
            deletion_timestamp: long(self.deletion_timestamp, row),
            data_change: boolean(self.data_change, row).unwrap_or(true),
            extended_file_metadata: boolean(self.extended_file_metadata, row),
            partition_values: pairs(self.partition_values, row),
            size: long(self.size, row),
            stats: owned(self.stats, row),
            tags: pairs(self.tags, row),
            deletion_vector: self.deletion_vector.get(row)?,
            base_row_id: long(self.base_row_id, row),
            default_row_commit_version: long(self.default_row_commit_version, row),
        })
    }
}

fn long(column: Option<&Int64Array>, row: usize) -> Option<i64> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}

fn boolean(column: Option<&BooleanArray>, row: usize) -> Option<bool> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
}

fn owned(column: Option<&StringArray>, row: usize) -> Option<String> {
    column.filter(|column| column.is_valid(row)).map(|column| column.value(row).to_owned())
}

fn pairs(column: Option<&MapArray>, row: usize) -> Option<PartitionValues> {
    let entries = column.filter(|column| column.is_valid(row))?.value(row);
    let (keys, values) =
        (entries.column(0).as_string_opt::<i32>()?, entries.column(1).as_string_opt::<i32>()?);
    let pair = |(key, value): (Option<&str>, Option<&str>)| Some((key?.to_owned(), value.map(str::to_owned)));
    Some(keys.iter().zip(values).filter_map(pair).collect())
}
