//! Properties of computed values: overflow and NULL, lazy evaluation, and helpful errors.

use crate::expression::predicate::{Expression, ParseMode, filter_mask, parse};
use arrow::array::*;
use arrow::datatypes::{DataType, Decimal128Type, Field, Int32Type, Int64Type};
use arrow::util::display::array_value_to_string;
use proptest::prelude::*;
use std::sync::Arc;

fn numbers(a: &[Option<i64>], b: &[Option<i64>]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("a", Arc::new(Int64Array::from(a.to_vec())) as ArrayRef, true),
        ("b", Arc::new(Int64Array::from(b.to_vec())) as ArrayRef, true),
    ])
    .unwrap()
}

fn evaluate(sql: &str, batch: &RecordBatch) -> crate::Result<ArrayRef> {
    Expression::bind(sql, &batch.schema(), "UTC")?.evaluate(batch)
}

fn small_or_extreme() -> impl Strategy<Value = i64> {
    prop_oneof![-3i64..4, any::<i64>(), Just(i64::MIN), Just(i64::MAX), any::<i32>().prop_map(i64::from)]
}

fn maybe() -> impl Strategy<Value = Option<i64>> {
    prop::option::weighted(0.8, small_or_extreme())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whole_numbers_overflow_exactly_where_they_must(a in maybe(), b in maybe()) {
        let batch = numbers(&[a], &[b]);
        let both = a.zip(b).map(|(a, b)| (i128::from(a), i128::from(b)));
        let exact = |of: fn(i128, i128) -> Option<i128>| match both {
            None => Ok(None),
            Some((a, b)) => of(a, b).and_then(|v| i64::try_from(v).ok()).map(Some).ok_or(()),
        };
        for (sql, expected) in [
            ("a + b", exact(|a, b| Some(a + b))),
            ("a - b", exact(|a, b| Some(a - b))),
            ("a * b", exact(|a, b| Some(a * b))),
            ("a DIV b", exact(i128::checked_div)),
            ("a % b", exact(i128::checked_rem)),
            ("a & b", exact(|a, b| Some(a & b))),
        ] {
            match (evaluate(sql, &batch), expected) {
                (Ok(found), Ok(expected)) => {
                    let found = found.as_primitive::<Int64Type>();
                    prop_assert_eq!(found.is_valid(0).then(|| found.value(0)), expected, "{}", sql);
                }
                (Err(error), Err(())) => prop_assert!(error.to_string().contains("has no value for"), "{}", error),
                (found, expected) => prop_assert!(false, "{sql}: {found:?}, not {expected:?}"),
            }
        }
        // The narrow type overflows in cases in which the wide type does not.
        let narrow = a.filter(|a| i32::try_from(*a).is_err()).is_some();
        prop_assert_eq!(evaluate("CAST(a AS INT)", &batch).is_err(), narrow);
        let tried = evaluate("TRY_CAST(a AS INT)", &batch).unwrap();
        let tried = tried.as_primitive::<Int32Type>();
        prop_assert_eq!(tried.is_valid(0).then(|| i64::from(tried.value(0))), a.filter(|_| !narrow));
    }

    #[test]
    fn decimals_are_exact(a in any::<i32>(), b in any::<i32>(), s in 0i8..10, t in 0i8..10) {
        let decimal = |v: i32, scale| {
            let array = Decimal128Array::from(vec![i128::from(v)]).with_precision_and_scale(19, scale).unwrap();
            Arc::new(array) as ArrayRef
        };
        let batch = RecordBatch::try_from_iter([("a", decimal(a, s)), ("b", decimal(b, t))]).unwrap();
        let value = |sql: &str| {
            let array = evaluate(sql, &batch).unwrap();
            let DataType::Decimal128(_, scale) = array.data_type() else { unreachable!() };
            (array.as_primitive::<Decimal128Type>().value(0), *scale)
        };
        let (s, t) = (u32::from(s.unsigned_abs()), u32::from(t.unsigned_abs()));
        let finest = s.max(t);
        let (x, y) = (i128::from(a) * 10i128.pow(finest - s), i128::from(b) * 10i128.pow(finest - t));
        prop_assert_eq!(value("a + b"), (x + y, finest as i8));
        prop_assert_eq!(value("a - b"), (x - y, finest as i8));
        let (product, scale) = value("a * b");
        // A result with 39 digits has one digit too many, so a digit after the point may be lost.
        let lost = s + t - u32::from(scale.unsigned_abs());
        let error = product * 10i128.pow(lost) - i128::from(a) * i128::from(b);
        prop_assert!(lost <= 1 && 2 * error.abs() <= 10i128.pow(lost) * i128::from(lost > 0));
        if b != 0 {
            let (quotient, scale) = value("a / b");
            // |quotient - x / y| is at most half of the last digit.
            let error = quotient * y - x * 10i128.pow(u32::from(scale.unsigned_abs()));
            prop_assert!(2 * error.abs() <= y.abs(), "{} / {} is not {}e-{}", x, y, quotient, scale);
        } else {
            prop_assert!(evaluate("a / b", &batch).is_err());
        }
    }

    #[test]
    fn conditions_and_their_values_agree(a in prop::collection::vec(maybe(), 1..5), b in maybe()) {
        let batch = numbers(&a, &vec![b; a.len()]);
        for sql in [
            "pmod(a, 7) > 3 OR b IS NULL",
            "a IS NOT DISTINCT FROM b AND coalesce(a, b, 1) >= 0",
            "CASE WHEN a > b THEN a % 2 = 0 WHEN a = b THEN NULL ELSE b > 0 END",
            "NOT (greatest(a, b) IN (0, 1, NULL))",
        ] {
            let condition = parse(sql, "UTC", ParseMode::Strict).unwrap().bind(&batch.schema()).unwrap();
            let value = evaluate(sql, &batch).unwrap();
            prop_assert_eq!(&filter_mask(&condition, &batch).unwrap(), value.as_boolean(), "{}", sql);
        }
    }
}

#[test]
fn a_function_of_null_is_null() {
    let null = RecordBatch::try_from_iter_with_nullable([
        ("i", Arc::new(Int32Array::new_null(2)) as ArrayRef, true),
        ("g", Arc::new(Float64Array::new_null(2)) as ArrayRef, true),
        ("s", Arc::new(StringArray::new_null(2)) as ArrayRef, true),
        ("a", Arc::new(Date32Array::new_null(2)) as ArrayRef, true),
        ("k", Arc::new(TimestampMicrosecondArray::new_null(2)) as ArrayRef, true),
    ])
    .unwrap();
    for sql in [
        "i + 1",
        "1 / i",
        "i DIV 0",
        "i % 0",
        "-i",
        "~i",
        "abs(i)",
        "round(g, 2)",
        "floor(g)",
        "s || 'x'",
        "upper(s)",
        "length(s)",
        "substring(s, 2)",
        "replace(s, 'a', 'b')",
        "instr(s, 'a')",
        "lpad(s, 3, 'x')",
        "contains(s, 'a')",
        "month(a)",
        "hour(k)",
        "date_format(k, 'yyyy')",
        "datediff(a, DATE '2024-01-01')",
        "date_add(a, i)",
        "make_date(i, 1, 1)",
        "unix_micros(CAST(k AS TIMESTAMP))",
        "timestamp_seconds(i)",
        "CAST(s AS INT)",
        "CAST(i AS DECIMAL(5,2))",
        "coalesce(i, NULL)",
        "greatest(i, NULL)",
        "nullif(i, 1)",
        "CASE WHEN i > 0 THEN 1 END",
        "i > 1",
        "s LIKE 'a%'",
        "i IN (1, 2)",
    ] {
        assert_eq!(evaluate(sql, &null).unwrap().logical_null_count(), 2, "{sql}");
    }
    assert_eq!(evaluate("isnan(g) OR i <=> 1", &null).unwrap().as_boolean().true_count(), 0);
    assert_eq!(evaluate("isnan(g) OR i <=> 1", &null).unwrap().logical_null_count(), 0);
}

#[test]
fn a_part_is_computed_only_where_it_is_needed() {
    let batch = numbers(&[Some(0), Some(5), None], &[Some(1), Some(0), Some(0)]);
    for sql in [
        "CASE WHEN b <> 0 THEN a DIV b END",
        "CASE WHEN b = 0 THEN 0 ELSE a DIV b END",
        "if(b = 0 OR a DIV b > 7, 1, 2)",
        "b = 0 OR a DIV b = 0",
        "b <> 0 AND a DIV b = 0",
        "coalesce(b + 1, a DIV 0)",
        "nvl2(a, 1, 1 DIV (b - b + 1))",
        "(b <> 0 AND 10 DIV b > 1) IS TRUE",
        "CASE b WHEN 0 THEN 'zero' ELSE CAST(10 DIV b AS STRING) END",
    ] {
        assert!(evaluate(sql, &batch).is_ok(), "{sql}: {:?}", evaluate(sql, &batch));
    }
    for sql in ["a DIV b = 0 AND b <> 0", "coalesce(a DIV 0, b)", "CASE WHEN b = 0 THEN 1 DIV b END"] {
        assert!(evaluate(sql, &batch).is_err(), "{sql}");
    }
}

#[test]
fn constants_are_computed_once_and_restrict_columns() {
    let batch = numbers(&[Some(8)], &[Some(0)]);
    let bound = parse("a = 2 * 3 + 2 AND b < length('abc')", "UTC", ParseMode::Strict)
        .unwrap()
        .bind(&batch.schema())
        .unwrap();
    assert_eq!(filter_mask(&bound, &batch).unwrap().true_count(), 1);
    assert!(format!("{:?}", bound.root).contains("Integer(8)"), "{:?}", bound.root);
    // A constant that cannot be computed causes an error only if a row needs it.
    assert!(evaluate("CASE WHEN a = 8 THEN 1 ELSE 1 DIV 0 END", &batch).is_ok());
    assert!(evaluate("1 DIV 0", &batch).is_err());
    assert!(evaluate("1 DIV 0", &batch.slice(0, 0)).is_ok());
}

#[test]
fn errors_name_the_unsupported_part_and_give_a_hint() {
    let batch = numbers(&[Some(8)], &[Some(0)]);
    for (sql, part) in [
        ("a + 'x'", "(a + 'x') is not supported for values of type BIGINT, STRING"),
        ("upper(a)", "upper(a) is not supported for values of type BIGINT"),
        ("coalesce(a, 'x')", "coalesce(a, 'x')"),
        ("CAST(1.5D AS STRING)", "a cast from DOUBLE to STRING"),
        ("CAST(a AS TIMESTAMP)", "a cast from BIGINT to TIMESTAMP"),
        ("TRY_CAST('2024' AS DATE)", "TRY_CAST('2024' AS DATE)"),
        ("date_format(timestamp_seconds(a), 'YYYY')", "'YYYY'"),
        ("soundex('a')", "this function is not supported"),
        ("round(a, b)", "round(a, b)"),
        ("concat(1.5D)", "concat(1.5D)"),
    ] {
        let error = evaluate(sql, &batch).unwrap_err();
        assert!(error.to_string().contains(part), "{sql}: {error}");
        assert!(error.hint().unwrap().contains("Spark"), "{sql}");
    }
}

#[test]
fn elements_have_a_common_type_and_may_be_null() {
    let batch = numbers(&[Some(1), None], &[Some(2), Some(3)]);
    for (sql, expected) in [
        ("array(a, 2.5)", "[[1.0, 2.5], [, 2.5]]"),
        ("array()", "[[], []]"),
        ("map('x', a, 'y', 1)", "[{x: 1, y: 1}, {x: , y: 1}]"),
        ("named_struct('p', a, 'q', array(map(b, NULL)))", "[{p: 1, q: [{2: }]}, {p: , q: [{3: }]}]"),
        ("struct(a, b + 1, b AS c)", "[{a: 1, col2: 3, c: 2}, {a: , col2: 4, c: 3}]"),
        ("CASE WHEN a = 1 THEN array(a) END", "[[1], ]"),
        // The key of a map may be NULL in rows that do not need the map.
        ("CASE WHEN a = 1 THEN map(a, b) ELSE map() END", "[{1: 2}, {}]"),
        ("size(array(a, b, 1))", "[3, 3]"),
        ("split('a1b2', '[0-9]', 2)", "[[a, b2], [a, b2]]"),
        ("array_contains(array(a, 5), b)", "[false, ]"),
    ] {
        let found = evaluate(sql, &batch).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let rows = (0..found.len()).map(|row| array_value_to_string(&found, row).unwrap());
        assert_eq!(format!("[{}]", rows.collect::<Vec<_>>().join(", ")), expected, "{sql}");
        // A slice of the batch gives the same values.
        let (slice, last) = (batch.slice(1, 1), found.slice(1, 1));
        assert_eq!(&evaluate(sql, &slice).unwrap(), &last, "{sql}");
    }
    for (sql, why) in [
        ("map(a, 1)", "a key of a map is NULL"),
        ("map(a, 1, 1L, 2)", "a key of a map is NULL"),
        ("map(0D, 1, -0.0D, 2)", "the same key twice"),
        ("map(cast(1.2 as int), 'a', cast(1.4 as int), 'b')", "the same key twice"),
        ("array(1, 'x')", "array(1, 'x') is not supported"),
        ("array(array(1), 1)", "is not supported"),
        ("map(array(1), 1)", "is not supported"),
        ("map(1)", "is not supported"),
        ("named_struct(a, 1)", "is not supported"),
        ("greatest(array(1), array(2))", "is not supported"),
        ("array(1) = array(1)", "values of type ARRAY<INT> and ARRAY<INT> cannot be compared"),
        ("array(a) IN (array(1))", "values of type ARRAY<BIGINT> cannot be compared"),
        ("array(a) = 1", "cannot be compared with 1"),
        ("array(1 DIV (b - b))", "division by zero"),
    ] {
        let error = evaluate(sql, &batch).expect_err(sql);
        assert!(error.to_string().contains(why), "{sql}: {error}");
        assert!(error.hint().is_some(), "{sql}: {error}");
    }
}

#[test]
fn nested_values_are_cast_by_name_without_loss() {
    let batch = numbers(&[Some(1), None, Some(300)], &[Some(2), Some(3), Some(4)]);
    let field = |name: &str, of: DataType, nullable: bool| {
        let id = [("delta.columnMapping.id".to_owned(), "7".to_owned())];
        Field::new(name, of, nullable).with_metadata(id.into())
    };
    let list = |of: DataType, nullable: bool| DataType::List(Arc::new(field("element", of, nullable)));
    let parts =
        DataType::Struct(vec![field("x", DataType::Int8, true), field("y", DataType::Utf8, true)].into());
    let entry = DataType::Struct(
        vec![field("key", DataType::Utf8, false), field("value", parts.clone(), true)].into(),
    );
    let map = DataType::Map(Arc::new(Field::new("key_value", entry, false)), false);
    let cast = |sql: &str, to: &DataType, batch: &RecordBatch| {
        Expression::bind_as(sql, &batch.schema(), "UTC", to)?.evaluate(batch)
    };
    let map_of = |key: DataType| {
        let entry = vec![field("key", key, false), field("value", DataType::Utf8, true)];
        let entries = Field::new("key_value", DataType::Struct(entry.into()), false);
        DataType::Map(Arc::new(entries), false)
    };
    let two = batch.slice(0, 2);
    for (sql, to) in [
        ("map(b + 0.2, 'x', b + 1.4, 'y')", map_of(DataType::Int32)),
        ("array(a, b)", list(DataType::Int8, true)),
        ("array(b)", list(DataType::Int8, false)),
        ("named_struct('Y', b, 'X', a)", parts.clone()),
        ("map(b, named_struct('y', 'z', 'x', a))", map.clone()),
        ("array(map(b, NULL), NULL)", list(map.clone(), true)),
        ("NULL", map.clone()),
        ("NULL", parts.clone()),
        ("NULL", list(map.clone(), false)),
        ("map()", map.clone()),
        ("if(a = 1, array(a), NULL)", list(DataType::Int8, false)),
    ] {
        let found = cast(sql, &to, &two).unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!((found.data_type(), found.len()), (&to, 2), "{sql}");
        found.to_data().validate_full().unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    for (sql, to, why) in [
        ("array(b, a)", list(DataType::Int8, true), "array(b, a) has no value for [4, 300]"),
        ("array(a)", list(DataType::Int64, false), "has no value for []"),
        ("named_struct('x', a, 'y', 'q')", parts.clone(), "has no value for {x: 300, y: q}"),
        ("map('k', named_struct('x', a, 'y', NULL))", map.clone(), "has no value for {k: {x: 300, y: }}"),
        ("named_struct('x', a)", parts.clone(), "the field 'y' is missing in"),
        ("map('k', named_struct('x', a))", map.clone(), "the field 'value.y' is missing in"),
        ("struct(a AS x, b AS y, b AS z)", parts.clone(), "the field 'z' does not exist in the column"),
        ("array(a)", parts, "a cast from ARRAY<BIGINT> to STRUCT<x: TINYINT, y: STRING> is not supported"),
        ("a", list(DataType::Int64, true), "a cast from BIGINT to ARRAY<BIGINT> is not supported"),
        ("map(b + 0.2, 'x', b + 0.4, 'y')", map_of(DataType::Int32), "has no value for {2.2: x, 2.4: y}"),
        ("map('-0.0', 'x', '0', 'y')", map_of(DataType::Float64), "has no value for {-0.0: x, 0: y}"),
    ] {
        let error = cast(sql, &to, &batch).expect_err(sql);
        assert!(error.to_string().contains(why), "{sql}: {error}");
        assert!(error.hint().is_some(), "{sql}: {error}");
    }
}
