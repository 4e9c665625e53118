//! The draft of a changed table: its future protocol and metadata, and what the change requires of its files and
//! rows.

use super::iceberg;
use crate::commit::{IsolationLevel, Objection, Operation, Transaction};
use crate::error::{Error, Result};
use crate::expression::constraints::Constraints;
use crate::log::InCommitTimestamps;
use crate::protocol::TableHeader;
use crate::protocol::{
    ColumnMappingMode, DomainMetadata, Metadata, Protocol, StructType, TableFeature, ensure_features,
    ensure_writable, required_features, writer_refusals,
};
use crate::runtime::environment::Environment;
use crate::snapshot::Snapshot;
use crate::upkeep::manifest;
use crate::write::TableWriteSpec;
use arrow::array::RecordBatch;

/// A table as it will be after the change.
pub(super) struct Draft<'a> {
    pub(super) base: &'a Snapshot,
    pub(super) environment: &'a Environment,
    /// The new metadata, except for the schema.
    pub(super) metadata: Metadata,
    pub(super) schema: StructType,
    /// The minimum reader and writer versions of the new protocol.
    pub(super) versions: (i32, i32),
    /// The features that the change itself requests, in addition to those that the metadata requires.
    pub(super) features: Vec<TableFeature>,
    /// The feature that the change drops.
    pub(super) dropped: Option<TableFeature>,
    /// Whether the change is only valid for the rows that the table has in `base`.
    pub(super) depends_on_rows: bool,
    /// A requirement that files which other writers add concurrently must meet.
    pub(super) objection: Option<Objection>,
    /// The new configurations of metadata domains that the protocol reserves.
    pub(super) domains: Vec<DomainMetadata>,
    /// Changed `add` actions of files that the table already contains.
    pub(super) files: Vec<RecordBatch>,
}

impl<'a> Draft<'a> {
    /// Returns a draft of the table that is the same as `base`.
    ///
    /// # Errors
    /// Returns `Unsupported` if this crate cannot write the table.
    pub(super) fn of(base: &'a Snapshot, environment: &'a Environment) -> Result<Self> {
        ensure_writable(base.protocol(), base.metadata())?;
        Ok(Self {
            base,
            environment,
            metadata: base.metadata().clone(),
            schema: base.schema().clone(),
            versions: (1, 1),
            features: Vec::new(),
            dropped: None,
            depends_on_rows: false,
            objection: None,
            domains: Vec::new(),
            files: Vec::new(),
        })
    }

    /// Requests `features` and the features that they require. This may activate properties that had no effect
    /// before.
    pub(super) fn ask_for(&mut self, features: impl IntoIterator<Item = TableFeature>) {
        self.features.extend(with_required(features));
    }

    /// Returns the column mapping mode of the table before the change.
    pub(super) fn column_mapping(&self) -> ColumnMappingMode {
        self.base.mapped_schema().mode()
    }

    /// Returns the transaction that makes the drafted change; `None` if it changes nothing.
    ///
    /// # Errors
    /// Returns `Unsupported` if the change needs a feature that cannot be written, and the errors of `TableWriteSpec`
    /// if the table could not be written after the change. Also returns the errors of `required_features`.
    pub(super) fn finish(mut self, operation: Operation) -> Result<Option<Transaction>> {
        let base = self.base;
        let protocol = self.protocol()?;
        iceberg::follow_up(&mut self, &protocol)?;
        iceberg::check_files(&mut self, &protocol)?;
        if self.schema != *base.schema() {
            self.metadata.schema_string = self.schema.to_json();
        }
        let has_timestamps = |protocol: &Protocol, metadata: &Metadata| {
            Ok::<_, Error>(InCommitTimestamps::of(protocol, metadata)? != InCommitTimestamps::Never)
        };
        // The metadata records when in-commit timestamps begin, so it is also committed if only a change of the
        // protocol makes them begin.
        let begins_timestamps =
            has_timestamps(&protocol, &self.metadata)? && !has_timestamps(base.protocol(), base.metadata())?;
        // A concurrent change of the metadata may begin to use the feature that is dropped. To conflict with such a
        // change, a drop always commits the metadata.
        let sets_metadata = self.metadata != *base.metadata() || begins_timestamps || self.dropped.is_some();
        let sets_protocol = protocol != *base.protocol();
        if !sets_protocol && !sets_metadata && self.files.is_empty() && self.domains.is_empty() {
            return Ok(None);
        }
        self.check(&protocol)?;
        let mut transaction = Transaction::new(base, operation, self.environment)?;
        if self.depends_on_rows {
            transaction.read_whole_table();
            transaction = transaction.with_isolation(IsolationLevel::Serializable);
        }
        let begins_manifests =
            manifest::is_asked_for(&self.metadata) && !manifest::is_asked_for(base.metadata());
        if let Some(objection) = self.objection.or_else(|| begins_manifests.then(manifest::objection)) {
            transaction.object(objection);
        }
        if sets_protocol {
            transaction.set_protocol(protocol);
        }
        if sets_metadata {
            transaction.set_metadata(self.metadata);
        }
        for domain in self.domains {
            transaction.set_system_domain(domain);
        }
        for batch in self.files {
            transaction.add_batch(batch);
        }
        Ok(Some(transaction))
    }

    /// Returns the drafted protocol and metadata, for a write that sets them together with its rows.
    ///
    /// # Errors
    /// Returns the same errors as [`Draft::finish`].
    pub(super) fn into_table(mut self) -> Result<TableHeader> {
        let protocol = self.protocol()?;
        iceberg::follow_up(&mut self, &protocol)?;
        self.metadata.schema_string = self.schema.to_json();
        self.check(&protocol)?;
        Ok(TableHeader::new(protocol, self.metadata))
    }

    /// Returns the protocol that supports what the change requires. If the old metadata already required a feature
    /// that its protocol does not support, that feature is not added.
    pub(super) fn protocol(&self) -> Result<Protocol> {
        let before = required_features(self.base.schema(), self.base.metadata())?;
        let required = required_features(&self.schema, &self.metadata)?;
        let new = required.into_iter().filter(|feature| !before.contains(feature));
        let features = with_required(self.features.iter().cloned().chain(new));
        let (reader, writer) = self.versions;
        let protocol = self.base.protocol().upgraded(reader, writer).supporting(&features);
        Ok(match &self.dropped {
            Some(dropped) => protocol.without(dropped),
            None => protocol,
        })
    }

    /// Refuses the change if this crate could not write the table afterwards.
    fn check(&self, protocol: &Protocol) -> Result<()> {
        ensure_features("make", &writer_refusals(protocol))?;
        ensure_writable(protocol, &self.metadata)?;
        manifest::ensure_keepable(&self.metadata)?;
        if manifest::is_asked_for(&self.metadata) && !manifest::is_asked_for(self.base.metadata()) {
            manifest::ensure_no_vectors(self.base)?;
        }
        match ensure_rules_apply(protocol, &self.metadata) {
            Ok(()) => Ok(()),
            // The table already had an expression that cannot be evaluated, so the change is not to blame. Whether an
            // expression refers to a column is checked when that column changes.
            Err(_)
                if TableWriteSpec::new(protocol, &self.metadata).is_ok()
                    && ensure_rules_apply(self.base.protocol(), self.base.metadata()).is_err() =>
            {
                Ok(())
            }
            Err(error) => Err(Error::new(
                error.kind(),
                format!("the table could not be written after the change: {error}"),
            )),
        }
    }
}

/// Returns `features`, each followed by the features that it requires.
fn with_required(features: impl IntoIterator<Item = TableFeature>) -> Vec<TableFeature> {
    let mut all = Vec::new();
    for feature in features {
        let required = feature.requires();
        all.push(feature);
        all.extend(required.iter().cloned());
    }
    all
}

/// Checks that files of a table with this definition can be written, and that all its expressions fit its schema.
fn ensure_rules_apply(protocol: &Protocol, metadata: &Metadata) -> Result<()> {
    let spec = TableWriteSpec::new(protocol, metadata)?;
    Constraints::of(protocol, metadata, spec.schema(), "UTC").map(drop)
}
