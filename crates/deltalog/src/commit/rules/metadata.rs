//! Detects conflicting changes of the metadata. Protocol: "Change Metadata".
//!
//! Writers depend on the schema, on the partitioning and on many properties. The following changes do not affect
//! writers of rows:
//!
//! - the name and the description of the table, comments of columns, and high water marks of identity columns;
//! - new nullable columns without constraints: files that lack these columns have NULL there;
//! - properties that users define, and properties that only determine how the log and its checkpoints are kept or how
//!   files are laid out.
//!
//! A transaction that sets the metadata itself conflicts with every other change.

use super::{Mine, Winner};
use crate::commit::conflict::ConflictReason;
use crate::error::Result;
use crate::protocol::properties::WRITE_PARTITION_COLUMNS;
use crate::protocol::schema::PART_IDS;
use crate::protocol::schema::column_rules::{COMMENT, IDENTITY_MARK};
use crate::protocol::{DataType, MATERIALIZE_PARTITION_COLUMNS, Metadata, StructField, StructType};

/// Table properties of the protocol that do not affect writers of rows.
const HARMLESS: [&str; 19] = [
    "delta.autoOptimize",
    "delta.autoOptimize.autoCompact",
    "delta.autoOptimize.optimizeWrite",
    "delta.checkpoint.writeStatsAsJson",
    "delta.checkpoint.writeStatsAsStruct",
    "delta.checkpointInterval",
    "delta.checkpointRetentionDuration",
    "delta.columnMapping.maxColumnId",
    "delta.dataSkippingNumIndexedCols",
    "delta.dataSkippingStatsColumns",
    "delta.deletedFileRetentionDuration",
    "delta.enableExpiredLogCleanup",
    MATERIALIZE_PARTITION_COLUMNS,
    "delta.logRetentionDuration",
    "delta.parquet.compression.codec",
    "delta.setTransactionRetentionDuration",
    "delta.targetFileSize",
    "delta.tuneFileSizesForRewrites",
    WRITE_PARTITION_COLUMNS,
];

/// Keys in the metadata of a new column that do not affect its values.
const OF_ANY_COLUMN: [&str; 4] =
    [COMMENT, "delta.columnMapping.id", "delta.columnMapping.physicalName", PART_IDS];

/// Keys in the metadata of a column that writers may ignore. A new high water mark only matters to writers that
/// generate values of the identity column. These set the metadata themselves, which conflicts with every other change
/// of the metadata.
const HARMLESS_OF_COLUMNS: [&str; 2] = [COMMENT, IDENTITY_MARK];

pub(super) fn check(mine: &Mine<'_>, winner: &Winner<'_>) -> Result<Option<ConflictReason>> {
    let Some(new) = &winner.commit.metadata else { return Ok(None) };
    let is_conflict = mine.changes.metadata.is_some() || concerns_writers(mine.base.metadata(), new)?;
    Ok(is_conflict.then_some(ConflictReason::MetadataChanged))
}

/// Returns whether a change of the metadata from `old` to `new` affects writers. If so, a transaction that has read
/// `old` must not continue.
///
/// # Errors
/// `CorruptLog` for an invalid schema.
pub(in super::super) fn concerns_writers(old: &Metadata, new: &Metadata) -> Result<bool> {
    if old.id != new.id || old.format != new.format || old.partition_columns != new.partition_columns {
        return Ok(true);
    }
    let differs = |key: &String| old.configuration.get(key) != new.configuration.get(key);
    let is_harmless = |key: &str| !key.starts_with("delta.") || HARMLESS.contains(&key);
    let mut keys = old.configuration.keys().chain(new.configuration.keys());
    if keys.any(|key| differs(key) && !is_harmless(key)) {
        return Ok(true);
    }
    Ok(old.schema_string != new.schema_string && !only_adds_nullable(&old.schema()?, &new.schema()?))
}

/// Returns whether `new` is `old` with additional nullable fields.
fn only_adds_nullable(old: &StructType, new: &StructType) -> bool {
    fn find<'a>(fields: &'a StructType, name: &str) -> Option<&'a StructField> {
        fields.fields().get(fields.exact_index_of(name)?)
    }
    let is_kept = |field: &StructField| {
        find(new, &field.name).is_some_and(|other| {
            field.nullable == other.nullable
                && essential(field) == essential(other)
                && is_same(&field.data_type, &other.data_type)
        })
    };
    let is_new_and_plain = |field: &StructField| field.nullable && is_plain(field);
    old.fields().iter().all(is_kept)
        && new.fields().iter().all(|field| find(old, &field.name).is_some() || is_new_and_plain(field))
}

/// Returns whether no metadata of the field, or of fields inside it, affects its values.
fn is_plain(field: &StructField) -> bool {
    let has_rules = |field: &StructField| {
        field.metadata.entries().keys().any(|key| !OF_ANY_COLUMN.contains(&key.as_str()))
    };
    !has_rules(field) && !field.data_type.any_field(&mut |field| has_rules(field))
}

fn is_same(old: &DataType, new: &DataType) -> bool {
    match (old, new) {
        (DataType::Struct(old), DataType::Struct(new)) => only_adds_nullable(old, new),
        (old, new) => old == new,
    }
}

fn essential(field: &StructField) -> Vec<(String, serde_json::Value)> {
    field
        .metadata
        .entries()
        .into_iter()
        .filter(|(key, _)| !HARMLESS_OF_COLUMNS.contains(&key.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMN: &str = r#"{"name":"a","type":"long","nullable":true,"metadata":{}}"#;

    fn metadata(columns: &str, properties: &[(&str, &str)]) -> Metadata {
        let schema = format!(r#"{{"type":"struct","fields":[{columns}]}}"#);
        let configuration: serde_json::Map<String, serde_json::Value> =
            properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
        let json = serde_json::json!({
            "id": "t",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema,
            "partitionColumns": [],
            "configuration": configuration,
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn properties() {
        let old = metadata(COLUMN, &[]);
        for (key, expected) in [
            ("mine", false),
            ("delta.checkpointInterval", false),
            ("delta.writePartitionColumnsToParquet", false),
            ("delta.enableMaterializePartitionColumnsFeature", false),
            ("delta.appendOnly", true),
            ("delta.constraints.c", true),
            ("delta.enableChangeDataFeed", true),
            ("delta.isolationLevel", true),
            ("delta.unknown", true),
        ] {
            let new = metadata(COLUMN, &[(key, "true")]);
            assert_eq!(concerns_writers(&old, &new).unwrap(), expected, "{key} set");
            assert_eq!(concerns_writers(&new, &old).unwrap(), expected, "{key} unset");
        }
    }

    #[test]
    fn columns() {
        let old = metadata(COLUMN, &[]);
        let new_column = |rest: &str| format!(r#"{COLUMN},{{"name":"b","type":"long",{rest}}}"#);
        let new_struct = |rules: &str| {
            let inner = format!(r#"{{"name":"b","type":"long","nullable":false,"metadata":{rules}}}"#);
            let kind = format!(r#"{{"type":"struct","fields":[{inner}]}}"#);
            format!(r#"{COLUMN},{{"name":"s","type":{kind},"nullable":true,"metadata":{{}}}}"#)
        };
        for (columns, expected) in [
            (COLUMN.replace("{}", r#"{"comment":"c"}"#), false),
            (COLUMN.replace("{}", r#"{"delta.identity.highWaterMark":7}"#), false),
            (COLUMN.replace("{}", r#"{"delta.identity.step":7}"#), true),
            (COLUMN.replace("long", "string"), true),
            (COLUMN.replace("true", "false"), true),
            (COLUMN.replace("{}", r#"{"delta.invariants":"a > 0"}"#), true),
            (COLUMN.replace("\"a\"", "\"c\""), true),
            (new_column(r#""nullable":true,"metadata":{}"#), false),
            (new_column(r#""nullable":true,"metadata":{"delta.columnMapping.id":2}"#), false),
            (new_column(r#""nullable":false,"metadata":{}"#), true),
            (new_column(r#""nullable":true,"metadata":{"delta.generationExpression":"a"}"#), true),
            (new_struct("{}"), false),
            (new_struct(r#"{"delta.invariants":"s.b > 0"}"#), true),
            (String::new(), true),
        ] {
            assert_eq!(concerns_writers(&old, &metadata(&columns, &[])).unwrap(), expected, "{columns}");
        }
    }

    #[test]
    fn a_new_field_in_a_struct_does_not_affect_writers() {
        let of = |fields: &str| {
            format!(
                r#"{{"name":"s","type":{{"type":"struct","fields":[{fields}]}},"nullable":true,"metadata":{{}}}}"#
            )
        };
        let old = metadata(&of(COLUMN), &[]);
        let more = format!(r#"{COLUMN},{{"name":"b","type":"long","nullable":true,"metadata":{{}}}}"#);
        assert!(!concerns_writers(&old, &metadata(&of(&more), &[])).unwrap());
        assert!(concerns_writers(&metadata(&of(&more), &[]), &old).unwrap());
    }

    #[test]
    fn a_new_name_does_not_affect_writers_but_a_new_id_does() {
        let old = metadata(COLUMN, &[]);
        let change = |change: fn(&mut Metadata)| {
            let mut new = old.clone();
            change(&mut new);
            concerns_writers(&old, &new).unwrap()
        };
        assert!(!change(|new| new.name = Some("n".to_owned())));
        assert!(!change(|new| new.description = Some("d".to_owned())));
        assert!(!change(|new| new.created_time = Some(1)));
        assert!(change(|new| new.id = "u".to_owned()));
        assert!(change(|new| new.partition_columns = vec!["a".to_owned()]));
    }
}
