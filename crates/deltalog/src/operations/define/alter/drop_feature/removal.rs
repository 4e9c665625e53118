//! The steps that precede the drop of a feature. Each step is one commit. After the last step, the newest version no
//! longer uses the feature.
//!
//! | feature | steps |
//! | --- | --- |
//! | `deletionVectors` | the property is unset; files with vectors are rewritten without the deleted rows |
//! | `typeWidening` | the property is unset; files with older types are rewritten; recorded type changes are removed |
//! | `columnMapping` | all files are rewritten with logical column names, and the schema changes in the same commit |
//! | `v2Checkpoint` | the property is unset |
//!
//! A property is unset before files are examined. From then on, other writers do not use the feature for new files.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};

use super::history::removed_with_vectors;
use super::older_types::OlderTypes;
use super::traces;
use crate::commit::{Objection, Operation, Transaction};
use crate::error::{Error, ErrorKind, Result};
use crate::log::deletion_vector::VectorPlace;
use crate::log::replay::{
    DeletionVectorColumn, FileSet, filtered, path_of, remove_fields, with_columns, with_vectors,
};
use crate::operations::define::alter::draft::Draft;
use crate::operations::define::alter::properties;
use crate::operations::rewrite::{Rewriter, Rewritten};
use crate::protocol::{
    ColumnMappingMode, LogPath, MappedSchema, Metadata, TableFeature, clustering_domain, path,
};
use crate::runtime::environment::Environment;
use crate::scan::DataFile;
use crate::snapshot::Snapshot;
use crate::write::TableWriteSpec;

/// The steps that precede the drop of a feature, for one table.
pub(super) struct Removal<'a> {
    feature: &'a TableFeature,
    environment: &'a Environment,
    current: RefCell<CurrentFiles>,
}

/// The data files whose types are known to match a schema. They are not examined again as long as the table keeps
/// this schema.
struct CurrentFiles {
    schema_string: String,
    files: FileSet,
}

impl CurrentFiles {
    /// Creates an empty set of files for the schema of `base`.
    fn of(base: &Snapshot) -> Self {
        Self {
            schema_string: base.metadata().schema_string.clone(),
            files: FileSet::of_paths(base.resolver()),
        }
    }

    /// Removes all files from the set if the schema of `base` differs, because its types may be wider.
    fn keep_to(&mut self, base: &Snapshot) {
        if self.schema_string != base.metadata().schema_string {
            *self = Self::of(base);
        }
    }
}

impl<'a> Removal<'a> {
    /// Creates the steps for the table of `base`. No step has been taken yet.
    pub(super) fn of(feature: &'a TableFeature, base: &Snapshot, environment: &'a Environment) -> Self {
        Self { feature, environment, current: RefCell::new(CurrentFiles::of(base)) }
    }

    /// Unsets the property by which the table uses the feature. Returns whether the property was set.
    ///
    /// # Errors
    /// Returns `CommitConflict`, `CommitStateUnknown`, and errors from the store.
    pub(super) fn unset_property(&self, base: &Snapshot) -> Result<bool> {
        let Some(property) = traces::property_in_use(self.feature, base.metadata()) else { return Ok(false) };
        let mut draft = Draft::of(base, self.environment)?;
        let operation = properties::unset(&mut draft, &[property.to_owned()], true)?;
        commit_draft(draft, operation)
    }

    /// Takes the next step, after the property was unset. Returns whether a step was necessary.
    ///
    /// # Errors
    /// Returns `CommitConflict`, `CommitStateUnknown`, `CorruptLog`, `CorruptData`, and errors from the store.
    pub(super) fn step(&self, base: &Snapshot) -> Result<bool> {
        match self.feature {
            TableFeature::DeletionVectors => self.remove_vectors(base),
            TableFeature::TypeWidening | TableFeature::TypeWideningPreview => self.remove_older_types(base),
            TableFeature::ColumnMapping => self.remove_mapping(base),
            _ => Ok(false),
        }
    }

    /// Rewrites the files that have deletion vectors, and files that had deletion vectors before they were restored.
    fn remove_vectors(&self, base: &Snapshot) -> Result<bool> {
        let removed = removed_with_vectors(base)?;
        let choose = |batch: &RecordBatch, _: &[DataFile]| {
            let was_restored = removed.contains(batch)?;
            Ok(BooleanArray::new(with_vectors(batch).values() | was_restored.values(), None))
        };
        let rewriter = Rewriter::new(base, TableWriteSpec::of(base)?, &choose, self.environment)?;
        self.move_rows(&rewriter, base, true)
    }

    /// Rewrites the files whose types are older than the schema's. If there are no such files, removes the recorded
    /// type changes from the schema.
    fn remove_older_types(&self, base: &Snapshot) -> Result<bool> {
        if !base.schema().has_type_changes() {
            return Ok(false);
        }
        let older = OlderTypes::of(base)?;
        self.current.borrow_mut().keep_to(base);
        let choose = |batch: &RecordBatch, files: &[DataFile]| {
            let known = self.current.borrow().files.contains(batch)?;
            let is_new: Vec<bool> = known.values().iter().map(|is_known| !is_known).collect();
            let new = files.iter().zip(&is_new).filter(|(_, is_new)| **is_new);
            let new_files: Vec<DataFile> = new.map(|(file, _)| file.clone()).collect();
            let new = filtered(batch, &is_new.clone().into())?;
            let is_older = older.find(&new, &new_files)?;
            let is_current: Vec<bool> = is_older.iter().map(|is_older| !is_older).collect();
            self.current.borrow_mut().files.insert(&filtered(&new, &is_current.into())?)?;
            let mut is_older = is_older.into_iter();
            let chosen = is_new.into_iter().map(|is_new| is_new && is_older.next().unwrap_or_default());
            let chosen: Vec<bool> = chosen.collect();
            Ok(chosen.into())
        };
        let rewriter = Rewriter::new(base, TableWriteSpec::of(base)?, &choose, self.environment)?;
        if self.move_rows(&rewriter, base, false)? {
            return Ok(true);
        }
        let mut draft = Draft::of(base, self.environment)?;
        draft.schema = draft.schema.without_type_changes();
        // Other writers may add files from an earlier version again, as RESTORE does.
        draft.objection = Some(Objection::new("have older types than the schema".to_owned(), move |adds| {
            older.first_of_commit(adds)
        }));
        let operation = Operation::new("UPDATE COLUMN METADATA").parameter("operationName", "DROP FEATURE");
        commit_draft(draft, operation)
    }

    /// Rewrites all files with the logical names of the schema, and removes physical names and ids from the schema.
    fn remove_mapping(&self, base: &Snapshot) -> Result<bool> {
        let draft = self.without_mapping(base)?;
        if draft.schema == *base.schema() && draft.metadata == *base.metadata() {
            return Ok(false);
        }
        let metadata = Metadata { schema_string: draft.schema.to_json(), ..draft.metadata.clone() };
        let spec = TableWriteSpec::of_evolved(base, base.protocol(), &metadata)?;
        let is_mapped = draft.column_mapping() != ColumnMappingMode::None;
        let choose = |batch: &RecordBatch, _: &[DataFile]| -> Result<BooleanArray> {
            Ok(vec![is_mapped; batch.num_rows()].into())
        };
        let rewriter = Rewriter::new(base, spec, &choose, self.environment)?;
        rewriter.commit(rewriter.rewrite(base)?, base, |base, rewritten| {
            let operation = rewritten.described(Operation::new("REMOVE COLUMN MAPPING"));
            self.without_mapping(base)?.finish(operation)?.ok_or_else(unchanged)
        })?;
        Ok(true)
    }

    /// Returns a draft of the table of `base` without physical names and ids in its schema.
    fn without_mapping<'b>(&'b self, base: &'b Snapshot) -> Result<Draft<'b>> {
        let mut draft = Draft::of(base, self.environment)?;
        draft.schema = traces::without_mapping(&draft.schema);
        for property in traces::COLUMN_MAPPING {
            draft.metadata.configuration.remove(property);
        }
        // Files that are added concurrently use the physical names.
        draft.depends_on_rows = true;
        let clustering = base.clustering_columns()?;
        if !clustering.is_empty() {
            let schema = MappedSchema::new(draft.schema.clone(), ColumnMappingMode::None)?;
            draft.domains.push(clustering_domain(&clustering, &schema)?);
        }
        Ok(draft)
    }

    /// Rewrites the files that `rewriter` chooses, without changing anything else. Returns whether it chose any files.
    fn move_rows(&self, rewriter: &Rewriter<'_>, base: &Snapshot, purges_rows: bool) -> Result<bool> {
        let rewritten = rewriter.rewrite(base)?;
        if rewritten.is_empty() {
            return Ok(false);
        }
        rewriter.commit(rewritten, base, |base, rewritten: &Rewritten| {
            let operation =
                Operation::new("REORG").parameter("predicate", "[]").parameter("applyPurge", purges_rows);
            Transaction::new(base, rewritten.described(operation), self.environment)
        })?;
        Ok(true)
    }
}

/// Returns an objection to added files that use `feature`, for a table whose own files do not use it; `None` if files
/// cannot use the feature. For deletion vectors, it also objects to data files for which `base` has `remove` actions
/// with deletion vectors, because clients that do not know the feature consider these files removed.
///
/// # Errors
/// Returns `CorruptLog`, and errors from the store.
pub(super) fn objection(base: &Snapshot, feature: &TableFeature) -> Result<Option<Objection>> {
    // For all other features, the metadata determines whether files use them. No objection is needed, because this
    // commit sets the metadata and so conflicts with changes of it.
    if *feature != TableFeature::DeletionVectors {
        return Ok(None);
    }
    let removed = removed_with_vectors(base)?;
    let find = move |adds: &RecordBatch| {
        let has_vector = with_vectors(adds).values().iter().position(|has_vector| has_vector);
        match has_vector {
            Some(row) => Ok(path_of(adds, row)),
            None => removed.find(adds),
        }
    };
    Ok(Some(Objection::new(format!("make use of the feature '{feature}'"), find)))
}

fn commit_draft(draft: Draft<'_>, operation: Operation) -> Result<bool> {
    draft.finish(operation)?.ok_or_else(unchanged)?.commit_or_fail()?;
    Ok(true)
}

pub(super) fn unchanged() -> Error {
    Error::invalid_argument("the table no longer uses the feature")
}

/// Keeps the files with the deletion vectors of earlier versions as long as removed data files are kept. A client
/// without the feature would delete these files because it does not know them, so `transaction` records them as
/// removed data files.
///
/// # Errors
/// Returns `CorruptLog` for an invalid descriptor, and errors from the store.
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
                // A client can only delete files in the table's own directory.
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
