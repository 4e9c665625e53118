//! Determines the schema of a table after a write of data with different columns. (Protocol: "Change Metadata", "Type
//! Widening".)
//!
//! - *Merge*: columns and fields that the data has and the table lacks are added at the end of the table or of a
//!   nested struct, also inside of arrays and maps. They are nullable, because rows in older files have NULL there.
//!   Types become wider if the table allows it and, for a table with Iceberg compatibility, if Iceberg supports the
//!   change. A void column gets the type of the data. All other columns stay the same, and the data is converted to
//!   their types.
//! - *Overwrite*: the table gets the schema of the data, and all its files are replaced. A column that keeps its name
//!   and type keeps its metadata, except for recorded type changes, because no file with an older type remains. CHECK
//!   constraints and generated columns must still be valid. If the write does not name partition columns, the table
//!   keeps its partition columns, as with `deltalake`; the JVM implementation silently drops them.
//!
//! Names are compared ignoring case.

use super::TableChange;
use super::columns::NewColumn;
use super::draft::Draft;
use crate::error::{Error, Result};
use crate::expression::predicate::ColumnPath;
use crate::operations::define::{MAX_COLUMN_ID, TableDefinition, last_column_id};
use crate::protocol::TableHeader;
use crate::protocol::schema::column_rules::COMMENT;
use crate::protocol::schema::{is_iceberg_widening, is_widening};
use crate::protocol::{
    ArrayType, ColumnMappingMode, DataType, FieldMetadata, IcebergCompat, MapType, NewMapping, PrimitiveType,
    StructField, StructType,
};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;

/// Returns the table with the columns that `data` has and `base` lacks, and with types that are wide enough for `data`.
/// Returns `None` if the table needs no change.
///
/// # Errors
/// Returns `SchemaMismatch` for a name or a type that a column cannot have, `InvalidArgument` for a type that cannot
/// change because something else refers to its column, and `Unsupported` if the extended table could not be written.
pub(crate) fn merged(
    base: &Snapshot,
    data: &StructType,
    environment: &Environment,
) -> Result<Option<TableHeader>> {
    let mut draft = Draft::of(base, environment)?;
    let mut changes = Vec::new();
    compare(base.schema(), data, &[], Widening::of(&draft), &mut changes);
    for change in &changes {
        change.plan(&mut draft)?;
    }
    if changes.is_empty() { Ok(None) } else { draft.into_table().map(Some) }
}

/// Appends to `changes` the changes that the struct at `path` needs so that it can hold values of `data`.
fn compare(
    table: &StructType,
    data: &StructType,
    path: &[String],
    widening: Widening,
    changes: &mut Vec<TableChange>,
) {
    for given in data.fields() {
        match table.field(&given.name) {
            Some(field) => {
                let path = [path, std::slice::from_ref(&field.name)].concat();
                compare_types(&field.data_type, &given.data_type, &path, widening, changes);
            }
            None => {
                let column = NewColumn::new(ColumnPath::new(path), nullable(given));
                match changes.last_mut() {
                    // All new columns of one struct are added by a single change.
                    Some(TableChange::AddColumns(columns))
                        if columns.last().is_some_and(|last| last.parent == column.parent) =>
                    {
                        columns.push(column);
                    }
                    _ => changes.push(TableChange::AddColumns(vec![column])),
                }
            }
        }
    }
}

fn compare_types(
    table: &DataType,
    data: &DataType,
    path: &[String],
    widening: Widening,
    changes: &mut Vec<TableChange>,
) {
    let part = |name: &str| [path, &[name.to_owned()]].concat();
    match (table, data) {
        (DataType::Primitive(PrimitiveType::Void), data) if *table != *data => {
            let data_type = nullable_type(data);
            changes.push(TableChange::WidenColumn { column: ColumnPath::new(path), data_type });
        }
        (DataType::Struct(table), DataType::Struct(data)) => compare(table, data, path, widening, changes),
        (DataType::Array(table), DataType::Array(data)) => {
            compare_types(&table.element_type, &data.element_type, &part("element"), widening, changes);
        }
        (DataType::Map(table), DataType::Map(data)) => {
            compare_types(&table.key_type, &data.key_type, &part("key"), widening, changes);
            compare_types(&table.value_type, &data.value_type, &part("value"), widening, changes);
        }
        (DataType::Primitive(from), DataType::Primitive(to)) if widening.merges_to(*from, *to) => {
            let data_type = (*to).into();
            changes.push(TableChange::WidenColumn { column: ColumnPath::new(path), data_type });
        }
        _ => {}
    }
}

/// The set of type changes that a merge may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Widening {
    Never,
    /// Only the type changes that Iceberg also supports. (Protocol: "Writer Requirements for Type Widening".)
    AsIceberg,
    Always,
}

impl Widening {
    fn of(draft: &Draft<'_>) -> Self {
        if !draft.metadata.is_enabled("delta.enableTypeWidening") {
            return Self::Never;
        }
        match IcebergCompat::supported_by(draft.base.protocol()) {
            Some(_) => Self::AsIceberg,
            None => Self::Always,
        }
    }

    /// Returns whether a merge of data of type `to` widens a column of type `from`.
    fn merges_to(self, from: PrimitiveType, to: PrimitiveType) -> bool {
        match self {
            Self::Never => false,
            Self::AsIceberg => merges_to(from, to) && is_iceberg_widening(from, to),
            Self::Always => merges_to(from, to),
        }
    }
}

/// Returns whether a merge of data of type `to` widens a column of type `from`. As in the JVM implementation, a write
/// never changes an integer column to a type with fractions; only an explicit change of the table does.
fn merges_to(from: PrimitiveType, to: PrimitiveType) -> bool {
    let is_whole = matches!(
        from,
        PrimitiveType::Byte | PrimitiveType::Short | PrimitiveType::Integer | PrimitiveType::Long
    );
    let is_fraction = matches!(to, PrimitiveType::Double | PrimitiveType::Decimal { .. });
    is_widening(from, to) && !(is_whole && is_fraction)
}

/// Returns the field, made nullable at every depth and without any metadata other than comments.
fn nullable(field: &StructField) -> StructField {
    let comment = field.metadata.get(COMMENT).filter(serde_json::Value::is_string);
    StructField {
        name: field.name.clone(),
        data_type: nullable_type(&field.data_type),
        nullable: true,
        metadata: match comment {
            Some(comment) => FieldMetadata::default().with(COMMENT, Some(comment)),
            None => FieldMetadata::default(),
        },
    }
}

fn nullable_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Primitive(_) | DataType::Variant => data_type.clone(),
        // This cannot fail: the names are the same as before, so they are distinct.
        DataType::Struct(fields) => StructType::try_new(fields.fields().iter().map(nullable).collect())
            .map_or_else(|_| data_type.clone(), DataType::Struct),
        DataType::Array(array) => ArrayType::new(nullable_type(&array.element_type), true).into(),
        DataType::Map(map) => {
            MapType::new(nullable_type(&map.key_type), nullable_type(&map.value_type), true).into()
        }
    }
}

/// Returns the table with the schema of `data`, for a write that replaces all rows. Returns `None` if the table
/// already has this schema and these partition columns, and its schema records no type changes. If `partition_by` is
/// `None`, the table keeps its partition columns.
///
/// # Errors
/// Returns `SchemaMismatch` for a schema or a partitioning that no table can have. Returns `Unsupported` or
/// `InvalidArgument` if the constraints and generated columns make the new table impossible to write, for a clustered
/// table, and for partition columns that Iceberg compatibility forbids.
pub(crate) fn overwritten(
    base: &Snapshot,
    data: &StructType,
    partition_by: Option<&[String]>,
    environment: &Environment,
) -> Result<Option<TableHeader>> {
    let mut draft = Draft::of(base, environment)?;
    let fields: Vec<StructField> =
        data.fields().iter().map(|field| kept(base.schema(), field)).collect::<Result<_>>()?;
    let mut definition = TableDefinition::new(StructType::try_new(fields)?);
    definition.partition_columns = partition_by.unwrap_or(&base.metadata().partition_columns).to_vec();
    definition.configuration.clone_from(&base.metadata().configuration);
    let is_missing = |name: &&String| definition.schema.field(name).is_none();
    if partition_by.is_none()
        && let Some(name) = definition.partition_columns.iter().find(is_missing)
    {
        return Err(Error::schema_mismatch(format!(
            "the table is partitioned by the column '{name}', which the new schema does not have"
        ))
        .with_hint(
            "name the partition columns of the new schema, or pass an empty list for a table without partition columns",
        ));
    }
    let partition_columns = definition.check_columns()?;
    let is_same = same_types(base.schema(), &definition.schema)
        && partition_columns == base.metadata().partition_columns;
    if is_same && !base.schema().has_type_changes() {
        return Ok(None);
    }
    if !is_same && !base.clustering_columns()?.is_empty() {
        return Err(Error::unsupported("overwriting the schema of a clustered table is not implemented")
            .with_hint("merge the schema, or create a new table"));
    }
    draft.schema = definition.schema.without_type_changes();
    if draft.column_mapping() != ColumnMappingMode::None {
        let name = |_: &StructField| format!("col-{}", environment.uuid());
        let mut mapping = NewMapping::new(last_column_id(&draft.metadata)?, name);
        draft.schema = mapping.assign(&draft.schema)?;
        draft.metadata.configuration.insert(MAX_COLUMN_ID.to_owned(), mapping.last_id().to_string());
    }
    draft.metadata.partition_columns = partition_columns;
    if let Some(iceberg) = IcebergCompat::of(base.protocol(), base.metadata())? {
        iceberg.check_replacement(base.metadata(), &draft.metadata)?;
    }
    draft.into_table().map(Some)
}

/// Returns `field` with all metadata of the table's column of the same name and type, including the metadata of nested
/// fields. If there is no such column, returns `field` with nullable nested fields and no metadata but comments.
fn kept(table: &StructType, field: &StructField) -> Result<StructField> {
    let same = table.field(&field.name).filter(|column| types_agree(&column.data_type, &field.data_type));
    let Some(column) = same else { return Ok(StructField { nullable: field.nullable, ..nullable(field) }) };
    Ok(StructField {
        name: field.name.clone(),
        data_type: column.data_type.clone(),
        nullable: field.nullable,
        metadata: column.metadata.clone(),
    })
}

/// Returns whether two structs have the same fields in the same order, ignoring their metadata.
fn same_types(table: &StructType, data: &StructType) -> bool {
    let mut both = table.fields().iter().zip(data.fields());
    table.fields().len() == data.fields().len()
        && both.all(|(a, b)| {
            a.name == b.name && a.nullable == b.nullable && types_agree(&a.data_type, &b.data_type)
        })
}

/// Returns whether two types are the same, ignoring the metadata of their fields.
pub(super) fn types_agree(table: &DataType, data: &DataType) -> bool {
    match (table, data) {
        (DataType::Struct(table), DataType::Struct(data)) => same_types(table, data),
        (DataType::Array(table), DataType::Array(data)) => {
            table.contains_null == data.contains_null && types_agree(&table.element_type, &data.element_type)
        }
        (DataType::Map(table), DataType::Map(data)) => {
            table.value_contains_null == data.value_contains_null
                && types_agree(&table.key_type, &data.key_type)
                && types_agree(&table.value_type, &data.value_type)
        }
        (table, data) => table == data,
    }
}
