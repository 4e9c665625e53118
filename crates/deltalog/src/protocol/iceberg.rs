//! Tables that can be converted to the Apache Iceberg format. (PROTOCOL, "Iceberg Compatibility V1", "Iceberg
//! Compatibility V2".)
//!
//! | writers must | V1 | V2 | where |
//! | --- | --- | --- | --- |
//! | map the columns | yes | yes | [`IcebergCompat::check`] |
//! | have no deletion vectors | not even the feature | not the property | [`IcebergCompat::check`] |
//! | keep to some types | no arrays, maps, void | no variants, void | [`IcebergCompat::check`] |
//! | widen types as Iceberg does | yes | yes | [`IcebergCompat::check`] |
//! | keep the names of partition columns in a replacement | yes | yes | [`IcebergCompat::check_replacement`] |
//! | give ids to parts of arrays and maps | | yes | `schema::part_ids` |
//! | write these ids and the partition columns to files | no ids | yes | `TableWriteSpec` |
//! | write timestamps as int64 | | yes | all writers do |
//! | add files with `numRecords` only | yes | yes | `Transaction` |
//!
//! - The rules count if the protocol supports the feature and the property is set. Only one version can be in force.
//! - The rule on type changes is that of newer editions of the protocol's text, and of the JVM implementation.
//! - A renamed partition column is not a replacement: files keep its physical name and its id.

use super::action::{Metadata, Protocol};
use super::features::TableFeature;
use super::schema::{ColumnMappingMode, DataType, PrimitiveType, StructType, is_iceberg_widening};
use crate::{Error, Result};

const VECTORS: &str = "delta.enableDeletionVectors";

/// A version of Iceberg compatibility.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcebergCompat {
    /// "Iceberg Compatibility V1"
    V1,
    /// "Iceberg Compatibility V2"
    V2,
}

impl IcebergCompat {
    const ALL: [Self; 2] = [Self::V1, Self::V2];

    /// Returns the version whose rules count for a table, if one does.
    ///
    /// # Errors
    /// `InvalidArgument` if both are in force.
    pub fn of(protocol: &Protocol, metadata: &Metadata) -> Result<Option<Self>> {
        let is_active =
            |version: &Self| metadata.is_enabled(version.property()) && protocol.supports(&version.feature());
        let active: Vec<Self> = Self::ALL.into_iter().filter(is_active).collect();
        match active.as_slice() {
            [] => Ok(None),
            [version] => Ok(Some(*version)),
            _ => Err(Error::invalid_argument(format!(
                "the table properties '{}' and '{}' exclude each other",
                Self::V1.property(),
                Self::V2.property()
            ))
            .with_hint(format!("set '{}' to 'false'", Self::V1.property()))),
        }
    }

    /// Returns the first version whose feature a table supports. From then on types only change as in Iceberg.
    /// (PROTOCOL, "Writer Requirements for Type Widening".)
    pub(crate) fn supported_by(protocol: &Protocol) -> Option<Self> {
        Self::ALL.into_iter().find(|version| protocol.supports(&version.feature()))
    }

    /// Returns whether properties ask for a version.
    pub(crate) fn is_asked_for<'a>(property: impl Fn(&str) -> Option<&'a str>) -> bool {
        let is_on = |value: &str| value.trim().eq_ignore_ascii_case("true");
        Self::ALL.iter().any(|version| property(version.property()).is_some_and(is_on))
    }

    /// Returns the table feature.
    pub fn feature(self) -> TableFeature {
        match self {
            Self::V1 => TableFeature::IcebergCompatV1,
            Self::V2 => TableFeature::IcebergCompatV2,
        }
    }

    /// Returns the table property that activates the feature.
    pub fn property(self) -> &'static str {
        match self {
            Self::V1 => "delta.enableIcebergCompatV1",
            Self::V2 => "delta.enableIcebergCompatV2",
        }
    }

    /// Returns whether elements of arrays, keys and values of maps have ids.
    pub fn identifies_parts(self) -> bool {
        self == Self::V2
    }

    /// Returns the tags of files that writers add. No rule asks for them: by the tag the JVM implementation knows which
    /// files need not be written again for the version.
    pub(crate) fn tag(self) -> Option<(&'static str, &'static str)> {
        (self == Self::V2).then_some(("ICEBERG_COMPAT_VERSION", "2"))
    }

    /// Refuses a table that breaks a rule of this version.
    ///
    /// # Errors
    /// `InvalidArgument` that names the rule and the column. `CorruptLog` and `Unsupported` for a mapping and for type
    /// changes that are not of the protocol's form.
    pub fn check(self, protocol: &Protocol, metadata: &Metadata, schema: &StructType) -> Result<()> {
        if ColumnMappingMode::of(protocol, metadata)? == ColumnMappingMode::None {
            return Err(self
                .refusal("the columns of the table are not mapped")
                .with_hint("set the table property 'delta.columnMapping.mode' to 'name'"));
        }
        let has_vectors = protocol.supports(&TableFeature::DeletionVectors);
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

    /// Refuses type changes that Iceberg does not have.
    fn check_type_changes(self, schema: &StructType) -> Result<()> {
        let mut outcome = Ok(());
        schema.any_field(&mut |field| {
            outcome = field.type_changes().and_then(|changes| {
                match changes.iter().find(|change| !is_iceberg_widening(change.from, change.to)) {
                    None => Ok(()),
                    Some(change) => Err(self
                        .refusal(&format!(
                            "the type of the column '{}' was changed from {} to {}, which Iceberg does not have",
                            field.name, change.from, change.to
                        ))
                        .with_hint("overwrite the schema together with all rows first")),
                }
            });
            outcome.is_err()
        });
        outcome
    }

    /// Refuses other partition columns in place of those of `old`.
    ///
    /// # Errors
    /// `InvalidArgument`.
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
                "a table that is partitioned by {} is to be replaced by one that is partitioned by {}",
                list(&old.partition_columns),
                list(&new.partition_columns)
            ))
            .with_hint("keep the partition columns, or write to a new table"))
    }

    /// Returns the error for a table that breaks a rule.
    pub(crate) fn refusal(self, what: &str) -> Error {
        Error::invalid_argument(format!(
            "{what}, which the table property '{}' = 'true' does not allow",
            self.property()
        ))
    }

    /// Returns the first column, by its path, with a type that tables of this version cannot have.
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
            // "Block adding Map/Array/Void types": the list of V1 does not name variants.
            DataType::Variant => (self == Self::V2).then_some((place, "variant")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::protocol::{ArrayType, Format, MapType, StructField};

    const MAPPED: (&str, &str) = ("delta.columnMapping.mode", "name");

    fn struct_of(fields: Vec<StructField>) -> StructType {
        StructType::try_new(fields).unwrap()
    }

    fn metadata(properties: &[(&str, &str)], partition_columns: &[&str]) -> Metadata {
        Metadata {
            id: "id".into(),
            name: None,
            description: None,
            format: Format::default(),
            schema_string: String::new(),
            partition_columns: partition_columns.iter().map(|name| (*name).to_owned()).collect(),
            created_time: None,
            configuration: properties
                .iter()
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect(),
        }
    }

    fn supporting(features: &[TableFeature]) -> Protocol {
        let old = Protocol { min_reader_version: 1, min_writer_version: 2, ..Protocol::default() };
        old.supporting(features)
    }

    fn checked(
        version: IcebergCompat,
        properties: &[(&str, &str)],
        features: &[TableFeature],
        data_type: impl Into<DataType>,
    ) -> Result<()> {
        let properties = [&[(version.property(), "true")], properties].concat();
        let features = [&[version.feature(), TableFeature::ColumnMapping], features].concat();
        let (protocol, metadata) = (supporting(&features), metadata(&properties, &[]));
        assert_eq!(IcebergCompat::of(&protocol, &metadata).unwrap(), Some(version));
        version.check(&protocol, &metadata, &struct_of(vec![StructField::new("c", data_type, true)]))
    }

    fn refused(checked: Result<()>) -> String {
        let error = checked.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        error.to_string()
    }

    #[test]
    fn a_version_counts_if_it_is_supported_and_enabled() {
        let [v1, v2] = IcebergCompat::ALL.map(|version| (version.property(), "true"));
        let both = supporting(&[TableFeature::IcebergCompatV1, TableFeature::IcebergCompatV2]);
        let only_v2 = supporting(&[TableFeature::IcebergCompatV2]);
        for (protocol, properties, expected) in [
            (&both, [].as_slice(), None),
            (&both, &[v1], Some(IcebergCompat::V1)),
            (&both, &[v2], Some(IcebergCompat::V2)),
            (&both, &[(v1.0, "false"), v2], Some(IcebergCompat::V2)),
            (&only_v2, &[v1], None),
            // "which means either the `icebergCompatV1` table feature is not present … or the table property …"
            (&only_v2, &[v1, v2], Some(IcebergCompat::V2)),
        ] {
            assert_eq!(
                IcebergCompat::of(protocol, &metadata(properties, &[])).unwrap(),
                expected,
                "{properties:?}"
            );
        }
        let error = IcebergCompat::of(&both, &metadata(&[v1, v2], &[])).unwrap_err();
        assert!(error.to_string().contains("exclude each other"), "{error}");
    }

    /// "Require that Column Mapping be enabled and set to either `name` or `id` mode"
    #[test]
    fn columns_must_be_mapped() {
        for version in IcebergCompat::ALL {
            for mode in ["name", "id"] {
                checked(version, &[(MAPPED.0, mode)], &[], PrimitiveType::Long).unwrap();
            }
            for properties in [[].as_slice(), &[(MAPPED.0, "none")]] {
                let message = refused(checked(version, properties, &[], PrimitiveType::Long));
                assert!(message.contains("not mapped") && message.contains(version.property()), "{message}");
            }
        }
    }

    /// V1: "Require that Deletion Vectors are not supported"; V2: "not active".
    #[test]
    fn deletion_vectors_must_be_off() {
        let feature = &[TableFeature::DeletionVectors];
        let on = &[MAPPED, (VECTORS, "true")];
        let off = &[MAPPED, (VECTORS, "false")];
        for (version, properties, features, is_allowed) in [
            (IcebergCompat::V1, on, [].as_slice(), true),
            (IcebergCompat::V1, off, feature, false),
            (IcebergCompat::V1, on, feature, false),
            (IcebergCompat::V2, on, &[], true),
            (IcebergCompat::V2, off, feature, true),
            (IcebergCompat::V2, on, feature, false),
        ] {
            let outcome = checked(version, properties, features, PrimitiveType::Long);
            assert_eq!(outcome.is_ok(), is_allowed, "{version:?} {properties:?} {features:?}");
        }
    }

    /// V1: "Block adding `Map`/`Array`/`Void` types"; V2: the allow-list.
    #[test]
    fn types_are_those_of_the_version() {
        let within = |data_type: DataType| struct_of(vec![StructField::new("s", data_type, true)]);
        let long = || DataType::from(PrimitiveType::Long);
        let void = || DataType::from(PrimitiveType::Void);
        let array = |element: DataType| DataType::from(ArrayType::new(element, true));
        for (data_type, v1, v2) in [
            (long(), None, None),
            (within(long()).into(), None, None),
            (array(long()), Some("'c' has the type array"), None),
            (within(array(long())).into(), Some("'c.s' has the type array"), None),
            (MapType::new(long(), array(long()), true).into(), Some("'c' has the type map"), None),
            (void(), Some("'c' has the type void"), Some("'c' has the type void")),
            (array(void()), Some("array"), Some("'c.element' has the type void")),
            (
                MapType::new(long(), within(void()), true).into(),
                Some("map"),
                Some("'c.value.s' has the type void"),
            ),
            (DataType::Variant, None, Some("'c' has the type variant")),
        ] {
            for (version, expected) in [(IcebergCompat::V1, v1), (IcebergCompat::V2, v2)] {
                let outcome = checked(version, &[MAPPED], &[], data_type.clone());
                match expected {
                    None => outcome.unwrap(),
                    Some(expected) => {
                        let message = refused(outcome);
                        assert!(message.contains(expected), "{message}");
                    }
                }
            }
        }
    }

    /// "require that all type changes applied on the table are supported by Iceberg V2"
    #[test]
    fn type_changes_are_those_of_iceberg() {
        use PrimitiveType as P;
        let decimal = |precision, scale| P::decimal(precision, scale).unwrap();
        for (from, to, is_allowed) in [
            (P::Byte, P::Long, true),
            (P::Integer, P::Long, true),
            (P::Float, P::Double, true),
            (decimal(6, 2), decimal(10, 2), true),
            (decimal(6, 2), decimal(10, 4), false),
            (P::Integer, P::Double, false),
            (P::Date, P::TimestampNtz, false),
            (P::Long, decimal(20, 0), false),
        ] {
            for version in IcebergCompat::ALL {
                let field = StructField::new("n", to, true).with_type_change(from, to, &[]);
                let outcome = checked(version, &[MAPPED], &[], struct_of(vec![field]));
                assert_eq!(outcome.is_ok(), is_allowed, "{from} to {to}");
                if let Err(error) = outcome {
                    assert!(
                        error.to_string().contains(&format!("'n' was changed from {from} to {to}")),
                        "{error}"
                    );
                }
            }
        }
    }

    /// "Block replacing partitioned tables with a differently-named partition spec"
    #[test]
    fn partition_columns_keep_their_names() {
        for (old, new, is_allowed) in [
            ([].as_slice(), ["a"].as_slice(), true),
            (&["a"], &["a"], true),
            (&["a"], &["b"], false),
            (&["a"], &[], false),
            (&["a", "b"], &["b", "a"], false),
        ] {
            let outcome = IcebergCompat::V2.check_replacement(&metadata(&[], old), &metadata(&[], new));
            assert_eq!(outcome.is_ok(), is_allowed, "{old:?} {new:?}");
        }
    }
}
