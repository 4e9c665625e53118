//! Table features, and the checks that refuse tables with features that are not implemented. (PROTOCOL, "Table
//! Features", "Valid Feature Names in Table Features", "Reader Version Requirements", "Writer Version Requirements".)
//!
//! - A feature is *supported* by a table if the protocol lists it or, for legacy versions, implies it. It is *active*
//!   if the table's metadata uses it. Some features can be in use without a trace in the metadata; they count as active
//!   as soon as they are supported.
//! - Features that are unknown or not implemented are refused by name. Code that implements a feature must allow it in
//!   `gate.rs`.

mod gate;
mod new_table;
mod table_feature;
mod upgrade;

#[cfg(test)]
mod tests;

pub use gate::{
    ensure_checkpointable, ensure_readable, ensure_readable_with_catalog, ensure_writable, reader_refusals,
    writer_refusals,
};
pub(crate) use gate::{ensure_features, ensure_removable};
pub use new_table::{protocol_for, required_features};
pub(crate) use table_feature::COLLATIONS;
pub use table_feature::{FeatureKind, TableFeature};

use super::action::Protocol;
use crate::error::{Error, Result};

/// The newest version of the reader protocol. It is the first version with a list of features.
pub const READER_VERSION: i32 = 3;
/// The newest version of the writer protocol. It is the first version with a list of features.
pub const WRITER_VERSION: i32 = 7;

impl Protocol {
    /// Checks that the specification allows the protocol.
    ///
    /// # Errors
    /// [`CorruptLog`](crate::error::ErrorKind::CorruptLog) for a version below 1, for a feature list with a version
    /// that does not have one, for a version that lacks its feature list, and for reader version 3 with a writer
    /// version below 7. Versions above the newest are refused by the checks in `gate.rs`.
    pub fn validate(&self) -> Result<()> {
        let corrupt = |what: &str| {
            let (reader, writer) = (self.min_reader_version, self.min_writer_version);
            Err(Error::corrupt_log(format!(
                "protocol (reader version {reader}, writer version {writer}) {what}"
            )))
        };
        // Empty lists are ignored, because some writers write them with versions that have no lists.
        let lists =
            |features: &Option<Vec<String>>| features.as_ref().is_some_and(|features| !features.is_empty());
        if self.min_reader_version < 1 || self.min_writer_version < 1 {
            return corrupt("has a version below 1");
        }
        if self.min_reader_version == READER_VERSION && self.min_writer_version < WRITER_VERSION {
            return corrupt("needs writer version 7 for reader version 3");
        }
        if self.min_reader_version == READER_VERSION && self.reader_features.is_none() {
            return corrupt("lacks readerFeatures");
        }
        if self.min_writer_version == WRITER_VERSION && self.writer_features.is_none() {
            return corrupt("lacks writerFeatures");
        }
        if self.min_reader_version < READER_VERSION && lists(&self.reader_features) {
            return corrupt("has readerFeatures, which need reader version 3");
        }
        if self.min_writer_version < WRITER_VERSION && lists(&self.writer_features) {
            return corrupt("has writerFeatures, which need writer version 7");
        }
        Ok(())
    }

    /// Returns the features that a reader must implement, whether the protocol implies or lists them.
    pub fn reader_features(&self) -> Vec<TableFeature> {
        if self.min_reader_version >= READER_VERSION {
            return listed(&self.reader_features);
        }
        TableFeature::known()
            .filter(|feature| {
                feature.legacy_reader_version().is_some_and(|first| first <= self.min_reader_version)
            })
            .collect()
    }

    /// Returns the features that a writer must implement, whether the protocol implies or lists them.
    pub fn writer_features(&self) -> Vec<TableFeature> {
        if self.min_writer_version >= WRITER_VERSION {
            return listed(&self.writer_features);
        }
        TableFeature::known()
            .filter(|feature| {
                feature.legacy_writer_version().is_some_and(|first| first <= self.min_writer_version)
            })
            .collect()
    }
}

fn listed(names: &Option<Vec<String>>) -> Vec<TableFeature> {
    let mut features: Vec<TableFeature> = Vec::new();
    for feature in names.iter().flatten().map(|name| TableFeature::from_name(name)) {
        if !features.contains(&feature) {
            features.push(feature);
        }
    }
    features
}
