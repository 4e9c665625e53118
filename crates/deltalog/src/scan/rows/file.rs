//! One data file: opened, planned, read.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow::compute::{filter_record_batch, take};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, Type};
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::SchemaDescriptor;

use super::columns::{NeededColumn, has_ids};
use super::convert::{convert, is_convertible};
use super::faults::WatchedFile;
use super::groups::matching_groups;
use super::plan::{Plan, find_in_file, leaf_count};
use super::row_ids::{self, RowIds, RowNumbers};
use super::selection::{SelectedRows, group_rows};
use super::{DataFile, FileRows, PartitionRow, RowScan};
use crate::deletion_vector::DeletionVectors;
use crate::error::{Error, ErrorKind, Result};
use crate::predicate::filter_mask;
use crate::protocol::LogPath;

/// What all files of a scan share.
#[derive(Debug)]
pub(super) struct Opener {
    scan: RowScan,
    columns: Vec<NeededColumn>,
    schema: SchemaRef,
    output: Vec<usize>,
    vectors: DeletionVectors,
}

/// A file with what is to be read of it.
#[derive(Debug)]
pub(super) struct OpenFile {
    /// How messages name it.
    pub(super) name: String,
    file: WatchedFile,
    metadata: ArrowReaderMetadata,
    leaves: Vec<usize>,
    sources: Vec<Source>,
    /// The rows of each row group; not known, and not needed, if all rows are wanted without their ids.
    group_rows: Vec<Range<u64>>,
    rows: SelectedRows,
    row_ids: Option<RowIds>,
    /// The row groups that may hold matching rows.
    pub(super) groups: Vec<usize>,
}

/// Where the values of a column come from.
#[derive(Debug)]
enum Source {
    /// The value, an array of one, that all rows have.
    Constant(ArrayRef),
    /// The file's column of this name.
    File(String, Plan),
}

impl Opener {
    pub(super) fn new(scan: RowScan) -> Self {
        let columns = scan.columns.needed();
        let row_ids = scan.columns.row_tracking.iter().flat_map(|_| row_ids::fields());
        let fields: Fields = columns.iter().map(|column| Arc::clone(&column.field)).chain(row_ids).collect();
        // The metadata is that of the output, which is a projection of this.
        let output = (0..scan.columns.output_len()).chain(columns.len()..fields.len()).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, scan.schema().metadata().clone()));
        let vectors = DeletionVectors::new(scan.storage.clone(), scan.resolver.clone());
        Self { scan, columns, schema, output, vectors }
    }

    /// Adds to `error` where it happened.
    pub(super) fn located(&self, error: Error, name: &str) -> Error {
        let error = error.at_path(name).in_table(self.scan.storage.url());
        match self.scan.version {
            Some(version) => error.at_version(version),
            None => error,
        }
    }

    /// Opens `file`, or nothing if its partition values say that no row matches.
    ///
    /// # Errors
    /// `FileNotFound`, `Unavailable`, `PermissionDenied`, `CorruptData`.
    pub(super) fn open(&self, file: &DataFile) -> Result<Option<OpenFile>> {
        let name = file.path.to_string();
        self.open_named(file, &name).map_err(|error| self.located(error, &name))
    }

    fn open_named(&self, file: &DataFile, name: &str) -> Result<Option<OpenFile>> {
        let partition = self.scan.columns.partition_batch(|field| partition_value(&file.partition_values, field))?;
        if let Some(predicate) = &self.scan.columns.file_predicate {
            let mask = filter_mask(predicate, &partition)?;
            if !(mask.is_valid(0) && mask.value(0)) {
                return Ok(None);
            }
        }
        let watched = WatchedFile::new(self.open_path(&file.path)?);
        let metadata = read_footer(&watched).map_err(|error| with_sizes(error, file.size, &watched))?;
        let fields = metadata.schema().fields();
        if fields.iter().map(|field| leaf_count(field.data_type())).sum::<usize>() != metadata.parquet_schema().num_columns() {
            return Err(Error::corrupt_data("the file's schema has no Arrow form with the same leaf columns"));
        }
        if self.scan.columns.has_ids() && !has_ids(fields) {
            return Err(Error::corrupt_data("the file has no field ids, by which the table finds its columns (column mapping mode 'id')"));
        }
        let (mut leaves, mut sources) = (Vec::new(), Vec::with_capacity(self.columns.len()));
        for NeededColumn { field, in_files, is_partition } in &self.columns {
            let is_given = *is_partition || file.partition_values.gives(field.name());
            let in_file = if is_given { None } else { find_in_file(fields, in_files, field.name())? };
            sources.push(match in_file {
                Some((found, leaf)) => {
                    let plan = Plan::new([field, in_files], found.data_type(), leaf, field.name(), &mut leaves)?;
                    Source::File(found.name().clone(), plan)
                }
                None if is_given => Source::Constant(partition_value(&file.partition_values, field)?),
                None => Source::Constant(new_null_array(field.data_type(), 1)),
            });
        }
        let row_ids = match &self.scan.columns.row_tracking {
            Some(names) => Some(RowIds::new(file.row_tracking, names, fields, &mut leaves)?),
            None => None,
        };
        let groups = match &self.scan.columns.row_predicate {
            Some(predicate) => {
                let given = self.with_given(partition, &file.partition_values)?;
                matching_groups(predicate, &self.scan.columns, metadata.metadata(), metadata.schema(), &given)?
            }
            None => (0..metadata.metadata().num_row_groups()).collect(),
        };
        let (groups, group_rows, rows) = self.select(file, metadata.metadata(), groups)?;
        check_codecs(&metadata, &groups, &leaves)?;
        Ok(Some(OpenFile { name: name.to_owned(), file: watched, metadata, leaves, sources, group_rows, rows, row_ids, groups }))
    }

    /// `partition`, the values of the partition columns, and those of other columns that `row` gives.
    fn with_given(&self, partition: RecordBatch, row: &PartitionRow) -> Result<RecordBatch> {
        let others: Vec<_> = self.columns.iter().filter(|column| !column.is_partition && row.gives(column.field.name())).collect();
        if others.is_empty() {
            return Ok(partition);
        }
        let (mut fields, mut values) = (partition.schema().fields().to_vec(), partition.columns().to_vec());
        for column in others {
            fields.push(Arc::new(column.field.as_ref().clone().with_nullable(true)));
            values.push(partition_value(row, &column.field)?);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), values)
            .map_err(|error| Error::invalid_argument("the values given for a file do not fit the schema").with_source(error))
    }

    /// The rows of `file` that are wanted: those of `groups` that have any, where each group begins and ends, and which of its rows they are.
    fn select(
        &self,
        file: &DataFile,
        metadata: &ParquetMetaData,
        mut groups: Vec<usize>,
    ) -> Result<(Vec<usize>, Vec<Range<u64>>, SelectedRows)> {
        let needs_numbers = file.rows != FileRows::All || self.scan.columns.row_tracking.is_some();
        if !needs_numbers || groups.is_empty() {
            return Ok((groups, Vec::new(), SelectedRows::All));
        }
        let ranges = group_rows(metadata)?;
        let rows = SelectedRows::read(&file.rows, &self.vectors, ranges.last().map_or(0, |last| last.end))?;
        groups.retain(|group| ranges.get(*group).is_some_and(|range| rows.has_any(range)));
        Ok((groups, ranges, rows))
    }

    fn open_path(&self, path: &LogPath) -> Result<crate::storage::FileReader> {
        self.scan.storage.open_log_path(path).map_err(|error| match error.kind() {
            ErrorKind::FileNotFound => error.with_hint(
                "the table's log names this data file, but it is gone: vacuumed, if this is an old version, else deleted by hand; read a newer version, or restore the file",
            ),
            _ => error,
        })
    }

    /// The rows of the row groups `groups` of `file`.
    ///
    /// # Errors
    /// `CorruptData`, `Unavailable`.
    pub(super) fn batches(self: &Arc<Self>, file: Arc<OpenFile>, groups: Vec<usize>) -> Result<FileBatches> {
        let mask = ProjectionMask::leaves(file.metadata.parquet_schema(), file.leaves.iter().copied());
        let ranges: Vec<_> = groups.iter().filter_map(|group| file.group_rows.get(*group).cloned()).collect();
        let selection = file.rows.of_groups(&ranges).map_err(|error| self.located(error, &file.name))?;
        let mut reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file.file.clone(), file.metadata.clone())
            .with_batch_size(self.scan.batch_rows)
            .with_projection(mask)
            .with_row_groups(groups);
        if let Some(selection) = selection {
            reader = reader.with_row_selection(selection);
        }
        let reader = reader.build().map_err(|error| self.located(file.file.error(error), &file.name))?;
        let repeated = vec![None; file.sources.len()];
        Ok(FileBatches { opener: Arc::clone(self), file, reader, repeated, numbers: RowNumbers::new(ranges) })
    }
}

/// The rows of one file.
#[derive(Debug)]
pub(super) struct FileBatches {
    opener: Arc<Opener>,
    file: Arc<OpenFile>,
    reader: ParquetRecordBatchReader,
    /// For each constant column an array that is long enough for the batches so far.
    repeated: Vec<Option<ArrayRef>>,
    numbers: RowNumbers,
}

impl FileBatches {
    /// The file's name in messages.
    pub(super) fn name(&self) -> &str {
        &self.file.name
    }

    /// The matching rows of the next batch, perhaps none.
    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let next = self.reader.next().transpose().map_err(|error| self.file.file.error(error));
        let next = next.and_then(|batch| batch.map(|batch| self.finished(&batch)).transpose());
        next.map_err(|error| self.opener.located(error, &self.file.name))
    }

    fn finished(&mut self, read: &RecordBatch) -> Result<RecordBatch> {
        let rows = read.num_rows();
        let mut arrays = Vec::with_capacity(self.file.sources.len());
        for ((source, field), repeated) in self.file.sources.iter().zip(self.opener.schema.fields()).zip(&mut self.repeated) {
            let array = match source {
                Source::Constant(value) => repeat(value, rows, repeated)?,
                Source::File(name, plan) => {
                    let unfit =
                        || Error::corrupt_data(format!("the column '{}' has a value that the table's type cannot hold", field.name()));
                    let array = read.column_by_name(name).ok_or_else(unfit)?;
                    plan.apply(array).map_err(|error| unfit().with_source(error))?
                }
            };
            if !field.is_nullable() && array.logical_null_count() > 0 {
                return Err(Error::corrupt_data(format!("the column '{}' must not be NULL, but is in the file", field.name())));
            }
            arrays.push(array);
        }
        if let Some(row_ids) = &self.file.row_ids {
            let numbers = self.numbers.next(rows, &self.file.rows)?;
            arrays.extend(row_ids.columns(&numbers, |name| read.column_by_name(name))?);
        }
        let malformed = |error| Error::corrupt_data("the file's columns do not form rows").with_source(error);
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let whole = RecordBatch::try_new_with_options(Arc::clone(&self.opener.schema), arrays, &options).map_err(malformed)?;
        let matching = match &self.opener.scan.columns.row_predicate {
            Some(predicate) => filter_record_batch(&whole, &filter_mask(predicate, &whole)?).map_err(malformed)?,
            None => whole,
        };
        matching.project(&self.opener.output).map_err(malformed)
    }
}

/// `rows` times `value`, which is an array of one. `longest` keeps the longest so far.
fn repeat(value: &ArrayRef, rows: usize, longest: &mut Option<ArrayRef>) -> Result<ArrayRef> {
    if let Some(array) = longest.as_ref().filter(|array| array.len() >= rows) {
        return Ok(array.slice(0, rows));
    }
    let repeated = take(value, &UInt32Array::from(vec![0; rows]), None)
        .map_err(|error| Error::invalid_argument("a partition value cannot be repeated").with_source(error))?;
    *longest = Some(Arc::clone(&repeated));
    Ok(repeated)
}

/// The value of the partition column `field`, as an array of one.
fn partition_value(row: &PartitionRow, field: &FieldRef) -> Result<ArrayRef> {
    let unfit = |what: &str| Error::invalid_argument(format!("the file's value of the partition column '{}' {what}", field.name()));
    let values = row.values.column_by_name(field.name()).ok_or_else(|| unfit("is not given"))?;
    let value = if row.values.is_null(row.row) { new_null_array(values.data_type(), 1) } else { values.slice(row.row, 1) };
    if !is_convertible(value.data_type(), field.data_type()) {
        return Err(unfit(&format!("is of type {} instead of {}", value.data_type(), field.data_type())));
    }
    convert(&value, field.data_type()).map_err(|error| unfit("does not fit its type").with_source(error))
}

/// Reads the footer. The Arrow schema that some writers put there is not used: it says how the writer held the values, the Parquet schema what they
/// are.
fn read_footer(file: &WatchedFile) -> Result<ArrowReaderMetadata> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let metadata = ArrowReaderMetadata::load(file, options.clone()).map_err(|error| file.error(error))?;
    let columns = metadata.parquet_schema();
    if columns.columns().iter().all(|column| column.physical_type() != Type::INT96) {
        return Ok(metadata);
    }
    let fields = int96_as_micros(metadata.schema().fields(), columns, &mut 0);
    let schema = Schema::new_with_metadata(fields, metadata.schema().metadata().clone());
    let options = options.with_schema(Arc::new(schema));
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options).map_err(|error| file.error(error))
}

/// Refuses a compression that no decoder is there for.
fn check_codecs(metadata: &ArrowReaderMetadata, groups: &[usize], leaves: &[usize]) -> Result<()> {
    for group in groups.iter().filter_map(|group| metadata.metadata().row_groups().get(*group)) {
        for column in leaves.iter().filter_map(|leaf| group.columns().get(*leaf)) {
            if matches!(column.compression(), Compression::LZO) {
                let name = column.column_path().string();
                return Err(Error::unsupported(format!("the column '{name}' is compressed with {}", column.compression())));
            }
        }
    }
    Ok(())
}

/// `fields` with microseconds for INT96, whose nanoseconds would only reach from 1677 to 2262. `leaf` counts the leaf columns.
fn int96_as_micros(fields: &Fields, columns: &SchemaDescriptor, leaf: &mut usize) -> Fields {
    let mut convert_field = |field: &FieldRef| -> FieldRef {
        let mut inner = |inner: &FieldRef| int96_as_micros(&Fields::from(vec![Arc::clone(inner)]), columns, leaf);
        let data_type = match field.data_type() {
            DataType::Struct(inner) => DataType::Struct(int96_as_micros(inner, columns, leaf)),
            DataType::List(element) => inner(element).first().map_or_else(|| field.data_type().clone(), |e| DataType::List(Arc::clone(e))),
            DataType::Map(entries, sorted) => {
                inner(entries).first().map_or_else(|| field.data_type().clone(), |e| DataType::Map(Arc::clone(e), *sorted))
            }
            other => {
                let column = columns.columns().get(*leaf);
                *leaf += 1;
                match column.is_some_and(|column| column.physical_type() == Type::INT96) {
                    true => DataType::Timestamp(TimeUnit::Microsecond, None),
                    false => other.clone(),
                }
            }
        };
        Arc::new(Field::clone(field).with_data_type(data_type))
    };
    fields.iter().map(&mut convert_field).collect()
}

/// Adds to the error of a footer that the file is not as long as the log says, if so.
fn with_sizes(error: Error, expected: u64, file: &WatchedFile) -> Error {
    let actual = parquet::file::reader::Length::len(file);
    match error.kind() {
        ErrorKind::CorruptData if actual != expected => error.with_hint(format!("the file has {actual} bytes, the log says {expected}")),
        _ => error,
    }
}
