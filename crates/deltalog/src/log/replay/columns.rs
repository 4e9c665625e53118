//! The columns of record batches of file actions.
//!
//! Columns have the names of the protocol's fields. Maps are Arrow maps from string to nullable string. Paths are
//! percent-encoded as in the log.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields};

/// A column of `add` actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "named after the fields of the action")]
pub enum FileColumn {
    Path,
    PartitionValues,
    Size,
    ModificationTime,
    DataChange,
    Stats,
    Tags,
    DeletionVector,
    BaseRowId,
    DefaultRowCommitVersion,
    ClusteringProvider,
}

impl FileColumn {
    /// All columns, in the order in which they are written.
    pub const ALL: [Self; 11] = [
        Self::Path,
        Self::PartitionValues,
        Self::Size,
        Self::ModificationTime,
        Self::DataChange,
        Self::Stats,
        Self::Tags,
        Self::DeletionVector,
        Self::BaseRowId,
        Self::DefaultRowCommitVersion,
        Self::ClusteringProvider,
    ];

    /// Returns the name of the column, which is the protocol's name of the field.
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::PartitionValues => "partitionValues",
            Self::Size => "size",
            Self::ModificationTime => "modificationTime",
            Self::DataChange => "dataChange",
            Self::Stats => "stats",
            Self::Tags => "tags",
            Self::DeletionVector => "deletionVector",
            Self::BaseRowId => "baseRowId",
            Self::DefaultRowCommitVersion => "defaultRowCommitVersion",
            Self::ClusteringProvider => "clusteringProvider",
        }
    }

    /// Returns the Arrow type of the column.
    pub(crate) fn data_type(self) -> DataType {
        match self {
            Self::Path | Self::Stats | Self::ClusteringProvider => DataType::Utf8,
            Self::PartitionValues | Self::Tags => string_map(),
            Self::Size | Self::ModificationTime | Self::BaseRowId | Self::DefaultRowCommitVersion => {
                DataType::Int64
            }
            Self::DataChange => DataType::Boolean,
            Self::DeletionVector => DataType::Struct(deletion_vector_fields()),
        }
    }

    /// Returns the Arrow field. All fields are nullable, because a null struct has null children.
    pub fn field(self) -> Field {
        Field::new(self.name(), self.data_type(), true)
    }
}

/// A set of [`FileColumn`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileColumns(u16);

impl FileColumns {
    /// Creates the set of `columns`.
    pub fn of(columns: &[FileColumn]) -> Self {
        Self(columns.iter().fold(0, |set, column| set | 1 << *column as u16))
    }

    /// Returns the set of all columns.
    pub fn all() -> Self {
        Self::of(&FileColumn::ALL)
    }

    /// Returns the columns of a `remove` action that are needed to read the rows of the removed file.
    pub(crate) fn of_removes() -> Self {
        Self::of(&[
            FileColumn::Path,
            FileColumn::PartitionValues,
            FileColumn::Size,
            FileColumn::DeletionVector,
            FileColumn::BaseRowId,
            FileColumn::DefaultRowCommitVersion,
        ])
    }

    /// Returns the set with `column` added.
    #[must_use]
    pub fn with(self, column: FileColumn) -> Self {
        Self(self.0 | 1 << column as u16)
    }

    /// Returns whether the set contains `column`.
    pub fn contains(self, column: FileColumn) -> bool {
        self.0 & (1 << column as u16) != 0
    }

    /// Iterates over the columns in the order of [`FileColumn::ALL`].
    pub fn iter(self) -> impl Iterator<Item = FileColumn> {
        FileColumn::ALL.into_iter().filter(move |column| self.contains(*column))
    }
}

/// Returns the fields of `add.deletionVector` and `remove.deletionVector`.
pub(crate) fn deletion_vector_fields() -> Fields {
    Fields::from(vec![
        Field::new("storageType", DataType::Utf8, true),
        Field::new("pathOrInlineDv", DataType::Utf8, true),
        Field::new("offset", DataType::Int32, true),
        Field::new("sizeInBytes", DataType::Int32, true),
        Field::new("cardinality", DataType::Int64, true),
    ])
}

/// Returns the map type of partition values and tags.
pub(crate) fn string_map() -> DataType {
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, true),
    ]);
    DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entries), false)), false)
}

/// Returns the columns of tombstones. They are kept in order to write checkpoints.
pub(crate) fn remove_fields() -> Vec<Field> {
    vec![
        Field::new("path", DataType::Utf8, true),
        Field::new("deletionTimestamp", DataType::Int64, true),
        Field::new("dataChange", DataType::Boolean, true),
        Field::new("extendedFileMetadata", DataType::Boolean, true),
        Field::new("partitionValues", string_map(), true),
        Field::new("size", DataType::Int64, true),
        Field::new("deletionVector", DataType::Struct(deletion_vector_fields()), true),
        Field::new("baseRowId", DataType::Int64, true),
        Field::new("defaultRowCommitVersion", DataType::Int64, true),
    ]
}
