//! Properties of the size of expressions: the tree grows linearly with the text, and an operand is computed once.

use super::ast::{Expr, Predicate};
use super::size::Tree;
use super::{Expression, ParseMode, Scope, col, filter_mask, lit, parse};
use crate::limits::{EXPRESSION_LEVELS, EXPRESSION_NODES};
use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type};
use std::sync::Arc;

/// Expressions that need the operand `{}` more than once to be computed.
const KINDS: [&str; 13] = [
    "nullif({}, -1)",
    "nullif({}, d)",
    "CASE {} WHEN -1 THEN 0 WHEN -2 THEN 1 ELSE a END",
    "CASE a WHEN -1 THEN 0 ELSE {} END",
    "CASE WHEN {} BETWEEN -9 AND a THEN a ELSE b END",
    "CASE WHEN {} NOT BETWEEN a AND d THEN b ELSE a END",
    "CASE WHEN {} IN (a, d, -7) THEN a ELSE b END",
    "CASE WHEN {} <=> a THEN a ELSE b END",
    "CASE WHEN {} IS DISTINCT FROM d THEN b ELSE a END",
    "CASE WHEN {} = d THEN a ELSE b END",
    "CASE WHEN d < {} THEN a ELSE b END",
    "nvl2({}, a, b)",
    "CASE WHEN ({} <=> a) = ({} = d) THEN a ELSE b END",
];

fn nested(kind: &str, levels: usize) -> String {
    // If the kind contains its operand twice, each level doubles the length of the text, so there are fewer levels.
    let (once, levels) = (kind.matches("{}").count() == 1, levels);
    let levels = if once { levels } else { levels.min(5) };
    (0..levels).fold("a".to_owned(), |inner, _| kind.replace("{}", &inner))
}

fn rows() -> RecordBatch {
    let decimals = Decimal128Array::from(vec![Some(100), None, Some(250)]).with_precision_and_scale(10, 2);
    RecordBatch::try_from_iter_with_nullable([
        ("a", Arc::new(Int64Array::from(vec![Some(1), Some(2), None])) as ArrayRef, true),
        ("b", Arc::new(Int64Array::from(vec![Some(-1), None, Some(3)])) as ArrayRef, true),
        ("d", Arc::new(decimals.unwrap()) as ArrayRef, true),
        ("s", Arc::new(StringArray::from(vec!["2024-01-01", "2024-01-02", "2024-01-03"])) as ArrayRef, true),
    ])
    .unwrap()
}

fn value(sql: &str) -> Vec<Option<i64>> {
    let rows = rows();
    let values = Expression::bind(sql, &rows.schema(), "UTC").unwrap().evaluate(&rows).unwrap();
    values.as_primitive::<Int64Type>().iter().collect()
}

fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(work);
    thread.expect("a thread").join().expect("no overflow");
}

#[test]
fn using_an_operand_twice_does_not_double_the_tree() {
    on_a_small_stack(|| {
        let rows = rows();
        for kind in KINDS {
            let condition =
                |levels| parse(&format!("{} = 1", nested(kind, levels)), "UTC", ParseMode::Strict);
            let printed = |levels| condition(levels).unwrap().to_string().len();
            if kind.matches("{}").count() == 1 {
                // The length of the text grows by the same amount for each level.
                assert_eq!(printed(24) - printed(16), printed(16) - printed(8), "{kind}");
            }
            // If each level doubled the work, 2^28 steps would take too long.
            let deep = condition(28).unwrap();
            let mask = filter_mask(&deep.bind(&rows.schema()).unwrap(), &rows).unwrap();
            let shallow = condition(8).unwrap();
            let text = shallow.to_string();
            assert_eq!(parse(&text, "UTC", ParseMode::Strict).unwrap(), shallow, "{text}");
            let scope = Scope::new(&[("t", &rows.schema())], "UTC");
            let of_scope = scope.condition(&format!("{} = 1", nested(kind, 28))).unwrap();
            assert_eq!(filter_mask(&of_scope, &rows).unwrap(), mask, "{kind}");
            let as_value = value(&nested(kind, 28));
            let is_one = |value: &Option<i64>| value.map(|value| value == 1);
            assert_eq!(
                as_value.iter().map(is_one).collect::<Vec<_>>(),
                mask.iter().collect::<Vec<_>>(),
                "{kind}"
            );
            assert_eq!(of_scope.columns().len(), deep.bind(&rows.schema()).unwrap().columns().len());
        }
    });
}

/// Forms that name an operand once have the same values as equivalent forms that repeat it.
#[test]
fn a_shared_operand_gives_the_same_values_as_a_repeated_one() {
    for (shared, copied) in [
        ("nullif(a + b, 0)", "CASE WHEN a + b = 0 THEN NULL ELSE a + b END"),
        ("nullif(a, b)", "CASE WHEN a = b THEN NULL ELSE a END"),
        ("nullif(2L, a)", "CASE WHEN 2 = a THEN NULL ELSE 2L END"),
        ("nullif(CAST(3 AS BIGINT), NULL)", "3L"),
        (
            "CASE a + 1 WHEN b + 3 THEN 1L WHEN 3 THEN 2L END",
            "CASE WHEN a + 1 = b + 3 THEN 1L WHEN a + 1 = 3 THEN 2L END",
        ),
        ("CASE 2 WHEN a THEN 1L ELSE 2L END", "CASE WHEN 2 = a THEN 1L ELSE 2L END"),
        (
            "CASE CAST(s AS DATE) WHEN '2024-01-02' THEN a ELSE b END",
            "CASE WHEN CAST(s AS DATE) = '2024-01-02' THEN a ELSE b END",
        ),
        ("if(a * 2 BETWEEN 2 AND d * 2, 1L, 2L)", "if(a * 2 >= 2 AND a * 2 <= d * 2, 1L, 2L)"),
        ("if(a * 2 NOT BETWEEN 2 AND b, 1L, 2L)", "if(NOT (a * 2 >= 2 AND a * 2 <= b), 1L, 2L)"),
        // The upper bound is not computed for rows in which the lower bound decides.
        ("if(a * 2 BETWEEN 5 AND 1 DIV 0, 1L, 2L)", "if(a IS NULL AND 1 DIV 0 > 1, 1L, 2L)"),
    ] {
        let found = |sql: &str| {
            let rows = rows().slice(0, 2);
            let values = Expression::bind(sql, &rows.schema(), "UTC").unwrap().evaluate(&rows).unwrap();
            values.as_primitive::<Int64Type>().iter().collect::<Vec<_>>()
        };
        assert_eq!(found(shared), found(copied), "{shared}");
    }
    let range = parse("a + 1 BETWEEN 2 AND 3 AND a > 0", "UTC", ParseMode::Strict).unwrap();
    assert_eq!(range.to_string(), "(a + 1) BETWEEN 2 AND 3 AND a > 0");
    let range = parse("a BETWEEN 2 AND 3", "UTC", ParseMode::Strict).unwrap();
    assert_eq!(range.to_string(), "a >= 2 AND a <= 3");
}

/// As in Spark, one random number is compared with both bounds, and a second call gives another number.
#[test]
fn a_shared_operand_is_computed_once_for_a_row() {
    let many =
        RecordBatch::try_from_iter([("f", Arc::new(Float64Array::from(vec![0.0; 20_000])) as ArrayRef)]);
    let many = many.unwrap();
    let count = |sql: &str| {
        let truth = Expression::bind(sql, &many.schema(), "UTC").unwrap().evaluate(&many).unwrap();
        truth.as_boolean().true_count()
    };
    // If each bound had its own random number, about 42 of 100 rows would be in the range.
    let within = count("rand() BETWEEN 0.3 AND 0.6");
    assert!((5_400..6_600).contains(&within), "{within}");
    let both = count("rand() < 0.5 AND rand() < 0.5");
    assert!((4_400..5_600).contains(&both), "{both}");
    let kept = Expression::bind("nullif(rand(), 2D) + f", &many.schema(), "UTC").unwrap();
    assert_eq!(kept.evaluate(&many).unwrap().as_primitive::<Float64Type>().null_count(), 0);
}

#[test]
fn the_nodes_and_the_levels_are_limited() {
    let schema = rows().schema();
    let long = vec!["a"; EXPRESSION_NODES + 1].join(" + ");
    let many = Predicate::Or(vec![col("a").is_null(); EXPRESSION_NODES]);
    let refused = [
        parse(&format!("{long} > 1"), "UTC", ParseMode::Strict).map(|_| ()),
        Expression::bind(&long, &schema, "UTC").map(|_| ()),
        many.bind(&schema).map(|_| ()),
    ];
    for refused in refused {
        let error = refused.expect_err("too many nodes");
        assert!(error.to_string().contains(&format!("more than {EXPRESSION_NODES} operators")), "{error}");
        assert!(error.hint().is_some());
    }
    assert!(many.bind_for_pruning(&schema).has_unknown());
    // Constants in a list do not count as nodes.
    let list = col("a").is_in((0..EXPRESSION_NODES as i64 + 1).map(lit));
    assert!(list.bind(&schema).is_ok());
    on_a_small_stack(move || {
        let deep = |levels| (0..levels).fold(col("a").is_null(), |inner, _| inner.not());
        assert!(deep(EXPRESSION_LEVELS - 2).bind(&schema).is_ok());
        let error = deep(EXPRESSION_LEVELS).bind(&schema).expect_err("too deep");
        assert!(error.to_string().contains(&format!("more than {EXPRESSION_LEVELS} levels")), "{error}");
        assert!(deep(EXPRESSION_LEVELS).bind_for_pruning(&schema).has_unknown());
    });
}

/// The deepest text that can be parsed can also be bound.
#[test]
fn no_parsed_text_is_too_deep_to_bind() {
    on_a_small_stack(|| {
        let rows = rows();
        for kind in
            KINDS.into_iter().chain(["NOT ({})", "({} IS NULL)", "- ({})", "coalesce({} <=> a, a IS NULL)"])
        {
            if kind.matches("{}").count() > 1 {
                continue;
            }
            let parsed = |levels| super::parse::parse_value(&nested(kind, levels), "UTC");
            let deepest = (1..=100).rev().find(|levels| parsed(*levels).is_ok()).unwrap();
            let tree: Expr = parsed(deepest).unwrap();
            Tree::Value(&tree).ensure_bounded().unwrap_or_else(|error| panic!("{kind}: {error}"));
            if let Ok(bound) = Expression::bind(&nested(kind, deepest), &rows.schema(), "UTC") {
                assert_eq!(bound.evaluate(&rows).unwrap().len(), 3, "{kind}");
            }
        }
        let field = Field::new("x", DataType::Int64, true);
        let scope = Scope::new(&[("t", &rows.schema())], "UTC");
        assert!(scope.value(&nested(KINDS[0], 30), &field).is_ok());
    });
}
