//! Tables that can be converted to the Apache Iceberg format. (PROTOCOL, "Iceberg Compatibility V1", "Iceberg
//! Compatibility V2"; "Iceberg Compatibility V3" of the protocol's requests for comments.)
//!
//! | writers must | V1 | V2 | V3 | where |
//! | --- | --- | --- | --- | --- |
//! | map the columns | yes | yes | yes | [`IcebergCompat::check`] |
//! | track rows | | | yes | [`IcebergCompat::check`] |
//! | use no deletion vectors | the feature must be absent | the property must be off | | [`IcebergCompat::check`] |
//! | not use some types | arrays, maps, void | variants, void | void | [`IcebergCompat::check`] |
//! | widen types as Iceberg does | yes | yes | yes | [`IcebergCompat::check`] |
//! | keep the names of partition columns in a replacement | yes | yes | yes | [`IcebergCompat::check_replacement`] |
//! | allow only constants as default values | | | yes | `constraints` |
//! | assign ids to the elements of arrays and the keys and values of maps | | yes | yes | `schema::part_ids` |
//! | write these ids and the partition columns to files | only the columns | yes | yes | `TableWriteSpec` |
//! | write the ids of copied rows with the field ids of Iceberg | | | yes | `TableWriteSpec` |
//! | write timestamps as int64 | | yes | yes | all writers do |
//! | add files with `numRecords` only | yes | yes | yes | `Transaction` |
//!
//! - The rules apply if the protocol supports the feature and the property is set. Only one version may be active.
//! - The rule about type changes is from newer editions of the protocol's text and from the JVM implementation.
//! - Renaming a partition column does not count as a replacement, because files keep its physical name and its id.

use super::action::{Metadata, Protocol};
use super::features::TableFeature;
use super::row_tracking::tracks_rows;
use super::schema::{ColumnMappingMode, DataType, PrimitiveType, StructType, is_iceberg_widening};
use crate::error::{Error, Result};

const VECTORS: &str = "delta.enableDeletionVectors";
const ROW_TRACKING: &str = "delta.enableRowTracking";
const MAPPING_MODE: &str = "delta.columnMapping.mode";

/// A version of Iceberg compatibility.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcebergCompat {
    /// "Iceberg Compatibility V1"
    V1,
    /// "Iceberg Compatibility V2"
    V2,
    /// "Iceberg Compatibility V3"
    V3,
}

impl IcebergCompat {
    const ALL: [Self; 3] = [Self::V1, Self::V2, Self::V3];

    /// Returns the version of Iceberg compatibility that is active for a table, if there is one.
    ///
    /// # Errors
    /// `InvalidArgument` if several versions are active.
    pub fn of(protocol: &Protocol, metadata: &Metadata) -> Result<Option<Self>> {
        let is_active =
            |version: &Self| metadata.is_enabled(version.property()) && protocol.supports(&version.feature());
        let active: Vec<Self> = Self::ALL.into_iter().filter(is_active).collect();
        match active.as_slice() {
            [] => Ok(None),
            [version] => Ok(Some(*version)),
            [older, newer, ..] => Err(Error::invalid_argument(format!(
                "the table properties '{}' and '{}' exclude each other",
                older.property(),
                newer.property()
            ))
            .with_hint(format!("set '{}' to 'false'", older.property()))),
        }
    }

    /// Returns the first version whose feature a table supports. Such a table allows only the type changes that Iceberg
    /// allows. (PROTOCOL, "Writer Requirements for Type Widening".)
    pub(crate) fn supported_by(protocol: &Protocol) -> Option<Self> {
        Self::ALL.into_iter().find(|version| protocol.supports(&version.feature()))
    }

    /// Returns whether the properties activate a version.
    pub(crate) fn is_asked_for<'a>(property: impl Fn(&str) -> Option<&'a str>) -> bool {
        let is_on = |value: &str| value.trim().eq_ignore_ascii_case("true");
        Self::ALL.iter().any(|version| property(version.property()).is_some_and(is_on))
    }

    /// If a new table requests a version of Iceberg compatibility, returns the additional properties that the table
    /// gets unless they are set explicitly.
    pub(crate) fn implied<'a>(
        property: impl Fn(&str) -> Option<&'a str>,
    ) -> Vec<(&'static str, &'static str)> {
        let mut implied = Vec::new();
        if Self::is_asked_for(&property) {
            implied.push((MAPPING_MODE, "name"));
        }
        if property(Self::V3.property()).is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
            implied.push((ROW_TRACKING, "true"));
        }
        implied
    }

    /// Returns the table feature of this version.
    pub fn feature(self) -> TableFeature {
        match self {
            Self::V1 => TableFeature::IcebergCompatV1,
            Self::V2 => TableFeature::IcebergCompatV2,
            Self::V3 => TableFeature::IcebergCompatV3,
        }
    }

    /// Returns the table property that activates this version.
    pub fn property(self) -> &'static str {
        match self {
            Self::V1 => "delta.enableIcebergCompatV1",
            Self::V2 => "delta.enableIcebergCompatV2",
            Self::V3 => "delta.enableIcebergCompatV3",
        }
    }

    /// Returns whether the elements of arrays, and the keys and values of maps, have ids.
    pub fn identifies_parts(self) -> bool {
        self != Self::V1
    }

    /// Returns whether deletion vectors may be used to delete rows of the table.
    pub(crate) fn allows_vectors(self) -> bool {
        self == Self::V3
    }

    /// Returns whether default values must be constants.
    pub(crate) fn needs_constant_defaults(self) -> bool {
        self == Self::V3
    }

    /// Returns whether the timestamps of all files, including existing ones, must be in microseconds. This is stricter
    /// than the protocol, which only requires INT64 in new files, in milliseconds or microseconds.
    pub(crate) fn needs_micros(self) -> bool {
        self == Self::V3
    }

    /// Returns the field ids that Iceberg reserves for the columns with the ids and the commit versions of copied rows.
    pub(crate) fn row_tracking_ids(self) -> Option<[i32; 2]> {
        (self == Self::V3).then_some([2_147_483_540, 2_147_483_539])
    }

    /// Returns the tag that writers add to files, if there is one. No rule requires it. The JVM implementation uses
    /// such a tag to find out which files already comply with this version and need not be rewritten.
    pub(crate) fn tag(self) -> Option<(&'static str, &'static str)> {
        let version = match self {
            Self::V1 => return None,
            Self::V2 => "2",
            Self::V3 => "3",
        };
        Some(("ICEBERG_COMPAT_VERSION", version))
    }

    /// Refuses a table that breaks a rule of this version.
    ///
    /// # Errors
    /// `InvalidArgument`, which names the rule and the column. `CorruptLog` and `Unsupported` if the column mapping or
    /// the type changes are not in the protocol's form.
    pub fn check(self, protocol: &Protocol, metadata: &Metadata, schema: &StructType) -> Result<()> {
        if ColumnMappingMode::of(protocol, metadata)? == ColumnMappingMode::None {
            return Err(self
                .refusal("the columns of the table are not mapped")
                .with_hint(format!("set the table property '{MAPPING_MODE}' to 'name'")));
        }
        if self == Self::V3 && !tracks_rows(protocol, metadata) {
            return Err(self
                .refusal("the rows of the table have no ids")
                .with_hint(format!("set the table property '{ROW_TRACKING}' to 'true'")));
        }
        let has_vectors = !self.allows_vectors() && protocol.supports(&TableFeature::DeletionVectors);
        if self == Self::V1 && has_vectors {
            return Err(self.refusal("the table supports the feature 'deletionVectors'").with_hint(format!(
                "drop the feature, or set '{}' instead, which only needs deletion vectors to be off",
                Self::V2.property()
            )));
        }
        if has_vectors && metadata.is_enabled(VECTORS) {
            return Err(self
                .refusal(&format!("deletion vectors are on ('{VECTORS}')"))
                .with_hint(format!("set the table property '{VECTORS}' to 'false'")));
        }
        if let Some((column, data_type)) = self.excluded_in(schema, "") {
            return Err(self
                .refusal(&format!("the column '{column}' has the type {data_type}"))
                .with_hint("leave the column out, or choose another type"));
        }
        self.check_type_changes(schema)
    }

    /// Refuses type changes that Iceberg does not allow.
    fn check_type_changes(self, schema: &StructType) -> Result<()> {
        let mut outcome = Ok(());
        schema.any_field(&mut |field| {
            outcome = field.type_changes().and_then(|changes| {
                match changes.iter().find(|change| !is_iceberg_widening(change.from, change.to)) {
                    None => Ok(()),
                    Some(change) => Err(self
                        .refusal(&format!(
                            "the type of the column '{}' was changed from {} to {}, which Iceberg does not allow",
                            field.name, change.from, change.to
                        ))
                        .with_hint("overwrite the schema together with all rows first")),
                }
            });
            outcome.is_err()
        });
        outcome
    }

    /// Refuses a replacement of a table that changes its partition columns. A table without partition columns may get
    /// some.
    ///
    /// # Errors
    /// `InvalidArgument` if the partition columns change.
    pub fn check_replacement(self, old: &Metadata, new: &Metadata) -> Result<()> {
        if old.partition_columns.is_empty() || old.partition_columns == new.partition_columns {
            return Ok(());
        }
        let list = |columns: &[String]| match columns.is_empty() {
            true => "no column".to_owned(),
            false => columns.join(", "),
        };
        Err(self
            .refusal(&format!(
                "a table that is partitioned by {} cannot be replaced by one that is partitioned by {}",
                list(&old.partition_columns),
                list(&new.partition_columns)
            ))
            .with_hint("keep the partition columns, or write to a new table"))
    }

    /// Returns the error for a table that breaks a rule. `what` says how.
    pub(crate) fn refusal(self, what: &str) -> Error {
        Error::invalid_argument(format!(
            "{what}, which the table property '{}' = 'true' does not allow",
            self.property()
        ))
    }

    /// Returns the path of the first column whose type is not allowed in tables of this version.
    fn excluded_in(self, fields: &StructType, parent: &str) -> Option<(String, &'static str)> {
        fields
            .fields()
            .iter()
            .find_map(|field| self.excluded(&field.data_type, format!("{parent}{}", field.name)))
    }

    fn excluded(self, data_type: &DataType, place: String) -> Option<(String, &'static str)> {
        match data_type {
            DataType::Primitive(PrimitiveType::Void) => Some((place, "void")),
            DataType::Primitive(_) => None,
            DataType::Struct(fields) => self.excluded_in(fields, &format!("{place}.")),
            DataType::Array(_) if self == Self::V1 => Some((place, "array")),
            DataType::Map(_) if self == Self::V1 => Some((place, "map")),
            DataType::Array(array) => self.excluded(&array.element_type, format!("{place}.element")),
            DataType::Map(map) => self
                .excluded(&map.key_type, format!("{place}.key"))
                .or_else(|| self.excluded(&map.value_type, format!("{place}.value"))),
            // "Block adding Map/Array/Void types": the list for V1 does not contain variants. The list for V3 allows
            // them.
            DataType::Variant => (self == Self::V2).then_some((place, "variant")),
        }
    }
}

#[cfg(test)]
mod tests;
