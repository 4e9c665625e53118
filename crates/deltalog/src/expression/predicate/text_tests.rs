//! Tests of parsing conditions as Spark writes them, and of the round trip through `Display`.

use super::ast::{ColumnPath, CompareOp, Expr, Literal, Predicate};
use super::{Expression, ParseMode, Scope, col, filter_mask, lit, parse};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use proptest::prelude::*;
use std::sync::Arc;

fn strict(sql: &str) -> Predicate {
    parse(sql, "UTC", ParseMode::Strict).unwrap()
}

fn pruning(sql: &str) -> Predicate {
    parse(sql, "UTC", ParseMode::Pruning).unwrap()
}

/// Returns the condition without the session's clock, which only matters for comparisons of dates with instants.
fn in_any_zone(predicate: Predicate) -> Predicate {
    match predicate {
        Predicate::InZone { condition, .. } => *condition,
        other => other,
    }
}

/// Returns the conditions that are joined by AND, with `None` for each unknown condition.
fn conjuncts(predicate: Predicate) -> Vec<Option<Predicate>> {
    let all = match predicate {
        Predicate::And(all) => all,
        one => vec![one],
    };
    all.into_iter().map(|p| if format!("{p:?}").contains("Unknown(") { None } else { Some(p) }).collect()
}

#[test]
fn filters_that_spark_pushes_are_parsed() {
    let sql = r"(NOT (region = 'eu')) AND (i1 IS NOT NULL) AND (i1 < 500000L) AND (s1 IN ('a', '12'))
        AND (DATE '2020-01-01' < date_add(DATE '2019-01-01', CAST(i2 AS INT))) AND startswith(s2, 'ab')";
    let date = Literal::Date(18_262);
    assert_eq!(
        conjuncts(pruning(sql)),
        [
            Some(col("region").eq(lit("eu")).not()),
            Some(col("i1").is_not_null()),
            Some(col("i1").lt(lit(500_000))),
            Some(col("s1").is_in([lit("a"), lit("12")])),
            None,
            Some(col("s2").starts_with("ab")),
        ]
    );
    assert!(pruning(sql).to_string().contains(&format!("{date} <")));
    // In a predicate that a user writes, the value is computed.
    assert!(strict(sql).to_string().contains("CAST(i2 AS INT)"));
}

#[test]
fn order_preserving_functions_are_parsed() {
    use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
    let field = |name: &str, data_type| Field::new(name, data_type, true);
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let schema = Schema::new(vec![
        field("d", DataType::Date32),
        field("t", utc),
        field("i", DataType::Int32),
        field("s", DataType::Utf8),
        field("m", DataType::Decimal128(10, 2)),
    ]);
    for sql in [
        "year(d) = 2024",
        "(year(CAST(t AS DATE)) >= 2024)",
        "EXTRACT(YEAR FROM t) = 2024",
        "date_trunc('DAY', t) = TIMESTAMP '2024-01-01 00:00:00'",
        "trunc(d, 'MONTH') <=> DATE '2024-01-01'",
        "to_date(t) IN (DATE '2024-01-01')",
        "date_sub(d, 7) BETWEEN '2024-01-01' AND '2024-02-01'",
        "add_months(last_day(d), -1) < '2024-01-01'",
        "CAST(i AS BIGINT) > 5L AND CAST(i AS DECIMAL(12,2)) > 5.5BD AND CAST(m AS DOUBLE) < 1.5D",
        "left(s, 2) = 'ab' OR substring(s, 1, 3) = 'abc' OR substr(s, 0, 1) = 'a'",
        "year(d) IS NOT NULL",
    ] {
        let predicate =
            parse(sql, "Europe/Berlin", ParseMode::Strict).unwrap_or_else(|e| panic!("{sql}: {e}"));
        assert_eq!(parse(&predicate.to_string(), "Europe/Berlin", ParseMode::Strict).unwrap(), predicate);
        assert!(!predicate.bind(&schema).unwrap_or_else(|e| panic!("{sql}: {e}")).has_unknown());
    }
    // These functions do not preserve order, or their result depends on the session. They are computed, but have no
    // bounds.
    for sql in [
        "month(d) = 1",
        "CAST(i AS TINYINT) IS NULL",
        "CAST(i AS DECIMAL(10,2)) > 1",
        "CAST(s AS DATE) = DATE '2024-01-01'",
        "CAST(i AS STRING) = '5'",
        "substring(s, 2, 1) = 'a'",
        "date_add(d, i) > DATE '2024-01-01'",
    ] {
        let pruning = parse(sql, "UTC", ParseMode::Pruning).unwrap().bind_for_pruning(&schema);
        assert!(pruning.has_unknown(), "{sql}");
        assert!(strict(sql).bind_for_pruning(&schema).has_unknown(), "{sql}");
        assert!(!strict(sql).bind(&schema).unwrap().has_unknown(), "{sql}");
    }
    for sql in ["trunc(d, 'DAY') IS NULL", "trunc(d, s) IS NULL", "soundex(s) = 'a'", "d['x'] = 1"] {
        assert!(conjuncts(pruning(sql)) == [None], "{sql}");
        let error = parse(sql, "UTC", ParseMode::Strict).unwrap_err();
        assert!(error.hint().unwrap().contains("Spark"), "{sql}: {error:?}");
    }
    // If the time zone is not known, the day is not known either.
    assert!(
        parse("year(t) = 2024", "Nowhere", ParseMode::Pruning)
            .unwrap()
            .bind_for_pruning(&schema)
            .has_unknown()
    );
}

#[test]
fn spark_literals_are_parsed() {
    let decimal = |unscaled, scale| lit(Literal::Decimal { unscaled, scale });
    for (sql, expected) in [
        ("1L", lit(1)),
        ("-1S", lit(-1)),
        ("1Y", lit(1)),
        ("-9223372036854775808", lit(i64::MIN)),
        ("9223372036854775808", decimal(9_223_372_036_854_775_808, 0)),
        ("1.50", decimal(150, 2)),
        ("1.5BD", decimal(15, 1)),
        ("1.5D", lit(1.5)),
        ("1.0E10D", lit(1e10)),
        ("1e3", lit(1e3)),
        ("CAST(0.1 AS FLOAT)", lit(0.1f32)),
        ("CAST('NaN' AS DOUBLE)", lit(f64::NAN)),
        ("CAST(7 AS DECIMAL(10,2))", decimal(700, 2)),
        ("CAST(NULL AS INT)", lit(Literal::Null)),
        ("X'00fF'", lit(vec![0u8, 255])),
        (r"'it\'s a \\ \u00e9 \101'", lit(r"it's a \ é A")),
        (r"'50\%'", lit(r"50\%")),
        ("\"it''s\"", Expr::DoubleQuoted("it''s".to_owned())),
        ("DATE '1969-12-31'", lit(Literal::Date(-1))),
        ("TIMESTAMP_NTZ '1970-01-01 00:00:01.5'", lit(Literal::TimestampNtz(1_500_000))),
    ] {
        assert_eq!(strict(&format!("a = {sql}")), col("a").eq(expected), "{sql}");
    }
    for sql in ["129Y", "40000S", "1.5L", "1X", "X'0'", "DATE '2020-02-30'", "1e999", "TIMESTAMP '1'"] {
        let sql = format!("a = {sql}");
        assert!(parse(&sql, "UTC", ParseMode::Strict).is_err(), "{sql}");
        assert_eq!(conjuncts(pruning(&sql)), [None], "{sql}");
    }
    // The cast fails only for rows that need its value.
    assert_eq!(conjuncts(pruning("a = CAST(300 AS TINYINT)")), [None]);
}

#[test]
fn computed_values_are_written_as_they_are_parsed() {
    for sql in [
        "a + b * 2 > (a + b) * 2",
        "(a DIV 2) = 1L AND ~ a & 3 | b ^ c <> 1S",
        "- a = -1 AND - (a + 1) % 2 = 1Y AND a - -1 < 1.5F",
        "CASE WHEN a > 1 AND b THEN 'x' WHEN c IS NULL THEN 'y' ELSE upper(d) END = 'x'",
        "CASE a WHEN 1 THEN TRUE ELSE b > 2 END",
        "if(a > 1, a, b) BETWEEN nvl(c, 0) AND coalesce(c, d, 9)",
        "nullif(a, 1) IS NULL OR nvl2(a, b, c) IS NOT NULL",
        "concat(a, b, 'c') LIKE 'x%' AND a || b || 'c' = 'd'",
        "TRY_CAST(a AS INT) IN (month(b), hour(c))",
        "(a > 1) = (b > 2) AND (a = 1) <=> TRUE",
        "CAST(a > 1 AS INT) = 1",
        "round(a, 2) = 1.25 AND CAST(a AS DECIMAL(10,2)) * 2 = 5",
        "substring(a, -2) = right(b, 2) AND left(c, d) = 'x'",
        "extract(MONTH FROM a) = 2 AND date_sub(a, b) = DATE '2024-01-01'",
        "startswith(a, b) AND isnan(c) AND NOT contains(a, 'x')",
    ] {
        let tree = strict(sql);
        let text = tree.to_string();
        assert_eq!(strict(&text), tree, "{sql} becomes {text}");
    }
    let three = |a: &str, b: &str, c: &str| (strict(a), strict(b), strict(c));
    for (left, right, other) in [
        three("a - b - c = 0", "(a - b) - c = 0", "a - (b - c) = 0"),
        three("a + b * c = 0", "a + (b * c) = 0", "(a + b) * c = 0"),
        three("a | b & c = 0", "a | (b & c) = 0", "(a | b) & c = 0"),
        three("a || b + c = 0", "(a || b) + c = 0", "a || (b + c) = 0"),
        three("- a * b = 0", "(- a) * b = 0", "- (a * b) = 0"),
    ] {
        assert_eq!(left, right);
        assert_ne!(left, other);
    }
}

#[test]
fn timestamps_use_the_session_time_zone() {
    let at = |text: &str, zone: &str| {
        parse(&format!("t = TIMESTAMP '{text}'"), zone, ParseMode::Strict).map(in_any_zone)
    };
    let is = |micros| col("t").eq(lit(Literal::Timestamp(micros)));
    assert_eq!(at("2020-01-01 00:00:00", "UTC").unwrap(), is(1_577_836_800_000_000));
    assert_eq!(at("2020-01-01 01:00:00", "Europe/Berlin").unwrap(), is(1_577_836_800_000_000));
    assert_eq!(at("2020-01-01 01:00:00+01:00", "nowhere").unwrap(), is(1_577_836_800_000_000));
    // A local time that is skipped, one that is repeated, and a time in an unknown zone.
    for (text, zone) in [
        ("2021-03-28 02:30:00", "Europe/Berlin"),
        ("2021-10-31 02:30:00", "Europe/Berlin"),
        ("2020-01-01 00:00:00", "nowhere"),
    ] {
        assert!(at(text, zone).is_err());
        let unknown = parse(&format!("t = TIMESTAMP '{text}'"), zone, ParseMode::Pruning).unwrap();
        assert_eq!(conjuncts(unknown), [None]);
    }
}

#[test]
fn operators_bind_as_in_sql() {
    let (a, b, c) = (col("a").is_true(), col("b").is_true(), col("c").is_true());
    assert_eq!(strict("a OR b AND NOT c"), a.clone().or(b.clone().and(c.clone().not())));
    assert_eq!(strict("(a OR b) AND c"), a.or(b).and(c));
    assert_eq!(strict("NOT a = 1"), col("a").eq(lit(1)).not());
    assert_eq!(strict("a BETWEEN 1 AND 2 AND b"), col("a").between(lit(1), lit(2)).and(col("b").is_true()));
    assert_eq!(strict("a NOT IN (1, NULL)"), col("a").is_in([lit(1), lit(Literal::Null)]).not());
    assert_eq!(
        strict("`a`.`b``c`.D <=> 5"),
        Expr::Column(ColumnPath::new(["a", "b`c", "D"])).null_safe_eq(lit(5))
    );
    assert_eq!(
        strict("a IS NOT TRUE"),
        Predicate::Is { condition: Box::new(col("a").is_true()), truth: Some(true) }.not()
    );
    assert_eq!(
        strict("a LIKE 'x#%' ESCAPE '#'"),
        Predicate::Like { value: col("a"), pattern: "x#%".into(), escape: '#' }
    );
}

#[test]
fn unknown_parts_are_limited_to_their_group() {
    let known = || Some(col("a").gt(lit(5)));
    assert_eq!(conjuncts(pruning("a > 5 AND f(x -> x + 1, b) = 3")), [known(), None]);
    assert_eq!(conjuncts(pruning("a > 5 AND (b ->> 'x' IS 7)")), [known(), None]);
    assert_eq!(conjuncts(pruning("(INTERVAL '1' DAY > d) AND a > 5")), [None, known()]);
    assert_eq!(conjuncts(pruning("a > 5 AND b ?? c")), [known(), None]);
    assert_eq!(conjuncts(pruning("a + 1 > 5 AND a > 5")), [None, known()]);
    assert_eq!(conjuncts(pruning("b[0] > 5 AND a > 5")), [None, known()]);
    // The OR after the unexpected token changes how all the conditions are grouped.
    assert_eq!(conjuncts(pruning("a > 5 AND b ?? c OR d")), [None]);
    assert_eq!(conjuncts(pruning("a > 5 ?? AND b")), [None]);
    for sql in ["", ")", "a > 5)", "a >", "'open", "(a > 5", "a > 5 b", "AND", "a IN ()", "a, b"] {
        assert_eq!(conjuncts(pruning(sql)), [None], "{sql}");
        assert!(parse(sql, "UTC", ParseMode::Strict).is_err(), "{sql}");
    }
}

#[test]
fn extreme_texts_are_refused_without_a_panic() {
    for sql in [
        "(".repeat(100_000),
        format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("{} a", "NOT ".repeat(100_000)),
        format!("a{}", " IS TRUE".repeat(100_000)),
        format!("a{}", " = 1".repeat(100_000)),
        format!("a{}", " + 1".repeat(100_000)),
        "f(".repeat(100_000),
        "year(".repeat(100_000),
        "CAST(".repeat(100_000),
        "startswith(".repeat(100_000),
        format!("{}a{} = 1", "CAST(".repeat(5_000), " AS INT)".repeat(5_000)),
        "x".repeat(20 << 20),
    ] {
        let _ = pruning(&sql).to_string();
        assert!(parse(&sql, "UTC", ParseMode::Strict).is_err());
    }
    let wide = vec!["a = 1"; 50_000].join(" AND ");
    assert_eq!(conjuncts(strict(&wide)).len(), 50_000);
}

fn literals() -> impl Strategy<Value = Literal> {
    prop_oneof![
        Just(Literal::Null),
        any::<bool>().prop_map(Literal::Boolean),
        any::<i64>().prop_map(Literal::Integer),
        (-10i128.pow(38) + 1..10i128.pow(38), 0u8..=38)
            .prop_map(|(unscaled, scale)| Literal::Decimal { unscaled, scale }),
        any::<f64>().prop_map(Literal::Double),
        any::<String>().prop_map(Literal::String),
        prop::collection::vec(any::<u8>(), 0..5).prop_map(Literal::Binary),
        any::<i32>().prop_map(Literal::Date),
        any::<i64>().prop_map(Literal::Timestamp),
        any::<i64>().prop_map(Literal::TimestampNtz),
    ]
}

fn paths() -> impl Strategy<Value = Expr> {
    let names =
        prop_oneof!["[a-z_][a-z0-9]{0,3}", "[ -~]{1,5}", Just("null".to_owned()), Just("date".to_owned())];
    prop::collection::vec(names, 1..3).prop_map(|parts| Expr::Column(ColumnPath::new(parts)))
}

fn exprs() -> impl Strategy<Value = Expr> {
    prop_oneof![paths(), literals().prop_map(Expr::Literal)]
}

fn predicates() -> impl Strategy<Value = Predicate> {
    let ops = prop::sample::select(vec![
        CompareOp::Eq,
        CompareOp::NotEq,
        CompareOp::Lt,
        CompareOp::LtEq,
        CompareOp::Gt,
        CompareOp::GtEq,
        CompareOp::NullSafeEq,
    ]);
    let leaf = prop_oneof![
        paths().prop_map(Predicate::Value),
        any::<bool>().prop_map(|b| Predicate::Value(lit(b))),
        (ops, exprs(), exprs()).prop_map(|(op, left, right)| Predicate::Compare { op, left, right }),
        exprs().prop_map(Predicate::IsNull),
        (exprs(), prop::collection::vec(exprs(), 1..4))
            .prop_map(|(value, list)| Predicate::In { value, list }),
        (exprs(), any::<String>(), any::<char>()).prop_map(|(value, pattern, escape)| Predicate::Like {
            value,
            pattern,
            escape
        }),
        (exprs(), any::<String>()).prop_map(|(value, prefix)| Predicate::StartsWith { value, prefix }),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.and(b)),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a.or(b)),
            inner.clone().prop_map(Predicate::not),
            // IS UNKNOWN of a plain value is written and parsed like any other condition.
            (inner, prop::option::of(any::<bool>()))
                .prop_map(|(p, truth)| Predicate::Is { condition: Box::new(p), truth }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn parse_undoes_display(
        predicate in predicates(), zone in prop::sample::select(vec!["UTC", "Asia/Tokyo", "?"]),
    ) {
        let text = predicate.to_string();
        let parsed = parse(&text, zone, ParseMode::Strict).map(in_any_zone);
        prop_assert_eq!(parsed.map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?, predicate);
    }

    #[test]
    fn no_text_panics(text in r"([ ()a1'`,.=<>]|AND|OR|NOT|IN|IS|CAST|BETWEEN|LIKE|DATE|\PC){0,30}") {
        let _ = parse(&text, "UTC", ParseMode::Strict);
        prop_assert!(parse(&text, "UTC", ParseMode::Pruning).is_ok());
    }
}

/// Expressions in which `{}` is replaced with a string in double quotes.
const PLACES: [&str; 18] = [
    "{} = s",
    "s <> {}",
    "{} != '1'",
    "s <=> {}",
    "s IN ('a', {})",
    "{} IN (s, 'a')",
    "s BETWEEN {} AND 'z'",
    "s NOT BETWEEN 'a' AND {}",
    "s LIKE {}",
    "s NOT LIKE {}",
    "{} LIKE 'a%'",
    "{} IS NULL",
    "NOT (upper({}) = s)",
    "startswith(s, {})",
    "s || {} = 'a' OR TRUE",
    "CAST({} AS INT) > 1 AND n = 1",
    "CASE WHEN n = 1 THEN {} ELSE s END = 'a'",
    "coalesce(s, {}) IS NOT DISTINCT FROM 'a'",
];

#[test]
fn a_column_in_double_quotes_is_refused_everywhere() {
    use super::{Expression, Scope};
    use arrow::datatypes::{DataType, Field, Schema};
    let inner = Field::new("Part", DataType::Utf8, true);
    let fields = vec![
        Field::new("s", DataType::Utf8, true),
        Field::new("n", DataType::Int32, true),
        Field::new("User_ID", DataType::Utf8, true),
        Field::new("dotted.name", DataType::Utf8, true),
        Field::new("st", DataType::Struct(vec![inner].into()), true),
    ];
    let schema = Schema::new(fields);
    let scope = Scope::new(&[("target", &schema), ("source", &Schema::empty())], "UTC");
    let names = [
        ("User_ID", "`User_ID`"),
        ("user_id", "`User_ID`"),
        ("DOTTED.name", "`dotted.name`"),
        ("ST.part", "`st`.`Part`"),
        ("st", "`st`"),
    ];
    for place in PLACES {
        let hints = |sql: &str| {
            [
                strict(sql).bind(&schema).map(|_| ()),
                scope.condition(sql).map(|_| ()),
                Expression::bind(sql, &schema, "UTC").map(|_| ()),
            ]
            .map(|outcome| outcome.err().and_then(|error| error.hint().map(str::to_owned)))
        };
        for (name, column) in names {
            let sql = place.replace("{}", &format!("\"{name}\""));
            for hint in hints(&sql) {
                let hint = hint.unwrap_or_else(|| panic!("{sql} is accepted"));
                assert!(hint.contains(&format!("backticks, {column}, ")), "{sql}: {hint}");
            }
        }
        // Any other string means the same in double quotes as in single quotes. Even a column's name may be a string
        // in single quotes.
        for (double, single) in [("\"17\"", "'17'"), ("\"use\"", "'use'"), ("'user_id'", "'user_id'")] {
            let (double, single) = (place.replace("{}", double), place.replace("{}", single));
            let bound = |sql: &str| strict(sql).bind(&schema).map(|_| ()).map_err(|error| error.to_string());
            assert_eq!(bound(&double), bound(&single), "{double}");
        }
    }
    let with_alias = scope.condition("\"target.user_id\" = 'a'").expect_err("a column");
    assert!(with_alias.hint().is_some_and(|hint| hint.contains("`target`.`User_ID`")));
}

#[test]
fn a_chain_is_a_single_level_of_nesting() {
    for column in ["a", "`a`"] {
        let all = |count: usize| vec![format!("{column} > 1"); count].join(" AND ");
        // Pruning can still use each of the conditions.
        for predicate in [strict(&all(5_000)), pruning(&all(5_000))] {
            let known = conjuncts(predicate).into_iter().flatten();
            assert_eq!(known.count(), 5_000);
        }
    }
    let text = vec!["s"; 10_000].join(" || ");
    let chain = parse(&format!("{text} = 'a'"), "UTC", ParseMode::Strict).expect("a chain");
    assert_eq!(strict(&chain.to_string()), chain);
    assert!(parse(&format!("{}1", "(1 + ".repeat(101)), "UTC", ParseMode::Strict).is_err());
    // A value that cannot be parsed does not prevent pruning by the other conditions.
    let sum = vec!["a"; 200].join(" + ");
    let known = conjuncts(pruning(&format!("a > 1 AND {sum} > 1 AND b > 2")));
    assert_eq!(known.into_iter().flatten().count(), 2);
}

#[test]
fn a_chain_of_any_length_needs_no_stack() {
    let work = || {
        let schema = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
        let rows = RecordBatch::try_from_iter([("a", Arc::new(Int64Array::from(vec![0, 1])) as ArrayRef)]);
        let rows = rows.expect("rows");
        let value = |sql: &str| {
            let bound = Expression::bind(sql, &schema, "UTC").expect("a chain");
            let values = bound.clone().evaluate(&rows).expect("values");
            drop(bound);
            values.as_primitive::<Int64Type>().values().to_vec()
        };
        for count in [101usize, 1_000, 10_000] {
            let n = i64::try_from(count).expect("a number");
            let all = |operand: &str, operator: &str| vec![operand; count].join(operator);
            assert_eq!(value(&all("a", " + ")), [0, n]);
            assert_eq!(value(&all("a", " - ")), [0, 2 - n]);
            assert_eq!(value(&all("a", " * ")), [0, 1]);
            assert_eq!(value(&all("a * 2", " + ")), [0, 2 * n]);
            assert_eq!(value(&all("(a + 1)", " * 1 - ")), [2 - n, 4 - 2 * n]);
            assert_eq!(value(&format!("a + {}", all("1L", " + "))), [n, n + 1]);
            let text = format!("{} > a", all("a", " + 1 - "));
            let chain = strict(&text);
            assert_eq!(strict(&chain.clone().to_string()), chain);
            let bound = chain.bind(&schema).expect("a chain");
            assert_eq!(filter_mask(&bound, &rows).expect("a mask").null_count(), 0);
            let scope = Scope::new(&[("t", &schema)], "UTC");
            let refused =
                scope.value(&format!("{} + b", all("t.a", " + ")), &Field::new("a", DataType::Int64, true));
            assert!(refused.is_err_and(|error| error.to_string().contains("no column b")));
        }
        let refused = Expression::bind("a + 1 - 2 + 'x' + 3", &schema, "UTC").expect_err("a text");
        assert!(
            refused
                .to_string()
                .contains("(a + 1 - 2 + 'x') is not supported for values of type BIGINT, STRING")
        );
        let lost = Expression::bind("a + 1 + 9223372036854775807 - a", &schema, "UTC").expect("a value");
        let lost = lost.evaluate(&rows).expect_err("an overflow").to_string();
        assert!(lost.starts_with("(a + 1 + 9223372036854775807) has no value for 1, 922"), "{lost}");
    };
    std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(work)
        .expect("a thread")
        .join()
        .expect("no overflow");
}

#[test]
fn chains_are_evaluated_from_left_to_right() {
    let schema = Schema::new(vec![Field::new("a", DataType::Int64, true)]);
    for sql in [
        "a - 1 - 2",
        "(a - 1) - 2",
        "a * 2 / 3 % 4",
        "a + 1 || 'x' || a",
        "a - (1 - 2)",
        "a || 'x' || a",
        "mod(a * 2, 3) * 4",
        "mod(a * 2 * a, 3)",
        "concat(a || a, a) || a",
    ] {
        let parsed = strict(&format!("{sql} = a"));
        assert_eq!(strict(&parsed.to_string()), parsed, "{sql}");
        assert!(Expression::bind(sql, &schema, "UTC").is_ok(), "{sql}");
    }
    assert_eq!(strict("(a - 1) - 2 > 0"), strict("a - 1 - 2 > 0"));
    assert_ne!(strict("a - (1 - 2) > 0"), strict("a - 1 - 2 > 0"));
    assert_eq!(strict("a - 1 + b * 2 * 3 > 0").to_string(), "(a - 1 + (b * 2 * 3)) > 0");
}
