//! A short expression whose values are very large either fails with bounded memory, or returns the right rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::Int32Type;
use deltalog::{ErrorKind, Expression};
use deltalog_testkit::measure;

/// The maximum memory in bytes that a limited expression may use. It is several times the size of its values.
const MOST: usize = 500_000_000;

fn rows(count: usize) -> RecordBatch {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["s"; count]));
    RecordBatch::try_from_iter([("s", texts)]).unwrap()
}

fn evaluate(sql: &str, count: usize) -> (deltalog::Result<ArrayRef>, usize) {
    let rows = rows(count);
    measure(|| Expression::bind(sql, &rows.schema(), "UTC")?.evaluate(&rows))
}

#[test]
fn values_that_grow_are_refused() {
    let long = "s".repeat(1_000);
    let grown = (0..6).fold("s".to_owned(), |inner, _| format!("replace({inner}, 's', '{long}')"));
    for (sql, function) in [
        (grown.as_str(), "replace"),
        (&*grown.replace("(s,", "('s',"), "replace"),
        (&*format!("regexp_replace(repeat(s, 200000), 's', '{long}')"), "regexp_replace"),
        ("repeat(repeat(s, 30000), 30000)", "repeat"),
        ("repeat('x', 2000000000)", "repeat"),
        ("lpad(s, 2000000000, 'xy')", "lpad"),
        ("rpad(s, 2000000000)", "rpad"),
        ("concat_ws(repeat(s, 60000000), s, s, s)", "concat_ws"),
        ("concat(repeat(s, 50000000), repeat(s, 40000000))", "concat"),
        ("hex(repeat(s, 50000000))", "hex"),
        ("array(repeat(s, 40000000), repeat(s, 40000000))", "array"),
        ("trim(repeat(s, 70000000))", "trim"),
    ] {
        for sql in [sql.to_owned(), format!("length(upper({sql})) > 1"), format!("if(s = 's', {sql}, NULL)")]
        {
            if sql.starts_with("length(upper(array") {
                continue;
            }
            let (outcome, peak) = evaluate(&sql, 1);
            let error = outcome.map(|_| ()).expect_err(&sql);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{sql}: {error}");
            let text = error.to_string();
            assert!(text.contains(&format!("the values of {function} have ")), "{sql}: {text}");
            assert!(text.contains("may have at most 134217728 bytes"), "{sql}: {text}");
            assert!(error.hint().is_some() && peak < MOST, "{sql}: {peak} bytes");
        }
    }
}

#[test]
fn large_values_of_many_rows_are_computed_for_fewer_at_once() {
    for (sql, expected) in [
        ("octet_length(repeat(s, 1000000))", 1_000_000),
        (&*format!("octet_length(replace(repeat(s, 1000), 's', '{}'))", "x".repeat(1_000)), 1_000_000),
        // The value is not computed for rows that do not need it.
        ("length(if(s = 't', repeat(s, 2000000000), s))", 1),
        ("length(coalesce(s, repeat(s, 2000000000)))", 1),
    ] {
        let (values, peak) = evaluate(sql, 200);
        let values = values.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(values.len(), 200);
        assert!(
            values.as_primitive::<Int32Type>().values().iter().all(|length| *length == expected),
            "{sql}"
        );
        assert!(peak < MOST, "{sql}: {peak} bytes");
    }
}

#[test]
fn large_constants_are_not_kept() {
    let many = vec!["octet_length(repeat('x', 1000000)) > 1"; 300].join(" AND ");
    let (values, peak) = evaluate(&many, 2);
    assert_eq!(values.unwrap().as_boolean().true_count(), 2);
    assert!(peak < MOST / 4, "{peak} bytes");
}

#[test]
fn regular_expressions_are_limited() {
    for pattern in [
        r"a{1000}{1000}",
        r"((a{1,100}){1,100}){1,100}",
        r"(\\p{L}{1,200}){1,200}",
        &"(".repeat(5_000),
        &format!("{}a{}", "(".repeat(3_000), ")+".repeat(3_000)),
        &"a|".repeat(20_000),
    ] {
        let sql = format!("s RLIKE '{pattern}'");
        let (outcome, peak) = evaluate(&sql, 1);
        let error = outcome.map(|_| ()).expect_err(pattern);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains("regular expression"), "{error}");
        assert!(error.hint().is_some() && peak < MOST / 4, "{peak} bytes");
    }
    // The time is linear in the length of the text.
    let (outcome, _) = evaluate("repeat(s, 20000) RLIKE '(s+)*x'", 1);
    assert_eq!(outcome.unwrap().as_boolean().true_count(), 0);
}
