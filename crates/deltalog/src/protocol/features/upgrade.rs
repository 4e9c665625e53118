//! Upgrades the protocol of an existing table to support more features, or lowers it by one feature. (PROTOCOL, "Table
//! Features for New and Existing Tables", "Supported Features".)
//!
//! - An upgrade never lowers a version or removes a feature.
//! - A protocol with feature lists lists all features that the older version implied. Each of them counts as used,
//!   because older versions of the table are not examined.
//! - A feature that readers must implement is listed for readers and for writers.
//! - When a feature is dropped, the table gets the lowest versions that support exactly the remaining features, as in
//!   the JVM implementation.

use super::{FeatureKind, READER_VERSION, TableFeature, WRITER_VERSION};
use crate::protocol::action::Protocol;

impl Protocol {
    /// Returns whether writers, and readers if the feature concerns them, must implement `feature`.
    pub fn supports(&self, feature: &TableFeature) -> bool {
        let is_for_readers = feature.kind() == Some(FeatureKind::ReaderWriter);
        self.writer_features().contains(feature)
            && (!is_for_readers || self.reader_features().contains(feature))
    }

    /// Returns the oldest protocol that supports what this one supports, and also `features`.
    #[must_use]
    pub fn supporting(&self, features: &[TableFeature]) -> Self {
        if features.iter().all(|feature| self.supports(feature)) {
            return self.clone();
        }
        let mut readers = self.reader_features();
        let mut writers = self.writer_features();
        for feature in readers.iter().chain(features) {
            if !writers.contains(feature) {
                writers.push(feature.clone());
            }
        }
        for feature in &writers {
            if feature.kind() == Some(FeatureKind::ReaderWriter) && !readers.contains(feature) {
                readers.push(feature.clone());
            }
        }
        let has_reader_list = !readers.is_empty() || self.min_reader_version >= READER_VERSION;
        Self {
            min_reader_version: if has_reader_list { READER_VERSION } else { self.min_reader_version },
            min_writer_version: WRITER_VERSION,
            reader_features: has_reader_list.then(|| names(&readers)),
            writer_features: Some(names(&writers)),
        }
    }

    /// Returns a protocol that supports everything that this one supports, and all features that the versions `reader`
    /// and `writer` imply. A protocol without a list of writer features is raised to at least these versions.
    ///
    /// Reader version 3 and writer version 7, which have feature lists, imply no features, so requesting them changes
    /// nothing. If the protocol already has a list of writer features, the features that the requested versions imply
    /// are added to its lists. Writer versions from 5 on need reader version 2.
    #[must_use]
    pub fn upgraded(&self, reader: i32, writer: i32) -> Self {
        let writer = if writer >= WRITER_VERSION { 1 } else { writer };
        let reader = if reader >= READER_VERSION { 1 } else { reader };
        let least = if writer >= MAPPING_WRITER_VERSION { reader.max(2) } else { reader };
        let asked = Self { min_reader_version: least, min_writer_version: writer, ..Self::default() };
        if self.min_writer_version >= WRITER_VERSION {
            return self.supporting(&asked.writer_features());
        }
        Self {
            min_reader_version: self.min_reader_version.max(least),
            min_writer_version: self.min_writer_version.max(writer),
            ..self.clone()
        }
    }

    /// Returns the lowest protocol that supports what this one supports, without `feature`.
    #[must_use]
    pub fn without(&self, feature: &TableFeature) -> Self {
        let mut readers = self.reader_features();
        let mut writers = self.writer_features();
        readers.retain(|other| other != feature);
        writers.retain(|other| other != feature);
        let is_same = |one: &[TableFeature], other: &[TableFeature]| {
            one.len() == other.len() && one.iter().all(|feature| other.contains(feature))
        };
        let legacy =
            (1..READER_VERSION).flat_map(|reader| (1..WRITER_VERSION).map(move |writer| (reader, writer)));
        let mut legacy = legacy.map(|(min_reader_version, min_writer_version)| Self {
            min_reader_version,
            min_writer_version,
            ..Self::default()
        });
        let exact = legacy.find(|protocol| {
            is_same(&protocol.reader_features(), &readers) && is_same(&protocol.writer_features(), &writers)
        });
        exact.unwrap_or_else(|| Self {
            min_reader_version: if readers.is_empty() { 1 } else { READER_VERSION },
            min_writer_version: WRITER_VERSION,
            reader_features: (!readers.is_empty()).then(|| names(&readers)),
            writer_features: Some(names(&writers)),
        })
    }
}

/// The first writer version that implies column mapping. Readers must also implement this feature.
const MAPPING_WRITER_VERSION: i32 = 5;

fn names(features: &[TableFeature]) -> Vec<String> {
    features.iter().map(|feature| feature.name().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn legacy(reader: i32, writer: i32) -> Protocol {
        Protocol { min_reader_version: reader, min_writer_version: writer, ..Protocol::default() }
    }

    /// Returns every protocol that a table can have before an upgrade.
    fn protocols() -> Vec<Protocol> {
        let mut all: Vec<_> =
            (1..=2).flat_map(|reader| (1..=6).map(move |writer| legacy(reader, writer))).collect();
        let lists = [vec![], vec![TableFeature::DeletionVectors], vec![TableFeature::RowTracking]];
        let upgraded: Vec<_> =
            all.iter().flat_map(|from| lists.iter().map(|list| from.supporting(list))).collect();
        all.extend(upgraded);
        all
    }

    /// PROTOCOL, "Supported Features": "Clients must not remove the feature from the `protocol` action."
    #[test]
    fn an_upgrade_removes_no_feature_and_adds_only_requested_ones() {
        for from in protocols() {
            for feature in TableFeature::known() {
                let to = from.supporting(std::slice::from_ref(&feature));
                to.validate().unwrap();
                assert!(to.supports(&feature), "{from:?} {feature}");
                assert!(to.min_reader_version >= from.min_reader_version);
                assert!(to.min_writer_version >= from.min_writer_version);
                assert!(from.writer_features().iter().all(|old| to.writer_features().contains(old)));
                assert!(from.reader_features().iter().all(|old| to.reader_features().contains(old)));
                let known = |new: &TableFeature| {
                    *new == feature
                        || from.writer_features().contains(new)
                        || from.reader_features().contains(new)
                };
                assert!(to.writer_features().iter().all(known), "{from:?} {to:?}");
                // "It is not allowed to list a feature only in readerFeatures but not in writerFeatures."
                if to.min_reader_version == READER_VERSION {
                    assert!(to.reader_features().iter().all(|listed| to.writer_features().contains(listed)));
                }
                assert_eq!(to.supporting(std::slice::from_ref(&feature)), to);
            }
        }
    }

    #[test]
    fn an_upgrade_to_versions_adds_their_features_and_lowers_nothing() {
        for from in protocols() {
            for (reader, writer) in (1..=3).flat_map(|reader| (1..=7).map(move |writer| (reader, writer))) {
                let to = from.upgraded(reader, writer);
                to.validate().unwrap();
                assert!(to.min_reader_version >= from.min_reader_version);
                assert!(to.min_writer_version >= from.min_writer_version);
                let implied = legacy(reader.min(2), if writer == 7 { 1 } else { writer });
                for feature in implied.writer_features() {
                    assert!(to.supports(&feature), "{from:?} to {reader}, {writer}: {feature}");
                }
                assert!(from.writer_features().iter().all(|old| to.writer_features().contains(old)));
                assert_eq!(to.upgraded(reader, writer), to);
            }
        }
        assert_eq!(legacy(1, 2).upgraded(1, 4), legacy(1, 4));
        assert_eq!(legacy(1, 2).upgraded(1, 6), legacy(2, 6));
        assert_eq!(legacy(1, 2).upgraded(3, 7), legacy(1, 2));
        assert_eq!(legacy(1, 5).upgraded(1, 1), legacy(1, 5));
    }

    #[test]
    fn a_protocol_without_a_feature_supports_all_other_features() {
        for from in protocols() {
            for feature in from.writer_features() {
                let to = from.without(&feature);
                to.validate().unwrap();
                let others = |mut features: Vec<TableFeature>| {
                    features.retain(|other| *other != feature);
                    features.sort_by_key(TableFeature::to_string);
                    features
                };
                assert_eq!(
                    others(to.writer_features()),
                    others(from.writer_features()),
                    "{from:?} {feature}"
                );
                assert_eq!(
                    others(to.reader_features()),
                    others(from.reader_features()),
                    "{from:?} {feature}"
                );
                assert!(!to.writer_features().contains(&feature) && !to.reader_features().contains(&feature));
            }
        }
        let listed =
            legacy(1, 2).supporting(&[TableFeature::CheckConstraints, TableFeature::VacuumProtocolCheck]);
        let less = listed.without(&TableFeature::VacuumProtocolCheck);
        assert_eq!(less, legacy(1, 3));
        assert_eq!(less.without(&TableFeature::CheckConstraints), legacy(1, 2));
        assert_eq!(listed.without(&TableFeature::CheckConstraints).min_reader_version, 3);
    }

    /// PROTOCOL, "Table Features for New and Existing Tables".
    #[test]
    fn feature_lists_name_the_features_that_older_versions_imply() {
        let to = legacy(1, 2).supporting(&[TableFeature::CheckConstraints]);
        assert_eq!((to.min_reader_version, to.min_writer_version), (1, 7));
        assert_eq!(to.reader_features, None);
        assert_eq!(to.writer_features.unwrap(), ["appendOnly", "invariants", "checkConstraints"]);
        let to = legacy(2, 5).supporting(&[TableFeature::DeletionVectors]);
        assert_eq!((to.min_reader_version, to.min_writer_version), (3, 7));
        assert_eq!(to.reader_features.unwrap(), ["columnMapping", "deletionVectors"]);
        // The protocol already implies the feature.
        assert_eq!(legacy(2, 5).supporting(&[TableFeature::ColumnMapping]), legacy(2, 5));
        assert_eq!(legacy(1, 4).supporting(&[TableFeature::ChangeDataFeed]), legacy(1, 4));
    }
}
