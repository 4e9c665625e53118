//! Steps before the drop of a feature, each one commit, that leave nothing of the feature in the newest version.
//!
//! | feature | steps |
//! | --- | --- |
//! | `deletionVectors` | the property is unset; files with vectors are rewritten without the deleted rows |
//! | `typeWidening` | the property is unset; files with older types are rewritten; the changes are forgotten |
//! | `columnMapping` | all files are rewritten with the names of the schema, together with the schema |
//! | `v2Checkpoint` | the property is unset |
//!
//! A property is unset before files are looked at, so that no other writer makes use of the feature afterwards.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, StringArray};

use super::history::removed_with_vectors;
use super::traces;
use crate::alter::draft::Draft;
use crate::alter::properties;
use crate::deletion_vector::VectorPlace;
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::{
    ColumnMappingMode, LogPath, MappedSchema, Metadata, PrimitiveType, TableFeature, clustering_domain, path,
};
use crate::replay::{DeletionVectorColumn, FileColumn, remove_fields, with_columns, with_vectors};
use crate::rewrite::{Rewritten, rewrite};
use crate::scan::{DataFile, RowScan};
use crate::snapshot::Snapshot;
use crate::transaction::{Operation, Transaction};
use crate::write::TableWriteSpec;

/// Makes the next step. Returns whether there was one.
///
/// # Errors
/// `CommitConflict`, `CommitStateUnknown`, `CorruptLog`, `CorruptData`, and errors of the store.
pub(super) fn step(base: &Snapshot, feature: &TableFeature, environment: &Environment) -> Result<bool> {
    if let Some(property) = traces::property_in_use(feature, base.metadata()) {
        let mut draft = Draft::of(base, environment)?;
        let operation = properties::unset(&mut draft, &[property.to_owned()], true)?;
        return commit_draft(draft, operation);
    }
    match feature {
        TableFeature::DeletionVectors => remove_vectors(base, environment),
        TableFeature::TypeWidening | TableFeature::TypeWideningPreview => {
            remove_older_types(base, environment)
        }
        TableFeature::ColumnMapping => remove_mapping(base, environment),
        _ => Ok(false),
    }
}

/// Rewrites the files that have deletion vectors, or had them until they were restored.
fn remove_vectors(base: &Snapshot, environment: &Environment) -> Result<bool> {
    let removed = removed_with_vectors(base)?;
    let choose = |batch: &RecordBatch, _: &[DataFile]| {
        let was_restored = removed.contains(batch)?;
        Ok(BooleanArray::new(with_vectors(batch).values() | was_restored.values(), None))
    };
    let rewritten = rewrite(base, TableWriteSpec::of(base)?, choose, environment)?;
    move_rows(rewritten, base, true, environment)
}

/// Rewrites the files that have older types than the schema. If there are none, removes the changes of types from the
/// schema.
fn remove_older_types(base: &Snapshot, environment: &Environment) -> Result<bool> {
    if !base.schema().has_type_changes() {
        return Ok(false);
    }
    let (scan, former_dates) = (RowScan::of(base)?, former_dates(base)?);
    let choose = |batch: &RecordBatch, files: &[DataFile]| -> Result<BooleanArray> {
        let mut chosen = scan.converting_numbers(files)?;
        for (row, chosen) in chosen.iter_mut().enumerate() {
            *chosen |= has_date(batch, row, &former_dates);
        }
        Ok(chosen.into())
    };
    let rewritten = rewrite(base, TableWriteSpec::of(base)?, choose, environment)?;
    if move_rows(rewritten, base, false, environment)? {
        return Ok(true);
    }
    let mut draft = Draft::of(base, environment)?;
    draft.schema = draft.schema.without_type_changes();
    // Files of others may come from an earlier version.
    draft.depends_on_rows = true;
    let operation = Operation::new("UPDATE COLUMN METADATA").parameter("operationName", "DROP FEATURE");
    commit_draft(draft, operation)
}

/// Returns the physical names of the partition columns that have become timestamps. A date is no valid text of a
/// timestamp, whereas the text of every other type is one of the wider type as well. (PROTOCOL, "Partition Value
/// Serialization".)
fn former_dates(base: &Snapshot) -> Result<Vec<String>> {
    let schema = base.mapped_schema();
    let mut names = Vec::new();
    for name in &base.metadata().partition_columns {
        let Some(field) = schema.logical().field(name) else { continue };
        if field.type_changes()?.iter().any(|change| change.from == PrimitiveType::Date) {
            names.extend(schema.physical_name(name).map(str::to_owned));
        }
    }
    Ok(names)
}

/// Returns whether a file has a date as the value of one of the partition columns `names`.
fn has_date(batch: &RecordBatch, row: usize, names: &[String]) -> bool {
    if names.is_empty() {
        return false;
    }
    let values =
        batch.column_by_name(FileColumn::PartitionValues.name()).and_then(|values| values.as_map_opt());
    let Some(values) = values.filter(|values| values.is_valid(row)) else { return false };
    let entries = values.value(row);
    let texts = |column: &ArrayRef| column.as_string_opt::<i32>().cloned();
    let [Some(keys), Some(values)] =
        [entries.columns().first(), entries.columns().get(1)].map(|c| c.and_then(texts))
    else {
        return false;
    };
    keys.iter().zip(values.iter()).any(|(key, value)| {
        key.is_some_and(|key| names.iter().any(|name| name == key))
            && value.is_some_and(|value| value.parse::<chrono::NaiveDate>().is_ok())
    })
}

/// Rewrites all files with the names of the schema, and removes physical names and ids from the schema.
fn remove_mapping(base: &Snapshot, environment: &Environment) -> Result<bool> {
    let mut draft = Draft::of(base, environment)?;
    draft.schema = traces::without_mapping(&draft.schema);
    for property in traces::COLUMN_MAPPING {
        draft.metadata.configuration.remove(property);
    }
    if draft.schema == *base.schema() && draft.metadata == *base.metadata() {
        return Ok(false);
    }
    // Files that others add meanwhile have the physical names.
    draft.depends_on_rows = true;
    let clustering = base.clustering_columns()?;
    if !clustering.is_empty() {
        let schema = MappedSchema::new(draft.schema.clone(), ColumnMappingMode::None)?;
        draft.domains.push(clustering_domain(&clustering, &schema)?);
    }
    let metadata = Metadata { schema_string: draft.schema.to_json(), ..draft.metadata.clone() };
    let spec = TableWriteSpec::of_evolved(base, base.protocol(), &metadata)?;
    let is_mapped = draft.column_mapping() != ColumnMappingMode::None;
    let choose = |batch: &RecordBatch, _: &[DataFile]| -> Result<BooleanArray> {
        Ok(vec![is_mapped; batch.num_rows()].into())
    };
    let rewritten = rewrite(base, spec, choose, environment)?;
    let operation = Operation::new("REMOVE COLUMN MAPPING");
    rewritten.commit(|rewritten| draft.finish(rewritten.described(operation))?.ok_or_else(unchanged))?;
    Ok(true)
}

/// Commits files that were written again, if there are any, and nothing else. Returns whether there were.
fn move_rows(
    rewritten: Rewritten,
    base: &Snapshot,
    purges_rows: bool,
    environment: &Environment,
) -> Result<bool> {
    if rewritten.is_empty() {
        return Ok(false);
    }
    let operation = Operation::new("REORG").parameter("predicate", "[]").parameter("applyPurge", purges_rows);
    rewritten.commit(|rewritten| Transaction::new(base, rewritten.described(operation), environment))?;
    Ok(true)
}

fn commit_draft(draft: Draft<'_>, operation: Operation) -> Result<bool> {
    draft.finish(operation)?.ok_or_else(unchanged)?.commit_or_fail()?;
    Ok(true)
}

pub(super) fn unchanged() -> Error {
    Error::invalid_argument("the table has nothing of the feature any more")
}

/// Keeps the files of deletion vectors that earlier versions have for as long as data files that were removed: to a
/// client without the feature, which must not delete them, they are data files that `transaction` removes.
///
/// # Errors
/// `CorruptLog` for an invalid descriptor; also errors of the store.
pub(super) fn keep_vectors(transaction: &mut Transaction, base: &Snapshot, now_ms: i64) -> Result<()> {
    let mut paths = BTreeSet::new();
    for batch in base.replay_removes()? {
        let batch = batch?;
        let vectors = DeletionVectorColumn::of_log(&batch)?;
        for row in 0..batch.num_rows() {
            let Some(descriptor) = vectors.get(row)? else { continue };
            match VectorPlace::of(&descriptor, base.resolver()) {
                Ok(VectorPlace::File { path: LogPath::Relative(path), .. }) => {
                    paths.insert(path::encode(&path));
                }
                // What is elsewhere, nobody deletes.
                Ok(VectorPlace::File { .. } | VectorPlace::Inline(_)) => {}
                Err(error) if error.kind() == ErrorKind::Unsupported => {}
                Err(error) => return Err(error),
            }
        }
    }
    if paths.is_empty() {
        return Ok(());
    }
    let rows = paths.len();
    let columns: [(&str, ArrayRef); 3] = [
        ("path", Arc::new(StringArray::from_iter_values(paths))),
        ("deletionTimestamp", Arc::new(Int64Array::from_value(now_ms, rows))),
        ("dataChange", Arc::new(BooleanArray::from(vec![false; rows]))),
    ];
    let removes = RecordBatch::try_from_iter(columns)
        .map_err(|error| Error::corrupt_log("the deletion vectors cannot be kept").with_source(error))?;
    transaction.remove_batch(with_columns(&removes, remove_fields())?);
    Ok(())
}
