//! Builders for record batches of file actions, row by row.

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, BooleanBuilder, Int32Builder, Int64Builder, MapBuilder, MapFieldNames,
    NullBufferBuilder, RecordBatch, RecordBatchOptions, StringArray, StringBuilder, StructArray,
};
use arrow::datatypes::{FieldRef, Schema};

use super::columns::{FileColumn, deletion_vector_fields, remove_fields};
use crate::error::{Error, Result};
use crate::protocol::{Add, AddLine, DeletionVectorDescriptor, Pairs, RemoveLine};

/// The fields of the columns. They are created only once, because a log may have very many commits.
static ADD_FIELDS: LazyLock<Vec<FieldRef>> =
    LazyLock::new(|| FileColumn::ALL.iter().map(|column| Arc::new(column.field())).collect());
static REMOVE_FIELDS: LazyLock<Vec<FieldRef>> = LazyLock::new(|| {
    let others = [FileColumn::Stats.field(), FileColumn::Tags.field()];
    remove_fields().into_iter().chain(others).map(Arc::new).collect()
});
static NOTHING: LazyLock<RecordBatch> =
    LazyLock::new(|| RecordBatch::new_empty(Arc::new(Schema::new(vec![FileColumn::Path.field()]))));

/// A builder for rows of `add` actions with all columns.
pub(super) struct AddRows {
    path: StringBuilder,
    partition_values: StringMapBuilder,
    size: Int64Builder,
    modification_time: Int64Builder,
    data_change: BooleanBuilder,
    stats: StringBuilder,
    tags: Sparse<StringMapBuilder>,
    deletion_vector: Sparse<DeletionVectorRows>,
    base_row_id: Int64Builder,
    default_row_commit_version: Int64Builder,
    clustering_provider: StringBuilder,
}

impl AddRows {
    /// Reserves space for exactly `rows` rows. The default capacity of the builders would waste memory, because a log
    /// may have very many commits with very few files.
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self {
            path: StringBuilder::with_capacity(rows, 0),
            partition_values: StringMapBuilder::with_capacity(rows),
            size: Int64Builder::with_capacity(rows),
            modification_time: Int64Builder::with_capacity(rows),
            data_change: BooleanBuilder::with_capacity(rows),
            stats: StringBuilder::with_capacity(rows, 0),
            tags: Sparse::default(),
            deletion_vector: Sparse::default(),
            base_row_id: Int64Builder::with_capacity(rows),
            default_row_commit_version: Int64Builder::with_capacity(rows),
            clustering_provider: StringBuilder::with_capacity(rows, 0),
        }
    }

    pub(super) fn append(&mut self, add: &AddLine<'_>) -> Result<()> {
        self.path.append_value(&add.path);
        let empty = Pairs(Vec::new());
        self.partition_values.append(Some(add.partition_values.as_ref().unwrap_or(&empty)))?;
        self.size.append_value(add.size);
        self.modification_time.append_value(add.modification_time());
        self.data_change.append_value(add.data_change());
        self.stats.append_option(add.stats.as_ref().map(|stats| &stats.0));
        self.tags.append(add.tags.as_ref())?;
        self.deletion_vector.append(add.deletion_vector.as_ref())?;
        self.base_row_id.append_option(add.base_row_id);
        self.default_row_commit_version.append_option(add.default_row_commit_version);
        self.clustering_provider.append_option(add.clustering_provider.as_ref());
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<RecordBatch> {
        let columns = vec![
            Some(Arc::new(shrunk(self.path.finish())) as ArrayRef),
            Some(self.partition_values.finish()),
            Some(Arc::new(self.size.finish())),
            Some(Arc::new(self.modification_time.finish())),
            Some(Arc::new(self.data_change.finish())),
            Some(Arc::new(shrunk(self.stats.finish()))),
            self.tags.finish(),
            self.deletion_vector.finish(),
            Some(Arc::new(self.base_row_id.finish())),
            Some(Arc::new(self.default_row_commit_version.finish())),
            Some(Arc::new(self.clustering_provider.finish())),
        ];
        batch(&ADD_FIELDS, columns)
    }
}

/// A builder for rows of `remove` actions. Its columns are the columns of a tombstone, its statistics and its tags.
pub(super) struct RemoveRows {
    path: StringBuilder,
    deletion_timestamp: Int64Builder,
    data_change: BooleanBuilder,
    extended_file_metadata: BooleanBuilder,
    partition_values: StringMapBuilder,
    size: Int64Builder,
    deletion_vector: Sparse<DeletionVectorRows>,
    base_row_id: Int64Builder,
    default_row_commit_version: Int64Builder,
    stats: StringBuilder,
    tags: Sparse<StringMapBuilder>,
}

impl RemoveRows {
    /// Reserves space for `rows` rows.
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self {
            path: StringBuilder::with_capacity(rows, 0),
            deletion_timestamp: Int64Builder::with_capacity(rows),
            data_change: BooleanBuilder::with_capacity(rows),
            extended_file_metadata: BooleanBuilder::with_capacity(rows),
            partition_values: StringMapBuilder::with_capacity(rows),
            size: Int64Builder::with_capacity(rows),
            deletion_vector: Sparse::default(),
            base_row_id: Int64Builder::with_capacity(rows),
            default_row_commit_version: Int64Builder::with_capacity(rows),
            stats: StringBuilder::new(),
            tags: Sparse::default(),
        }
    }

    pub(super) fn append(
        &mut self,
        remove: &RemoveLine<'_>,
        stats: Option<&str>,
        tags: Option<&Pairs<'_>>,
    ) -> Result<()> {
        self.path.append_value(&remove.path);
        self.deletion_timestamp.append_option(remove.deletion_timestamp);
        self.data_change.append_value(remove.data_change());
        self.extended_file_metadata.append_option(remove.extended_file_metadata);
        self.partition_values.append(remove.partition_values.as_ref())?;
        self.size.append_option(remove.size);
        self.deletion_vector.append(remove.deletion_vector.as_ref())?;
        self.base_row_id.append_option(remove.base_row_id);
        self.default_row_commit_version.append_option(remove.default_row_commit_version);
        self.stats.append_option(stats);
        self.tags.append(tags)?;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<RecordBatch> {
        let columns = vec![
            Some(Arc::new(shrunk(self.path.finish())) as ArrayRef),
            Some(Arc::new(self.deletion_timestamp.finish())),
            Some(Arc::new(self.data_change.finish())),
            Some(Arc::new(self.extended_file_metadata.finish())),
            Some(self.partition_values.finish()),
            Some(Arc::new(self.size.finish())),
            self.deletion_vector.finish(),
            Some(Arc::new(self.base_row_id.finish())),
            Some(Arc::new(self.default_row_commit_version.finish())),
            Some(Arc::new(shrunk(self.stats.finish()))),
            self.tags.finish(),
        ];
        batch(&REMOVE_FIELDS, columns)
    }
}

/// The maximum number of rows in a batch of [`batches_of_adds`]. The statistics of a batch must not exceed 2 GiB, the
/// limit of an Arrow string array.
const ADDS_PER_BATCH: usize = 4096;

/// Returns `adds` as batches with the log's columns, in the same order.
///
/// # Errors
/// `CorruptLog` if a map has more entries than an Arrow array can hold.
pub(crate) fn batches_of_adds(adds: &[Add]) -> Result<Vec<RecordBatch>> {
    let batch = |adds: &[Add]| {
        let mut rows = AddRows::with_capacity(adds.len());
        adds.iter().try_for_each(|add| rows.append(&AddLine::from(add)))?;
        rows.finish()
    };
    adds.chunks(ADDS_PER_BATCH).map(batch).collect()
}

/// Frees unused capacity of the arrays, because a snapshot keeps them.
fn shrunk(mut texts: StringArray) -> StringArray {
    texts.shrink_to_fit();
    texts
}

/// Returns a batch without rows.
pub(super) fn nothing() -> RecordBatch {
    NOTHING.clone()
}

/// Builds the batch of `columns`, leaving out columns that are null in every row.
fn batch(fields: &[FieldRef], columns: Vec<Option<ArrayRef>>) -> Result<RecordBatch> {
    let rows = columns.iter().flatten().next().map_or(0, |column| column.len());
    let is_used = |field: &FieldRef, column: &ArrayRef| {
        column.null_count() < rows || field.name() == FileColumn::Path.name()
    };
    let columns = fields.iter().zip(columns).filter_map(|(field, column)| Some((Arc::clone(field), column?)));
    let (fields, columns): (Vec<_>, Vec<_>) =
        columns.filter(|(field, column)| is_used(field, column)).unzip();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).map_err(|error| {
        Error::corrupt_log("file actions do not match the types of their columns").with_source(error)
    })
}

/// A builder of a column with values of type `V`.
trait Rows<V: ?Sized>: Sized {
    fn with_capacity(rows: usize) -> Self;
    fn append(&mut self, value: Option<&V>) -> Result<()>;
    fn finish(&mut self) -> ArrayRef;
}

/// A builder of a column that few tables have. It allocates nothing before the first value.
struct Sparse<R> {
    rows: Option<R>,
    /// The number of rows before the first value.
    without: usize,
}

impl<R> Default for Sparse<R> {
    fn default() -> Self {
        Self { rows: None, without: 0 }
    }
}

impl<R> Sparse<R> {
    fn append<V: ?Sized>(&mut self, value: Option<&V>) -> Result<()>
    where
        R: Rows<V>,
    {
        match (&mut self.rows, value) {
            (Some(rows), value) => rows.append(value),
            (None, None) => {
                self.without += 1;
                Ok(())
            }
            (None, value) => {
                let rows = self.rows.insert(R::with_capacity(self.without + 1));
                (0..self.without).try_for_each(|_| rows.append(None))?;
                rows.append(value)
            }
        }
    }

    /// Returns the column; `None` if no row has a value.
    fn finish<V: ?Sized>(&mut self) -> Option<ArrayRef>
    where
        R: Rows<V>,
    {
        self.rows.as_mut().map(R::finish)
    }
}

struct StringMapBuilder(MapBuilder<StringBuilder, StringBuilder>);

impl<'a> Rows<Pairs<'a>> for StringMapBuilder {
    fn with_capacity(rows: usize) -> Self {
        let names =
            MapFieldNames { entry: "key_value".to_owned(), key: "key".to_owned(), value: "value".to_owned() };
        Self(MapBuilder::with_capacity(
            Some(names),
            StringBuilder::with_capacity(0, 0),
            StringBuilder::with_capacity(0, 0),
            rows,
        ))
    }

    fn append(&mut self, pairs: Option<&Pairs<'a>>) -> Result<()> {
        for (key, value) in pairs.iter().flat_map(|pairs| &pairs.0) {
            self.0.keys().append_value(&key.0);
            self.0.values().append_option(value.as_ref().map(|value| &value.0));
        }
        self.0.append(pairs.is_some()).map_err(|error| {
            Error::corrupt_log("a map has more entries than an Arrow array can hold").with_source(error)
        })
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

struct DeletionVectorRows {
    storage_type: StringBuilder,
    path_or_inline_dv: StringBuilder,
    offset: Int32Builder,
    size_in_bytes: Int32Builder,
    cardinality: Int64Builder,
    valid: Vec<bool>,
}

impl Rows<DeletionVectorDescriptor> for DeletionVectorRows {
    fn with_capacity(rows: usize) -> Self {
        Self {
            storage_type: StringBuilder::with_capacity(rows, 0),
            path_or_inline_dv: StringBuilder::with_capacity(rows, 0),
            offset: Int32Builder::with_capacity(rows),
            size_in_bytes: Int32Builder::with_capacity(rows),
            cardinality: Int64Builder::with_capacity(rows),
            valid: Vec::with_capacity(rows),
        }
    }

    fn append(&mut self, descriptor: Option<&DeletionVectorDescriptor>) -> Result<()> {
        self.storage_type.append_option(descriptor.map(|dv| dv.storage_type.letter().to_string()));
        self.path_or_inline_dv.append_option(descriptor.map(|dv| &dv.path_or_inline_dv));
        self.offset.append_option(descriptor.and_then(|dv| dv.offset));
        self.size_in_bytes.append_option(descriptor.map(|dv| dv.size_in_bytes));
        self.cardinality.append_option(descriptor.map(|dv| dv.cardinality));
        self.valid.push(descriptor.is_some());
        Ok(())
    }

    fn finish(&mut self) -> ArrayRef {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.storage_type.finish()),
            Arc::new(self.path_or_inline_dv.finish()),
            Arc::new(self.offset.finish()),
            Arc::new(self.size_in_bytes.finish()),
            Arc::new(self.cardinality.finish()),
        ];
        let mut nulls = NullBufferBuilder::new(self.valid.len());
        self.valid.drain(..).for_each(|valid| nulls.append(valid));
        Arc::new(StructArray::new(deletion_vector_fields(), columns, nulls.finish()))
    }
}
