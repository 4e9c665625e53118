//! Determines the protocol and metadata of a restored version.
//!
//! | part of the table | taken from |
//! | --- | --- |
//! | schema, partitioning, name, description, table id, properties | the earlier version |
//! | features of the protocol | both versions, unless the caller allows losing features that were added later |
//! | domains of users and the clustering columns | the earlier version; domains that were added later are removed |
//! | in-commit timestamps, protection of checkpoints | the newest version, because they concern the log |
//! | high water marks of identity columns, highest column id | whichever is farther, so that no value is reused |
//! | progress of applications, high water mark of row ids | the newest version |
//!
//! Features that protect the log, or that are needed to remove a domain, are always kept.
//!
//! The JVM implementation does the same, except that it takes the properties of in-commit timestamps from the earlier
//! version.

use std::collections::HashMap;

use crate::commit::Transaction;
use crate::error::{Error, Result};
use crate::log::{ENABLEMENT_TIMESTAMP, ENABLEMENT_VERSION};
use crate::operations::define::{MAX_COLUMN_ID, last_column_id};
use crate::protocol::row_tracking::ROW_TRACKING_DOMAIN;
use crate::protocol::schema::column_rules::{IDENTITY_MARK, IDENTITY_STEP};
use crate::protocol::{
    DomainMetadata, Metadata, PROTECTED_BEFORE, Protocol, StructField, StructType, TableFeature,
    ensure_features, writer_refusals,
};
use crate::snapshot::Snapshot;

/// The properties that concern the log and not the rows of a version.
const OF_THE_LOG: [&str; 4] =
    ["delta.enableInCommitTimestamps", ENABLEMENT_VERSION, ENABLEMENT_TIMESTAMP, PROTECTED_BEFORE];

/// The key in a column's metadata for the column's name in files.
const PHYSICAL_NAME: &str = "delta.columnMapping.physicalName";

/// The protocol, metadata and metadata domains that the commit sets.
pub(super) struct RestoredTable {
    protocol: Protocol,
    metadata: Metadata,
    domains: Vec<DomainMetadata>,
}

impl RestoredTable {
    /// # Errors
    /// Returns `Unsupported` if the table could not be written after the commit, or if rows would get ids that other
    /// rows had before. Also returns `CorruptLog`, and errors from the store.
    pub(super) fn of(base: &Snapshot, earlier: &Snapshot, allow_downgrade: bool) -> Result<Self> {
        let domains = domains(base, earlier)?;
        let protocol = match allow_downgrade {
            // Features that protect the log, or that are needed to remove a domain, are always kept.
            true => {
                let mut kept = vec![TableFeature::CheckpointProtection];
                kept.retain(|feature| base.protocol().supports(feature));
                if !domains.is_empty() {
                    kept.push(TableFeature::DomainMetadata);
                }
                earlier.protocol().supporting(&kept)
            }
            false => base.protocol().supporting(&earlier.protocol().writer_features()),
        };
        ensure_features("restore", &writer_refusals(&protocol))?;
        let mut metadata = earlier.metadata().clone();
        let has_timestamps = protocol.supports(&TableFeature::InCommitTimestamp);
        for name in OF_THE_LOG.into_iter().filter(|name| has_timestamps || *name == PROTECTED_BEFORE) {
            match base.metadata().property(name) {
                Some(value) => metadata.configuration.insert(name.to_owned(), value.to_owned()),
                None => metadata.configuration.remove(name),
            };
        }
        if metadata.configuration.contains_key(MAX_COLUMN_ID) {
            let highest = last_column_id(base.metadata())?.max(last_column_id(earlier.metadata())?);
            metadata.configuration.insert(MAX_COLUMN_ID.to_owned(), highest.to_string());
        }
        metadata.schema_string = with_farthest_marks(earlier.schema(), base.schema())?
            .map_or(metadata.schema_string, |schema| schema.to_json());
        Ok(Self { protocol, metadata, domains })
    }

    /// Returns whether the files of the table have row ids.
    pub(super) fn supports_row_ids(&self) -> bool {
        self.protocol.supports(&TableFeature::RowTracking)
    }

    /// Returns whether `base` already has the same protocol, metadata and domains.
    pub(super) fn is_unchanged(&self, base: &Snapshot) -> Result<bool> {
        Ok(self.protocol == *base.protocol() && self.metadata == *base.metadata() && self.domains.is_empty())
    }

    /// Adds everything that differs from `base` to `transaction`.
    pub(super) fn set(self, transaction: &mut Transaction, base: &Snapshot) -> Result<()> {
        if self.protocol != *base.protocol() {
            transaction.set_protocol(self.protocol);
        }
        if self.metadata != *base.metadata() {
            transaction.set_metadata(self.metadata);
        }
        self.domains.into_iter().for_each(|domain| transaction.set_system_domain(domain));
        Ok(())
    }
}

/// Returns the changes that turn the metadata domains of `base` into the domains of `earlier`.
///
/// # Errors
/// Returns `Unsupported` if the high water mark of row ids is now lower than in the earlier version, which means that
/// row tracking was dropped and enabled again.
fn domains(base: &Snapshot, earlier: &Snapshot) -> Result<Vec<DomainMetadata>> {
    let (now, before) = (base.domain_metadata()?, earlier.domain_metadata()?);
    let is_row_ids = |domain: &&DomainMetadata| domain.domain == ROW_TRACKING_DOMAIN;
    let mark = |domains: &[DomainMetadata]| domains.iter().find(is_row_ids).map(mark_of).unwrap_or(-1);
    if mark(&before) > mark(&now) {
        return Err(Error::unsupported(
            "the version cannot be restored: its rows have ids, and row tracking was dropped since, so that new rows \
             would get the same ids",
        )
        .with_hint("read the earlier version, and write its rows to the table instead"));
    }
    let mut changed = Vec::new();
    for domain in before.iter().filter(|domain| !is_row_ids(domain)) {
        if !now.contains(domain) {
            changed.push(domain.clone());
        }
    }
    for domain in now.iter().filter(|domain| !is_row_ids(domain)) {
        if !before.iter().any(|other| other.domain == domain.domain) {
            changed.push(DomainMetadata { removed: true, ..domain.clone() });
        }
    }
    Ok(changed)
}

/// Returns the highest row id that a table has assigned; -1 if it has assigned none.
fn mark_of(domain: &DomainMetadata) -> i64 {
    let fields: serde_json::Value = serde_json::from_str(&domain.configuration).unwrap_or_default();
    fields.get("rowIdHighWaterMark").and_then(serde_json::Value::as_i64).unwrap_or(-1)
}

/// Returns the column's name in files, which does not change when the column is renamed.
fn name_in_files(field: &StructField) -> String {
    let physical =
        field.metadata.entries().get(PHYSICAL_NAME).and_then(|name| name.as_str().map(str::to_owned));
    physical.unwrap_or_else(|| field.name.clone())
}

/// Returns `schema` with those high water marks of `newest` that are farther; `None` if there are none.
///
/// # Errors
/// Returns the same errors as [`StructType::try_new`].
fn with_farthest_marks(schema: &StructType, newest: &StructType) -> Result<Option<StructType>> {
    let number =
        |field: &StructField, key: &str| field.metadata.entries().get(key).and_then(|value| value.as_i64());
    let newest: HashMap<String, &StructField> =
        newest.fields().iter().map(|field| (name_in_files(field), field)).collect();
    let mut is_moved = false;
    let fields = schema.fields().iter().map(|field| {
        let same = newest.get(&name_in_files(field));
        let farther = same.and_then(|other| number(other, IDENTITY_MARK)).filter(|mark| {
            let step = number(field, IDENTITY_STEP).unwrap_or(1);
            number(field, IDENTITY_MARK).is_none_or(|own| if step > 0 { *mark > own } else { *mark < own })
        });
        match farther.filter(|_| number(field, IDENTITY_STEP).is_some()) {
            None => field.clone(),
            Some(mark) => {
                is_moved = true;
                StructField {
                    metadata: field.metadata.with(IDENTITY_MARK, Some(mark.into())),
                    ..field.clone()
                }
            }
        }
    });
    let fields: Vec<StructField> = fields.collect();
    if is_moved { StructType::try_new(fields).map(Some) } else { Ok(None) }
}
