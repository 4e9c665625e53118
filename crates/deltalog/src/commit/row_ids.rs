//! Assigns row ids and row commit versions to the files that a commit adds. Protocol: "Row Tracking", "Writer
//! Requirements for Row Tracking".
//!
//! The ids depend on the high water mark of the previous version, so each attempt to commit assigns them again.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::protocol::row_tracking::ROW_TRACKING_DOMAIN;
use crate::protocol::{Add, DomainMetadata, Protocol, TableFeature};
use crate::snapshot::Snapshot;
use crate::values::stats::num_records;

/// The configuration of the metadata domain for row tracking.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Configuration {
    /// The highest row id that was ever assigned.
    #[serde(alias = "highWaterMark")]
    row_id_high_water_mark: i64,
}

/// Assigns row ids in one attempt.
#[derive(Debug, Clone)]
pub(super) struct RowIds {
    /// The highest row id that was ever assigned; -1 if none was.
    high_water_mark: i64,
    /// The version that is to be committed.
    version: i64,
    has_assigned: bool,
}

impl RowIds {
    /// Returns an object that continues after the high water mark of `base`; `None` if the table does not support row
    /// tracking.
    ///
    /// # Errors
    /// `CorruptLog` for an invalid high water mark; also errors from the store.
    pub(super) fn of(base: Option<&Snapshot>, protocol: &Protocol) -> Result<Option<Self>> {
        if !protocol.writer_features().contains(&TableFeature::RowTracking) {
            return Ok(None);
        }
        let mut ids = Self { high_water_mark: -1, version: 0, has_assigned: false };
        if let Some(base) = base {
            ids.advance(&base.domain_metadata()?)?;
        }
        Ok(Some(ids))
    }

    /// Updates the high water mark from the metadata domains of a version.
    pub(super) fn advance(&mut self, domains: &[DomainMetadata]) -> Result<()> {
        let Some(domain) =
            domains.iter().find(|domain| domain.domain == ROW_TRACKING_DOMAIN && !domain.removed)
        else {
            return Ok(());
        };
        let found: Configuration = serde_json::from_str(&domain.configuration).map_err(|error| {
            Error::corrupt_log(format!("the metadata domain '{ROW_TRACKING_DOMAIN}' has no high water mark"))
                .with_source(error)
        })?;
        self.high_water_mark = self.high_water_mark.max(found.row_id_high_water_mark);
        Ok(())
    }

    /// Returns the object that assigns row ids in a commit of `version`.
    pub(super) fn at(&self, version: u64) -> Result<Self> {
        let version =
            i64::try_from(version).map_err(|_| Error::corrupt_log("the version does not fit in an i64"))?;
        Ok(Self { version, has_assigned: false, ..self.clone() })
    }

    /// Assigns ids to the rows of `add`, unless it already has them.
    ///
    /// # Errors
    /// `InvalidArgument` for a file with an unknown number of rows.
    pub(super) fn assign(&mut self, add: &mut Add) -> Result<()> {
        if add.base_row_id.is_some() {
            add.default_row_commit_version.get_or_insert(self.version);
            return Ok(());
        }
        let rows = add.stats.as_deref().and_then(num_records).and_then(|rows| i64::try_from(rows).ok());
        let last = rows.and_then(|rows| self.high_water_mark.checked_add(rows));
        let Some(last) = last else {
            return Err(Error::invalid_argument(
                "row tracking needs the number of rows of each file, but the statistics of this file do not contain it",
            )
            .at_path(&add.path));
        };
        add.base_row_id = Some(self.high_water_mark + 1);
        add.default_row_commit_version = Some(self.version);
        self.high_water_mark = last;
        self.has_assigned = true;
        Ok(())
    }

    /// Returns the metadata domain with the new high water mark, if ids were assigned.
    pub(super) fn domain(&self) -> Result<Option<DomainMetadata>> {
        if !self.has_assigned {
            return Ok(None);
        }
        let configuration = Configuration { row_id_high_water_mark: self.high_water_mark };
        let configuration = serde_json::to_string(&configuration).map_err(|error| {
            Error::invalid_argument("the high water mark of row ids cannot be written").with_source(error)
        })?;
        Ok(Some(DomainMetadata { domain: ROW_TRACKING_DOMAIN.to_owned(), configuration, removed: false }))
    }

    /// Returns whether `domain` is the domain of row tracking, which every attempt writes itself.
    pub(super) fn is_own_domain(domain: &DomainMetadata) -> bool {
        domain.domain == ROW_TRACKING_DOMAIN
    }
}
