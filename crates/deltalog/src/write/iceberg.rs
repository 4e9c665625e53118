//! Checks a data file against the rules for tables with Iceberg compatibility, or for tables whose files must contain
//! the partition columns. (PROTOCOL, "Iceberg Compatibility V1", "… V2"; "Iceberg Compatibility V3" of the protocol's
//! requests for comments.)
//!
//! Only the file's footer is checked. A column may be missing, because it may have been added after the file was
//! written. The columns that the file has must meet these rules:
//!
//! - the partition columns exist;
//! - from version 2 on, each column and each part of an array or map has the field id that the table's schema assigns
//!   to it, and no timestamp is an INT96;
//! - in version 3, the columns that store row ids and commit versions of copied rows have the field ids that Iceberg
//!   reserves for them. Also in version 3, timestamps are in microseconds, and they are in UTC if and only if the
//!   column's type is.

use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use parquet::basic::{ConvertedType, LogicalType, TimeUnit as FileUnit, Type as PhysicalType};
use parquet::file::metadata::ParquetMetaData;
use parquet::schema::types::Type;

use super::spec::TableWriteSpec;
use crate::protocol::IcebergCompat;
use crate::protocol::row_tracking::{ROW_COMMIT_VERSION_COLUMN, ROW_ID_COLUMN};

/// Returns the first rule that the file with the footer `metadata` violates; `None` if it violates none.
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
    fields_fault(file, spec.physical_arrow().fields(), "", iceberg)
        .or_else(|| row_tracking_fault(file, iceberg, spec))
}

/// Returns the rule that the columns for row ids and commit versions of copied rows violate, if the file has these
/// columns.
fn row_tracking_fault(file: &Type, iceberg: IcebergCompat, spec: &TableWriteSpec) -> Option<String> {
    let ids = iceberg.row_tracking_ids()?;
    let names = [ROW_ID_COLUMN, ROW_COMMIT_VERSION_COLUMN].map(|key| spec.configuration().get(key));
    names.into_iter().zip(ids).find_map(|(name, id)| {
        let found = file.get_fields().iter().find(|field| Some(field.name()) == name.map(String::as_str))?;
        id_fault(found, id, found.name())
    })
}

/// Returns the first rule that a field of `group` violates. `place` is the path of `group` in the file.
fn fields_fault(group: &Type, fields: &Fields, place: &str, iceberg: IcebergCompat) -> Option<String> {
    fields.iter().find_map(|field| {
        let found = find(group, field)?;
        field_fault(found, field, &format!("{place}{}", field.name()), iceberg)
    })
}

fn field_fault(found: &Type, field: &Field, place: &str, iceberg: IcebergCompat) -> Option<String> {
    let expected = id_of(field)?;
    if let Some(fault) = id_fault(found, expected, place) {
        return Some(fault);
    }
    if found.is_primitive() {
        if found.get_physical_type() == PhysicalType::INT96 {
            return Some(format!("'{place}' has the type INT96 in the file"));
        }
        return iceberg.needs_micros().then(|| timestamp_fault(found, field, place)).flatten();
    }
    match field.data_type() {
        DataType::Struct(fields) => fields_fault(found, fields, &format!("{place}."), iceberg),
        DataType::List(element) => part_fault(found, 0, element, place, iceberg),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(parts) => {
                let mut parts = parts.iter().enumerate();
                parts.find_map(|(index, part)| part_fault(found, index, part, place, iceberg))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns the rule that a column of timestamps violates: it is not an INT64 of microseconds, or the file and the
/// table differ in whether its values are in UTC.
fn timestamp_fault(found: &Type, field: &Field, place: &str) -> Option<String> {
    let DataType::Timestamp(TimeUnit::Microsecond, zone) = field.data_type() else { return None };
    let info = found.get_basic_info();
    // Older writers only set the converted type, which always means UTC. (Parquet, "LogicalTypes".)
    let is_in_utc = match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::Timestamp(time)), _) if time.unit == FileUnit::MICROS => {
            Some(time.is_adjusted_to_u_t_c)
        }
        (None, ConvertedType::TIMESTAMP_MICROS) => Some(true),
        _ => None,
    };
    if found.get_physical_type() != PhysicalType::INT64 || is_in_utc.is_none() {
        return Some(format!("'{place}' has no timestamps in microseconds in the file"));
    }
    let described = |is_in_utc: bool| if is_in_utc { "in UTC" } else { "without a time zone" };
    (is_in_utc != Some(zone.is_some())).then(|| {
        format!(
            "'{place}' has timestamps {} in the file, but {} in the table's schema",
            described(zone.is_none()),
            described(zone.is_some())
        )
    })
}

fn id_fault(found: &Type, expected: i32, place: &str) -> Option<String> {
    let info = found.get_basic_info();
    if info.has_id() && info.id() == expected {
        return None;
    }
    let id = if info.has_id() { format!("the field id {}", info.id()) } else { "no field id".to_owned() };
    Some(format!("'{place}' has {id} in the file, but {expected} in the table's schema"))
}

/// Returns the rule that a part of the array or map `group` violates. The part is field number `index` of its
/// repeated group.
fn part_fault(
    group: &Type,
    index: usize,
    part: &Field,
    place: &str,
    iceberg: IcebergCompat,
) -> Option<String> {
    let place = format!("{place}.{}", part.name());
    let repeated = group.get_fields().first().filter(|repeated| repeated.is_group());
    match repeated.and_then(|repeated| repeated.get_fields().get(index)) {
        Some(found) => field_fault(found, part, &place, iceberg),
        None => Some(format!("'{place}' does not have the standard structure of Parquet in the file")),
    }
}

/// Finds a field of `group` by the name of `field`, or else by its id. Other writers may have assigned different ids.
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
