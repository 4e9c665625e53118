//! The changes of a transaction.
//!
//! - File actions are record batches with the log's columns, so that a transaction that removes very many files does
//!   not need one struct per file. The few other actions are structs.
//! - [`Changes::check`] refuses changes that must not be in one commit, before the commit is put.

use arrow::array::{Array, AsArray, RecordBatch};

use super::row_deletes::RowDelete;
use crate::error::{Error, Result};
use crate::log::replay::{FileColumn, FileSet, adds_of, batches_of_adds, has_vectors, path_of};
use crate::protocol::{
    Add, AddCdcFile, DomainMetadata, IcebergCompat, Metadata, PathResolver, Protocol, SetTransaction,
    TableFeature, ensure_removable,
};
use crate::values::stats::num_records;

/// The changes of one transaction.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The protocol, if the transaction sets it.
    pub(super) protocol: Option<Protocol>,
    /// The metadata, if the transaction sets it.
    pub(super) metadata: Option<Metadata>,
    /// Whether the metadata records the version of this commit, which protects the checkpoints of all earlier versions.
    pub(super) protects_checkpoints: bool,
    /// The progress of applications.
    pub(super) transactions: Vec<SetTransaction>,
    /// The configurations of domains.
    pub(super) domains: Vec<DomainMetadata>,
    /// The `remove` actions.
    pub(super) removes: Vec<RecordBatch>,
    /// The `add` actions.
    pub(super) adds: Vec<RecordBatch>,
    /// The rows that are deleted from files that stay in the table.
    pub(super) row_deletes: Vec<RowDelete>,
    /// The change data files.
    pub(super) change_files: Vec<AddCdcFile>,
    /// Whether the transaction adds files that an earlier version has removed, and that a VACUUM may therefore delete.
    pub(super) brings_files_back: bool,
}

impl Changes {
    /// Adds data files.
    pub(super) fn add_files(&mut self, adds: &[Add]) -> Result<()> {
        self.adds.extend(batches_of_adds(adds)?);
        Ok(())
    }

    /// Returns whether nothing is changed.
    pub(super) fn is_empty(&self) -> bool {
        self.only_moves_rows()
            && self.removes.is_empty()
            && self.adds.is_empty()
            && self.change_files.is_empty()
    }

    /// Returns whether the transaction only moves rows from some files to others.
    pub(super) fn only_moves_rows(&self) -> bool {
        self.protocol.is_none()
            && self.metadata.is_none()
            && self.transactions.is_empty()
            && self.domains.is_empty()
            && self.row_deletes.is_empty()
            && !self.adds.iter().chain(&self.removes).any(has_data_change)
    }

    /// Returns whether the transaction only adds rows, and changes neither the protocol nor the metadata.
    pub(super) fn only_adds_rows(&self) -> bool {
        self.protocol.is_none() && self.metadata.is_none() && self.adds_rows_alone()
    }

    /// Returns whether the transaction only adds new rows. It may change the metadata as well, for example to record
    /// the values that an identity column has used.
    pub(super) fn adds_rows_alone(&self) -> bool {
        self.removes.is_empty()
            && self.row_deletes.is_empty()
            && self.adds.iter().all(|batch| data_changes(batch).all(|changes| changes))
    }

    /// Checks that one commit may contain these changes. `protocol` and `metadata` are the ones after the commit, and
    /// `before` is the metadata before the commit. Returns the data files that are removed.
    ///
    /// # Errors
    /// `InvalidArgument` if a file is added or removed twice, if an application or a domain occurs twice, if rows of an
    /// append-only table are removed, if an action uses a feature that the protocol lacks, or if a file breaks a rule
    /// of Iceberg compatibility.
    pub(super) fn check(
        &self,
        protocol: &Protocol,
        metadata: &Metadata,
        before: &Metadata,
        resolver: &PathResolver,
    ) -> Result<FileSet> {
        let refuse = |message: String| Err(Error::invalid_argument(message));
        let (added, twice) = set_of(&self.adds, resolver)?;
        if let Some(path) = twice {
            return refuse(format!("the transaction adds the file '{path}' twice"));
        }
        let (removed, twice) = set_of(&self.removes, resolver)?;
        if let Some(path) = twice {
            return refuse(format!("the transaction removes the file '{path}' twice"));
        }
        if let Some(path) = self.added_and_removed(resolver)? {
            return refuse(format!("the transaction adds and removes the same file '{path}'"));
        }
        if let Some(path) = self.deleted_and_changed(&added, &removed)? {
            return refuse(format!(
                "the transaction deletes rows of the file '{path}', which it also adds or removes"
            ));
        }
        if let Some(app) = repeated(self.transactions.iter().map(|progress| &progress.app_id)) {
            return refuse(format!("the transaction records progress of the application '{app}' twice"));
        }
        if let Some(domain) = repeated(self.domains.iter().map(|domain| &domain.domain)) {
            return refuse(format!("the transaction sets the metadata domain '{domain}' twice"));
        }
        let removes_rows = !self.row_deletes.is_empty() || self.removes.iter().any(has_data_change);
        if removes_rows {
            ensure_removable(before)?;
        }
        if !self.row_deletes.is_empty() && !metadata.is_enabled("delta.enableDeletionVectors") {
            return refuse(
                "rows can only be deleted by deletion vectors, which the table does not allow \
                 (delta.enableDeletionVectors)"
                    .to_owned(),
            );
        }
        if let Some(file) = self.change_files.first()
            && !metadata.has_change_feed()
        {
            return refuse(format!(
                "the transaction adds the change data file '{}' to a table without a change data feed \
                 (delta.enableChangeDataFeed)",
                file.path
            ));
        }
        let features = protocol.writer_features();
        for (is_used, feature) in [
            (!self.domains.is_empty(), TableFeature::DomainMetadata),
            (
                !self.row_deletes.is_empty() || self.adds.iter().any(has_vectors),
                TableFeature::DeletionVectors,
            ),
        ] {
            if is_used && !features.contains(&feature) {
                return refuse(format!("the transaction needs the table feature '{feature}'"));
            }
        }
        if let Some(iceberg) = IcebergCompat::of(protocol, metadata)? {
            self.check_iceberg(iceberg)?;
        }
        Ok(removed)
    }

    /// Refuses files with deletion vectors before version 3 of Iceberg compatibility, and files whose statistics lack
    /// the number of rows. (Protocol: "Iceberg Compatibility V1", "… V2"; "Iceberg Compatibility V3" of the protocol's
    /// requests for comments.)
    fn check_iceberg(&self, iceberg: IcebergCompat) -> Result<()> {
        let has_vectors = !self.row_deletes.is_empty() || self.adds.iter().any(has_vectors);
        if has_vectors && !iceberg.allows_vectors() {
            return Err(iceberg.refusal("the transaction deletes rows by deletion vectors"));
        }
        for batch in &self.adds {
            for add in adds_of(batch)? {
                if add.stats.as_deref().and_then(num_records).is_none() {
                    let what = "the statistics of a file do not contain its number of rows";
                    return Err(iceberg.refusal(what).at_path(add.path));
                }
            }
        }
        Ok(())
    }

    /// Returns the path of a logical file that is both added and removed. A transaction may replace the deletion vector
    /// of a data file, because the data file with another vector is a different logical file.
    fn added_and_removed(&self, resolver: &PathResolver) -> Result<Option<String>> {
        if self.adds.is_empty() {
            return Ok(None);
        }
        let mut removed = FileSet::of_logical_files(resolver);
        for batch in &self.removes {
            removed.insert(batch)?;
        }
        for batch in &self.adds {
            if let Some(path) = removed.find(batch)? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// Returns the path of a data file that has row deletes and is also added or removed.
    fn deleted_and_changed(&self, added: &FileSet, removed: &FileSet) -> Result<Option<String>> {
        let files: Vec<Add> = self.row_deletes.iter().map(|delete| delete.file.clone()).collect();
        for batch in batches_of_adds(&files)? {
            if let Some(path) = removed.find(&batch)?.or(added.find(&batch)?) {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}

/// Returns the path of the first file action in `batch` that has `dataChange`.
pub(super) fn path_of_data_change(batch: &RecordBatch) -> Option<String> {
    let row = data_changes(batch).position(|changes| changes)?;
    path_of(batch, row)
}

fn has_data_change(batch: &RecordBatch) -> bool {
    data_changes(batch).any(|changes| changes)
}

/// Returns the `dataChange` of each row. If an action does not have this field, the value is true.
fn data_changes(batch: &RecordBatch) -> impl Iterator<Item = bool> {
    let column = batch
        .column_by_name(FileColumn::DataChange.name())
        .and_then(|column| column.as_boolean_opt())
        .cloned();
    (0..batch.num_rows())
        .map(move |row| column.as_ref().is_none_or(|column| column.is_null(row) || column.value(row)))
}

/// Returns the data files of `batches`, and the path of a file that occurs twice, if there is one.
fn set_of(batches: &[RecordBatch], resolver: &PathResolver) -> Result<(FileSet, Option<String>)> {
    let (mut files, mut twice) = (FileSet::of_paths(resolver), None);
    for batch in batches {
        let again = files.insert(batch)?;
        twice = twice.or(again);
    }
    Ok((files, twice))
}

fn repeated<'a>(names: impl Iterator<Item = &'a String>) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().find(|name| !seen.insert(*name)).map(String::as_str)
}
