//! The file list packed for the Java side of `deltalog.spark`.
//!
//! ```text
//! i32 P, P partition rows: for each column u8 present, and if 1 the value in Catalyst's form
//! i32 length, the table's root as a Hadoop path
//! i32 D, D directories: i32 partition row, i32 F, F files: i64 size, i64 modification time in ms, u8 relative, i32 length, path
//! ```
//!
//! - Big endian. Paths are decoded: a Hadoop `Path` made of text is not decoded again.
//! - Files of equal partition values share a row, and stand in one directory where they follow each other.

use std::collections::HashMap;

use arrow::array::{Array, AsArray, RecordBatch, StructArray};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType,
};
use deltalog::predicate::{ParseMode, parse};
use deltalog::scan::{FileListing, ListColumn};
use deltalog::{Error, Result, Snapshot};

/// A packed file list.
pub(crate) struct Plan {
    pub(crate) bytes: Vec<u8>,
    /// Files in it.
    pub(crate) kept: u64,
    /// Files of the snapshot.
    pub(crate) total: u64,
}

/// Packs the files of `snapshot` that may hold rows for which `filter_sql` is true.
pub(crate) fn pack(snapshot: &Snapshot, filter_sql: &str, time_zone: &str) -> Result<Plan> {
    let mut listing =
        FileListing::new(snapshot).columns([ListColumn::Path, ListColumn::Size, ListColumn::ModificationTime, ListColumn::PartitionValues]);
    if !filter_sql.trim().is_empty() {
        listing = listing.pruning(&parse(filter_sql, time_zone, ParseMode::Pruning)?);
    }
    let mut packer = Packer::default();
    let mut list = listing.read()?;
    for batch in list.by_ref() {
        packer.add(&batch?)?;
    }
    let root = hadoop_root(snapshot)?;
    Ok(Plan { kept: packer.files, total: list.seen(), bytes: packer.finish(&root)? })
}

/// The root as Hadoop writes it: scheme, and the decoded path.
fn hadoop_root(snapshot: &Snapshot) -> Result<String> {
    let root = snapshot.storage().root();
    let path = deltalog::protocol::path::decode(root.path())?.into_owned();
    Ok(match root.host_str() {
        Some(host) => format!("{}://{host}{path}", root.scheme()),
        None => format!("{}:{path}", root.scheme()),
    })
}

#[derive(Default)]
struct Packer {
    /// Partition rows as bytes, and their numbers.
    rows: HashMap<Vec<u8>, i32>,
    row_bytes: Vec<u8>,
    directories: Vec<u8>,
    directory_count: i32,
    /// Where the count of files of the open directory stands, its row, and the count.
    open: Option<(usize, i32, i32)>,
    files: u64,
}

impl Packer {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let [paths, sizes, times, values] = batch.columns() else {
            return Err(Error::corrupt_log("the file list has other columns than asked for"));
        };
        let (paths, sizes) = (paths.as_string::<i32>(), sizes.as_primitive::<Int64Type>());
        let (times, values) = (times.as_primitive::<TimestampMillisecondType>(), values.as_struct());
        let mut scratch = Vec::new();
        for row in 0..batch.num_rows() {
            scratch.clear();
            pack_partition_row(values, row, &mut scratch)?;
            let number = self.row_number(&scratch)?;
            self.enter(number);
            self.directories.extend(sizes.value(row).to_be_bytes());
            self.directories.extend(if times.is_valid(row) { times.value(row) } else { 0 }.to_be_bytes());
            let path = paths.value(row);
            if is_absolute(path) {
                return Err(Error::unsupported("a data file lies outside of the table")
                    .at_path(path)
                    .with_hint("read the table that this one was cloned from, or copy it"));
            }
            self.directories.push(1);
            text(path, &mut self.directories)?;
            self.files += 1;
            if let Some((_, _, count)) = &mut self.open {
                *count += 1;
            }
        }
        Ok(())
    }

    fn row_number(&mut self, row: &[u8]) -> Result<i32> {
        if let Some(number) = self.rows.get(row) {
            return Ok(*number);
        }
        let number = i32::try_from(self.rows.len()).map_err(|_| Error::unsupported("the table has more partitions than Spark can plan"))?;
        self.rows.insert(row.to_vec(), number);
        self.row_bytes.extend(row);
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

    fn finish(mut self, root: &str) -> Result<Vec<u8>> {
        self.close();
        let mut bytes = Vec::with_capacity(self.directories.len() + self.row_bytes.len() + root.len() + 16);
        bytes.extend((self.rows.len() as i32).to_be_bytes());
        bytes.append(&mut self.row_bytes);
        text(root, &mut bytes)?;
        bytes.extend(self.directory_count.to_be_bytes());
        bytes.append(&mut self.directories);
        match i32::try_from(bytes.len()) {
            Ok(_) => Ok(bytes),
            Err(_) => Err(Error::unsupported("the file list is larger than 2 GiB").with_hint("filter by a partition column")),
        }
    }
}

/// Whether the file list speaks of a file outside of the table: by a path from the root, or with a scheme.
pub(crate) fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || path.split_once(":/").is_some_and(|(scheme, _)| !scheme.contains('/'))
}

fn text(text: &str, bytes: &mut Vec<u8>) -> Result<()> {
    blob(text.as_bytes(), bytes)
}

fn blob(blob: &[u8], bytes: &mut Vec<u8>) -> Result<()> {
    let length = i32::try_from(blob.len()).map_err(|_| Error::unsupported("a value is larger than 2 GiB"))?;
    bytes.extend(length.to_be_bytes());
    bytes.extend(blob);
    Ok(())
}

fn pack_partition_row(values: &StructArray, row: usize, bytes: &mut Vec<u8>) -> Result<()> {
    for column in values.columns() {
        if column.is_null(row) || *column.data_type() == DataType::Null {
            bytes.push(0);
            continue;
        }
        bytes.push(1);
        match column.data_type() {
            DataType::Boolean => bytes.push(u8::from(column.as_boolean().value(row))),
            DataType::Int8 => bytes.extend(i32::from(column.as_primitive::<Int8Type>().value(row)).to_be_bytes()),
            DataType::Int16 => bytes.extend(i32::from(column.as_primitive::<Int16Type>().value(row)).to_be_bytes()),
            DataType::Int32 => bytes.extend(column.as_primitive::<Int32Type>().value(row).to_be_bytes()),
            DataType::Date32 => bytes.extend(column.as_primitive::<Date32Type>().value(row).to_be_bytes()),
            DataType::Int64 => bytes.extend(column.as_primitive::<Int64Type>().value(row).to_be_bytes()),
            DataType::Timestamp(..) => bytes.extend(column.as_primitive::<TimestampMicrosecondType>().value(row).to_be_bytes()),
            DataType::Float32 => bytes.extend(column.as_primitive::<Float32Type>().value(row).to_be_bytes()),
            DataType::Float64 => bytes.extend(column.as_primitive::<Float64Type>().value(row).to_be_bytes()),
            DataType::Decimal128(..) => blob(&column.as_primitive::<Decimal128Type>().value(row).to_be_bytes(), bytes)?,
            DataType::Utf8 => text(column.as_string::<i32>().value(row), bytes)?,
            DataType::Binary => blob(column.as_binary::<i32>().value(row), bytes)?,
            other => return Err(Error::unsupported(format!("a partition column of the type {other} cannot be handed to Spark yet"))),
        }
    }
    Ok(())
}
