//! Table features, and the gates for what is not implemented. (PROTOCOL, "Table Features", "Valid Feature
//! Names in Table Features", "Reader Version Requirements", "Writer Version Requirements".)
//!
//! - A feature is *supported* by a table when its protocol implies it (legacy versions) or lists it. It is
//!   *active* when the table's metadata makes use of it. Some can be active without a trace in the metadata;
//!   those count as active as soon as they are supported.
//! - What is not implemented is refused by name, and so is every name that is not known. The gates start
//!   strict; code that implements a feature opens its row in `gate.rs`.

mod gate;
mod new_table;
mod table_feature;

#[cfg(test)]
mod tests;

pub use gate::{
    ensure_readable, ensure_readable_with_catalog, ensure_writable, is_append_only, reader_refusals,
    writer_refusals,
};
pub use new_table::protocol_for;
pub use table_feature::{FeatureKind, TableFeature};

use super::action::Protocol;
use crate::{Error, Result};

/// The newest version of the read protocol: the one with feature lists.
pub const READER_VERSION: i32 = 3;
/// The newest version of the write protocol: the one with feature lists.
pub const WRITER_VERSION: i32 = 7;

impl Protocol {
    /// Whether the protocol is one that the specification allows.
    ///
    /// # Errors
    /// [`CorruptLog`](crate::ErrorKind::CorruptLog) for a version below 1, a feature list without the version
    /// that has one, the version without its list, and reader version 3 with a writer version below 7.
    /// Versions above the newest are the gates' business.
    pub fn validate(&self) -> Result<()> {
        let corrupt = |what: &str| {
            let (reader, writer) = (self.min_reader_version, self.min_writer_version);
            Err(Error::corrupt_log(format!(
                "protocol (reader version {reader}, writer version {writer}) {what}"
            )))
        };
        // An empty list says nothing: some writers leave one where none belongs.
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

    /// The features that a reader must implement, implied or listed.
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

    /// The features that a writer must implement, implied or listed.
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
