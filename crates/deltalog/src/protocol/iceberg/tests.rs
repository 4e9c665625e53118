//! Tests of the rules that each version has for tables. (PROTOCOL, "Iceberg Compatibility V1", "… V2", "… V3".)

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
        configuration: properties.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
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
    let properties = [&[(version.property(), "true")], tracking(version).1, properties].concat();
    let features =
        [&[version.feature(), TableFeature::ColumnMapping], tracking(version).0, features].concat();
    let (protocol, metadata) = (supporting(&features), metadata(&properties, &[]));
    assert_eq!(IcebergCompat::of(&protocol, &metadata).unwrap(), Some(version));
    version.check(&protocol, &metadata, &struct_of(vec![StructField::new("c", data_type, true)]))
}

/// Returns the features and properties that a table of this version needs besides column mapping.
fn tracking(version: IcebergCompat) -> (&'static [TableFeature], &'static [(&'static str, &'static str)]) {
    match version {
        IcebergCompat::V1 | IcebergCompat::V2 => (&[], &[]),
        IcebergCompat::V3 => (&[TableFeature::RowTracking], &[(ROW_TRACKING, "true")]),
    }
}

fn refused(checked: Result<()>) -> String {
    let error = checked.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    error.to_string()
}

#[test]
fn a_version_is_active_if_it_is_supported_and_enabled() {
    let [v1, v2, v3] = IcebergCompat::ALL.map(|version| (version.property(), "true"));
    let both = supporting(&IcebergCompat::ALL.map(IcebergCompat::feature));
    let only_v2 = supporting(&[TableFeature::IcebergCompatV2]);
    for (protocol, properties, expected) in [
        (&both, [].as_slice(), None),
        (&both, &[v1], Some(IcebergCompat::V1)),
        (&both, &[v2], Some(IcebergCompat::V2)),
        (&both, &[v3], Some(IcebergCompat::V3)),
        (&only_v2, &[v2, v3], Some(IcebergCompat::V2)),
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
    for [older, newer] in [[v1, v2], [v1, v3], [v2, v3]] {
        let error = IcebergCompat::of(&both, &metadata(&[older, newer], &[])).unwrap_err();
        let expected = format!("'{}' and '{}' exclude each other", older.0, newer.0);
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

/// "Require that Row Tracking to be enabled on the table"
#[test]
fn version_3_requires_row_tracking() {
    let mapped = [(IcebergCompat::V3.property(), "true"), MAPPED];
    let check = |features: &[TableFeature], properties: &[(&str, &str)]| {
        let features = [features, &[TableFeature::IcebergCompatV3, TableFeature::ColumnMapping]].concat();
        let metadata = metadata(&[&mapped, properties].concat(), &[]);
        let schema = struct_of(vec![StructField::new("c", PrimitiveType::Long, true)]);
        IcebergCompat::V3.check(&supporting(&features), &metadata, &schema)
    };
    let tracking = &[TableFeature::RowTracking];
    check(tracking, &[(ROW_TRACKING, "true")]).unwrap();
    for (features, properties) in [
        (tracking.as_slice(), [].as_slice()),
        (tracking, &[(ROW_TRACKING, "false")]),
        (&[], &[(ROW_TRACKING, "true")]),
    ] {
        let message = refused(check(features, properties));
        assert!(message.contains("the rows of the table have no ids"), "{message}");
    }
}

#[test]
fn a_new_table_gets_the_properties_that_its_version_needs() {
    let implied = |asked: &[(&str, &str)]| {
        IcebergCompat::implied(|name| asked.iter().find(|(key, _)| *key == name).map(|(_, value)| *value))
    };
    let [v1, v2, v3] = IcebergCompat::ALL.map(|version| (version.property(), "TRUE"));
    assert_eq!(implied(&[]), []);
    assert_eq!(implied(&[(v3.0, "false")]), []);
    assert_eq!(implied(&[v1]), [MAPPED]);
    assert_eq!(implied(&[v2]), [MAPPED]);
    assert_eq!(implied(&[v3]), [MAPPED, (ROW_TRACKING, "true")]);
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

/// V1: "Require that Deletion Vectors are not supported"; V2: "not active"; V3: "does _NOT_ forbid".
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
        (IcebergCompat::V3, on, feature, true),
        (IcebergCompat::V3, off, feature, true),
    ] {
        let outcome = checked(version, properties, features, PrimitiveType::Long);
        assert_eq!(outcome.is_ok(), is_allowed, "{version:?} {properties:?} {features:?}");
    }
}

/// V1: "Block adding `Map`/`Array`/`Void` types"; V2 and V3: the allow-lists, which differ in variants.
#[test]
fn types_that_the_version_does_not_allow_are_refused() {
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
        let v3 = v2.filter(|_| data_type != DataType::Variant);
        for (version, expected) in IcebergCompat::ALL.into_iter().zip([v1, v2, v3]) {
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
fn only_type_changes_that_iceberg_allows_are_accepted() {
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
