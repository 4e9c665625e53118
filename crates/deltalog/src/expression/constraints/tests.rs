//! Tests of PROTOCOL, "CHECK Constraints", "Column Invariants" and "Generated Columns".

use super::{Check, Constraints, Generated};
use crate::protocol::{Metadata, Protocol, StructType};
use arrow::array::*;
use arrow::datatypes::Int32Type;
use std::collections::BTreeMap;
use std::sync::Arc;

fn schema(json: &str) -> StructType {
    StructType::from_json(&format!(r#"{{"type":"struct","fields":[{json}]}}"#)).unwrap()
}

fn field(name: &str, kind: &str, metadata: &str) -> String {
    format!(r#"{{"name":"{name}","type":"{kind}","nullable":true,"metadata":{metadata}}}"#)
}

/// Returns the constraints of a table whose protocol supports constraints, invariants and generated columns.
fn constraints(properties: &BTreeMap<String, String>, schema: &StructType) -> crate::Result<Constraints> {
    of_version(4, properties, schema)
}

fn of_version(
    version: i32,
    properties: &BTreeMap<String, String>,
    schema: &StructType,
) -> crate::Result<Constraints> {
    let protocol = Protocol { min_reader_version: 1, min_writer_version: version, ..Protocol::default() };
    let metadata: Metadata = serde_json::from_value(serde_json::json!({
        "id": "t",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": "",
        "partitionColumns": [],
        "configuration": properties,
    }))
    .unwrap();
    Constraints::of(&protocol, &metadata, schema, "UTC")
}

fn people() -> StructType {
    schema(
        &[field("birthDate", "date", "{}"), field("n", "integer", "{}"), field("year", "integer", "{}")]
            .join(","),
    )
}

fn rows(births: &[Option<i32>], numbers: &[Option<i32>], years: &[Option<i32>]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("birthDate", Arc::new(Date32Array::from(births.to_vec())) as ArrayRef, true),
        ("n", Arc::new(Int32Array::from(numbers.to_vec())) as ArrayRef, true),
        ("year", Arc::new(Int32Array::from(years.to_vec())) as ArrayRef, true),
    ])
    .unwrap()
}

#[test]
fn a_check_must_be_true_for_each_row() {
    let check = Check::bind("birthDateCheck", "birthDate > '1900-01-01'", &people(), "UTC").unwrap();
    let fine = rows(&[Some(0), Some(-25_000)], &[None, None], &[None, None]);
    assert_eq!(check.violation(&fine).unwrap(), None);
    let bad = rows(&[Some(0), Some(-30_000)], &[None, None], &[None, None]);
    let violation = check.violation(&bad).unwrap().unwrap();
    assert_eq!(violation.row, 1);
    assert_eq!(
        violation.to_string(),
        "row 1 violates the constraint 'birthDateCheck' (birthDate > '1900-01-01'): birthDate = 1887-11-12"
    );
    // NULL is not true.
    let null = rows(&[None], &[None], &[None]);
    assert_eq!(check.violation(&null).unwrap().unwrap().values[0].1, "NULL");
    assert_eq!(check.violation(&rows(&[], &[], &[])).unwrap(), None);
}

#[test]
fn a_row_for_which_a_check_has_no_value_is_an_error() {
    let check = Check::bind("c", "n + 1 > 0", &people(), "UTC").unwrap();
    let error = check.violation(&rows(&[None], &[Some(i32::MAX)], &[None])).unwrap_err().to_string();
    assert!(error.contains("(n + 1) has no value for 2147483647, 1"), "{error}");
    let guarded = Check::bind("c", "n = 2147483647 OR n + 1 > 0", &people(), "UTC").unwrap();
    assert_eq!(guarded.violation(&rows(&[None], &[Some(i32::MAX)], &[None])).unwrap(), None);
}

#[test]
fn conditions_that_cannot_be_evaluated_are_refused() {
    for (sql, part) in [
        ("n", "not boolean"),
        ("x > 1", "there is no column x"),
        ("soundex(n) = 'a'", "soundex"),
        ("upper(n) = 'a'", "upper(n) is not supported for values of type INT"),
        ("n > current_date()", "current_date"),
        ("n >", "cannot be parsed"),
    ] {
        let error = Check::bind("c", sql, &people(), "UTC").unwrap_err();
        assert!(error.to_string().contains(part), "{sql}: {error}");
        assert!(error.to_string().contains("'c'"), "{sql}: {error:?}");
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{sql}: {error:?}");
    }
}

#[test]
fn a_generated_column_is_filled_and_verified() {
    let generated = Generated::bind("year", "year(birthDate)", &people(), "UTC").unwrap();
    let batch = rows(&[Some(0), None], &[None, None], &[Some(1970), None]);
    let filled = generated.fill(&batch).unwrap();
    assert_eq!(filled.as_primitive::<Int32Type>().iter().collect::<Vec<_>>(), [Some(1970), None]);
    assert_eq!(generated.verify(&batch).unwrap(), None);
    for year in [Some(1971), None] {
        let violation = generated.verify(&rows(&[Some(0)], &[None], &[year])).unwrap().unwrap();
        assert!(violation.to_string().contains("birthDate = 1970-01-01"), "{violation}");
    }
    assert!(generated.verify(&rows(&[None], &[None], &[Some(1)])).unwrap().is_some());
    // The value is cast to the column's type, and must fit it.
    let wide = Generated::bind("n", "unix_seconds(TIMESTAMP '2100-01-01 00:00:00') + year", &people(), "UTC");
    assert!(wide.unwrap().fill(&rows(&[None], &[None], &[Some(0)])).is_err());
    assert!(Generated::bind("n", "n + 1", &people(), "UTC").unwrap_err().to_string().contains("itself"));
    assert!(Generated::bind("x", "n + 1", &people(), "UTC").is_err());
}

#[test]
fn all_expressions_of_a_table_are_found() {
    let invariant = r#"{"delta.invariants":"{\"expression\": { \"expression\": \"x > 3\"} }"}"#;
    let inner = format!(
        r#"{{"name":"s","type":{{"type":"struct","fields":[{}]}},"nullable":true,"metadata":{{}}}}"#,
        field("y", "integer", r#"{"delta.invariants":"{\"expression\":{\"expression\":\"s.y <> x\"}}"}"#)
    );
    let generated = field("g", "long", r#"{"delta.generationExpression":"x * 2"}"#);
    let schema = schema(&[field("x", "integer", invariant), inner, generated].join(","));
    let properties = BTreeMap::from([
        ("delta.constraints.small".to_owned(), "x < 100".to_owned()),
        ("delta.appendOnly".to_owned(), "true".to_owned()),
    ]);
    let found = constraints(&properties, &schema).unwrap();
    assert_eq!(found.checks.iter().map(Check::name).collect::<Vec<_>>(), ["small", "x", "s.y"]);
    assert_eq!(found.generated[0].column(), "g");
    let batch = |x: i32, y: i32, g: i64| {
        let y = Arc::new(Int32Array::from(vec![y])) as ArrayRef;
        let s = StructArray::try_from(vec![("y", y)]).unwrap();
        RecordBatch::try_from_iter([
            ("x", Arc::new(Int32Array::from(vec![x])) as ArrayRef),
            ("s", Arc::new(s) as ArrayRef),
            ("g", Arc::new(Int64Array::from(vec![g])) as ArrayRef),
        ])
        .unwrap()
    };
    assert_eq!(found.violation(&batch(4, 5, 8)).unwrap(), None);
    for (x, y, g, rule) in [(3, 5, 6, "'x'"), (100, 5, 200, "'small'"), (4, 4, 8, "'s.y'"), (4, 5, 9, "'g'")]
    {
        let violation = found.violation(&batch(x, y, g)).unwrap().unwrap();
        assert!(violation.rule.contains(rule), "{violation}");
    }
    let none = constraints(&BTreeMap::new(), &people()).unwrap();
    assert!(none.checks.is_empty() && none.generated.is_empty());
    // Rules are ignored if the protocol does not support their feature.
    for (version, names) in [(1, vec![]), (2, vec!["x", "s.y"]), (3, vec!["small", "x", "s.y"])] {
        let found = of_version(version, &properties, &schema).unwrap();
        let checks = found.checks.iter().map(Check::name);
        let found: Vec<_> = checks.chain(found.generated.iter().map(Generated::column)).collect();
        assert_eq!(found, names, "{version}");
    }
}

#[test]
fn metadata_with_an_invalid_form_is_corrupt() {
    for metadata in [
        r#"{"delta.invariants":"x > 3"}"#,
        r#"{"delta.invariants":7}"#,
        r#"{"delta.generationExpression":7}"#,
    ] {
        let schema = schema(&field("x", "integer", metadata));
        let error = constraints(&BTreeMap::new(), &schema).unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::CorruptLog, "{metadata}");
    }
}

/// Tests of PROTOCOL, "Default Columns", and of the lengths of `char` and `varchar`.
mod filling {
    use super::*;
    use crate::expression::constraints::RowRules;
    use arrow::datatypes::{DataType as ArrowType, Field, Schema};

    fn rules(fields: &[String]) -> crate::Result<(StructType, RowRules)> {
        let protocol: Protocol = serde_json::from_value(serde_json::json!({
            "minReaderVersion": 1, "minWriterVersion": 7,
            "writerFeatures": ["allowColumnDefaults", "generatedColumns"],
        }))
        .unwrap();
        let metadata: Metadata = serde_json::from_value(serde_json::json!({
            "id": "t", "format": {"provider": "parquet", "options": {}}, "schemaString": "",
            "partitionColumns": [], "configuration": {},
        }))
        .unwrap();
        let schema = schema(&fields.join(","));
        let rules = RowRules::of(&protocol, &metadata, &schema)?;
        Ok((schema, rules))
    }

    fn filled(fields: &[String], given: &[(&str, ArrayRef)]) -> crate::Result<RecordBatch> {
        let (schema, rules) = rules(fields)?;
        let constraints = rules.bind(&schema, "UTC")?;
        let table = Arc::new(schema.to_arrow()?);
        let given = RecordBatch::try_from_iter_with_nullable(
            given.iter().map(|(name, array)| (*name, Arc::clone(array), true)),
        )
        .unwrap();
        let before = constraints.schema_before_filling(&table, given.schema_ref());
        let fitted = crate::write::fit(&given, &before)?;
        let filled = constraints.fill(fitted, &table, given.schema_ref())?;
        constraints.generate(filled, &table, given.schema_ref())
    }

    fn required(name: &str, kind: &str, metadata: &str) -> String {
        field(name, kind, metadata).replace(r#""nullable":true"#, r#""nullable":false"#)
    }

    fn strings(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    #[test]
    fn a_missing_column_gets_its_default_value_and_a_given_null_is_kept() {
        let fields = [
            field("a", "integer", r#"{"CURRENT_DEFAULT":"40 + 2"}"#),
            required("b", "string", r#"{"CURRENT_DEFAULT":"'x'"}"#),
            field("c", "decimal(5,2)", r#"{"CURRENT_DEFAULT":"1"}"#),
            field("d", "string", "{}"),
            required("e", "long", r#"{"delta.generationExpression":"a * 10"}"#),
        ];
        let batch = filled(&fields, &[("D", strings(&[Some("u"), None]))]).unwrap();
        let text = |name: &str| {
            let column = batch.column_by_name(name).unwrap();
            (0..2)
                .map(|row| arrow::util::display::array_value_to_string(column, row).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            (text("a"), text("b"), text("c")),
            (vec!["42".to_owned(); 2], vec!["x".to_owned(); 2], vec!["1.00".to_owned(); 2])
        );
        // Generated columns read the default values of other columns.
        assert_eq!(text("e"), ["420", "420"]);
        let nulls: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(1)]));
        let fields = [fields[0].clone(), fields[1].clone()];
        let batch = filled(&fields, &[("A", nulls)]).unwrap();
        assert!(batch.column(0).is_null(0));
        let error = filled(&fields, &[("b", strings(&[None]))]).unwrap_err().to_string();
        assert!(error.contains("NOT NULL"), "{error}");
    }

    #[test]
    fn a_default_value_is_evaluated_only_if_it_is_needed() {
        let fields =
            [field("a", "date", r#"{"CURRENT_DEFAULT":"next_day(a, 'MON')"}"#), field("b", "string", "{}")];
        let days: ArrayRef = Arc::new(Date32Array::from(vec![7]));
        assert!(filled(&fields, &[("a", days)]).is_ok());
        let error = filled(&fields, &[("b", strings(&[None]))]).unwrap_err();
        assert!(error.to_string().contains("'a'") && error.to_string().contains("next_day"), "{error}");
        assert!(error.hint().unwrap().contains("Spark"));
        let wide = [field("a", "byte", r#"{"CURRENT_DEFAULT":"300"}"#), field("b", "string", "{}")];
        assert!(filled(&wide, &[("b", strings(&[None]))]).is_err());
        let null = [required("a", "byte", r#"{"CURRENT_DEFAULT":"NULL"}"#), field("b", "string", "{}")];
        let error = filled(&null, &[("b", strings(&[None]))]).unwrap_err().to_string();
        assert!(error.contains("'a' is NOT NULL"), "{error}");
    }

    #[test]
    fn strings_are_padded_or_refused_as_in_spark() {
        let of = |kind: &str| field("v", "string", &format!(r#"{{"__CHAR_VARCHAR_TYPE_STRING":"{kind}"}}"#));
        let apply = |kind: &str, value: &str| {
            let batch = filled(&[of(kind)], &[("v", strings(&[Some(value), None]))])?;
            assert!(batch.column(0).is_null(1));
            Ok::<_, crate::Error>(batch.column(0).as_string::<i32>().value(0).to_owned())
        };
        for (kind, value, expected) in [
            ("varchar(3)", "ab", "ab"),
            ("varchar(3)", "äöü", "äöü"),
            ("varchar(3)", "abc   ", "abc"),
            ("varchar(3)", "a  ", "a  "),
            ("char(3)", "a", "a  "),
            ("char(3)", "äöü  ", "äöü"),
            ("char(3)", "", "   "),
        ] {
            assert_eq!(apply(kind, value).unwrap(), expected, "{kind} {value:?}");
        }
        for (kind, value) in [("varchar(3)", "abcd"), ("char(3)", "ab d"), ("varchar(3)", "abc\t")] {
            let error = apply(kind, value).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::SchemaMismatch);
            assert!(error.to_string().contains("'v'") && error.to_string().contains(kind), "{error}");
        }
        for corrupt in ["array<char(2)>", "char(x)", "char"] {
            assert_eq!(rules(&[of(corrupt)]).unwrap_err().kind(), crate::ErrorKind::CorruptLog, "{corrupt}");
        }
    }

    #[test]
    fn filled_rows_have_the_schema_of_the_table() {
        let (schema, rules) = rules(&[required("a", "integer", r#"{"CURRENT_DEFAULT":"1"}"#)]).unwrap();
        let table = Arc::new(schema.to_arrow().unwrap());
        let constraints = rules.bind(&schema, "UTC").unwrap();
        let given = Schema::new(vec![Field::new("A", ArrowType::Int32, true)]);
        assert_eq!(constraints.schema_before_filling(&table, &given), table);
        assert!(constraints.schema_before_filling(&table, &Schema::empty()).field(0).is_nullable());
    }
}
