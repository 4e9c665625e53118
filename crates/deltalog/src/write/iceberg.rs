//! What data files lack that Iceberg compatibility asks for, or a table whose files have the partition columns.
//! (PROTOCOL, "Iceberg Compatibility V1", "… V2", "… V3".)
//!
//! Only the footer counts. A column that was added after the file was written may be missing; whatever the file has of
//! the table's columns must be as writers write it now:
//!
//! - the partition columns are there;
//! - from version 2 on, each column and each part of an array or map has the field id that the table's schema gives it,
//!   and no timestamp is an INT96;
//! - in version 3, columns with ids and commit versions of copied rows have the field ids that Iceberg reserves for
//!   them.

use arrow::datatypes::{DataType, Field, Fields};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::basic::Type as PhysicalType;
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::Type;

use super::spec::TableWriteSpec;
use crate::protocol::IcebergCompat;
use crate::protocol::row_tracking::{ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN};

/// Returns what is wrong with the file that has the footer `metadata`.
pub(crate) fn fault(metadata: &ParquetMetaData, spec: &TableWriteSpec) -> Option<String> {
    let file = metadata.file_metadata().schema_descr().root_schema();
    if spec.keeps_partition_columns() {
        for (name, physical) in spec.partition_columns().iter().zip(spec.physical_partition_columns()) {
            let field = spec.physical_arrow().field_with_name(physical).ok();
            if field.is_none_or(|field| find(file, field).is_none()) {
                return Some(format!("the file does not have the partition column '{name}'"));
            }
        }
    }
    let iceberg = spec.iceberg().filter(|iceberg| iceberg.identifies_parts())?;
    fields_fault(file, spec.physical_arrow().fields(), "").or_else(|| row_tracking_fault(file, iceberg, spec))
}

/// Returns what is wrong with the columns for the ids and the commit versions of copied rows, if the file has them.
fn row_tracking_fault(file: &Type, iceberg: IcebergCompat, spec: &TableWriteSpec) -> Option<String> {
    let ids = iceberg.row_tracking_ids()?;
    let names = [ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN].map(|key| spec.configuration().get(key));
    names.into_iter().zip(ids).find_map(|(name, id)| {
        let found = file.get_fields().iter().find(|field| Some(field.name()) == name.map(String::as_str))?;
        id_fault(found, id, found.name())
    })
}

/// Returns what is wrong with the fields of `group`, which is at `place` in the file.
fn fields_fault(group: &Type, fields: &Fields, place: &str) -> Option<String> {
    fields.iter().find_map(|field| {
        let found = find(group, field)?;
        field_fault(found, field, &format!("{place}{}", field.name()))
    })
}

fn field_fault(found: &Type, field: &Field, place: &str) -> Option<String> {
    let expected = id_of(field)?;
    if let Some(fault) = id_fault(found, expected, place) {
        return Some(fault);
    }
    if found.is_primitive() {
        return (found.get_physical_type() == PhysicalType::INT96)
            .then(|| format!("'{place}' has the type INT96 in the file"));
    }
    match field.data_type() {
        DataType::Struct(fields) => fields_fault(found, fields, &format!("{place}.")),
        DataType::List(element) => part_fault(found, 0, element, place),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(parts) => {
                parts.iter().enumerate().find_map(|(index, part)| part_fault(found, index, part, place))
            }
            _ => None,
        },
        _ => None,
    }
}

fn id_fault(found: &Type, expected: i32, place: &str) -> Option<String> {
    let info = found.get_basic_info();
    if info.has_id() && info.id() == expected {
        return None;
    }
    let id = if info.has_id() { format!("the field id {}", info.id()) } else { "no field id".to_owned() };
    Some(format!("'{place}' has {id} in the file, but {expected} in the table's schema"))
}

/// Returns what is wrong with a part of the array or map `group`: the field `index` of its repeated group.
fn part_fault(group: &Type, index: usize, part: &Field, place: &str) -> Option<String> {
    let place = format!("{place}.{}", part.name());
    let repeated = group.get_fields().first().filter(|repeated| repeated.is_group());
    match repeated.and_then(|repeated| repeated.get_fields().get(index)) {
        Some(found) => field_fault(found, part, &place),
        None => Some(format!("'{place}' is not of the standard form of Parquet in the file")),
    }
}

/// Returns the field of `group` that has the name of `field`, or else its id. Other writers may have given other ids.
fn find<'a>(group: &'a Type, field: &Field) -> Option<&'a Type> {
    let fields = || group.get_fields().iter().map(AsRef::as_ref);
    let has_id = |found: &&Type| {
        let info = found.get_basic_info();
        info.has_id() && Some(info.id()) == id_of(field)
    };
    fields().find(|found| found.name() == field.name()).or_else(|| fields().find(has_id))
}

fn id_of(field: &Field) -> Option<i32> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY)?.parse().ok()
}
