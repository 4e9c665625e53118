//! Tests that each filter selects the same rows from a table as from rows in memory, and is pushed down as expected.

use datafusion::catalog::TableProvider;

use crate::rows::batch;
use crate::support::{context, in_memory, integers, plan};
use crate::table::Table;

/// How a filter is evaluated.
#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    /// By the scan alone.
    Scan,
    /// By the scan, and again by DataFusion.
    Both,
    /// By DataFusion alone.
    DataFusion,
}

use By::{Both, DataFusion, Scan};

const FILTERS: &[(&str, By)] = &[
    ("i = 3", Scan),
    ("i <> 3", Scan),
    ("i < 0 OR i >= 5", Scan),
    ("i IS NULL", Scan),
    ("i IS NOT NULL AND b", Scan),
    ("NOT b", Scan),
    ("b IS TRUE", Scan),
    ("b IS NOT TRUE", Scan),
    ("b IS NOT FALSE", Scan),
    ("b IS UNKNOWN", Scan),
    ("(i > 3) IS NOT TRUE", Scan),
    ("i IS DISTINCT FROM 3", Scan),
    ("i IS NOT DISTINCT FROM 3", Scan),
    ("i BETWEEN 1 AND 4", Scan),
    ("i NOT BETWEEN 1 AND 4", Scan),
    ("i IN (1, 2, 3, 4, 5)", Scan),
    ("i NOT IN (1, 2, 3, 4, 5)", Scan),
    ("i IN (1, 2, 3, 4, NULL)", DataFusion),
    ("i = id", DataFusion),
    ("id = 4 AND i % 2 = 0", Both),
    ("i + 1 = 4", DataFusion),
    // DataFusion casts the column to the type of the literal.
    ("i < 100000000000", DataFusion),
    // Floating-point numbers, including NaNs and zeros of both signs.
    ("f > 1.5", Both),
    ("f >= 1.5", Both),
    ("f < 0.0", Both),
    ("f <= -0.0", Both),
    ("f = 0.0", Both),
    ("f = -0.0", Both),
    ("f <> 0.0", DataFusion),
    ("NOT (f > 1.5)", Both),
    ("NOT (f = 1.5)", DataFusion),
    ("f = 'NaN'", DataFusion),
    ("f IS NULL", Scan),
    ("f IN (0.0, 1.5, 2.5, 3.5)", Both),
    ("f NOT IN (0.0, 1.5, 2.5, 3.5)", DataFusion),
    ("f BETWEEN -1.0 AND 1.5", Both),
    ("g > 1.5", DataFusion),
    ("g > arrow_cast(1.5, 'Float32')", Both),
    ("g = 0.1", DataFusion),
    ("f < 1.0 OR i = 3", Both),
    ("(f < 1.0 AND i = 3) IS TRUE", DataFusion),
    // Strings and bytes.
    ("s = 'it''s'", Scan),
    ("s = 'a\\b'", Scan),
    ("s < 'b'", Scan),
    ("s > 'é'", Scan),
    ("s LIKE 'a%'", Scan),
    ("s LIKE '%b'", Scan),
    ("s LIKE '%a%'", Scan),
    ("s LIKE 'a_b'", Scan),
    ("s LIKE '_'", Scan),
    ("s NOT LIKE '%a%'", Scan),
    ("s LIKE 'a\\%b'", DataFusion),
    ("s ILIKE 'A%'", DataFusion),
    ("s IN ('a%b', 'it''s', '100%', 'x')", Scan),
    ("s = ''", Scan),
    ("x = X'00FF'", Scan),
    ("x > X'7F'", Scan),
    // Decimals, dates and times.
    ("d = 1.50", Scan),
    ("d < -0.01", Scan),
    ("d IN (1.50, 2.25, 3.00, 4.00)", Scan),
    ("day = DATE '2024-02-29'", Scan),
    ("day < DATE '1970-01-01'", Scan),
    ("t >= TIMESTAMP '2024-01-01T00:00:00Z'", Scan),
    ("t = arrow_cast('2024-01-01T02:00:00+02:00', 'Timestamp(Microsecond, Some(\"UTC\"))')", Scan),
    ("n < TIMESTAMP '2024-01-01T00:00:00.000001'", Scan),
    ("n IS NOT NULL", Scan),
    // Fields of structs.
    ("get_field(o, 'k') = 3", Scan),
    ("get_field(o, 'k') IS NULL", Scan),
    ("get_field(o, 'v') < 1.0", Both),
];

async fn check(properties: &[(&str, &str)], deleted: Option<i64>) {
    let batch = batch();
    let parts = [batch.slice(0, 5), batch.slice(5, 1), batch.slice(6, 6)];
    let table = Table::new(properties, &[], &parts);
    let mut left = vec![batch.clone()];
    if let Some(id) = deleted {
        table.delete(&format!("id = {id}"));
        let at = usize::try_from(id).unwrap();
        left = vec![batch.slice(0, at), batch.slice(at + 1, batch.num_rows() - at - 1)];
    }
    let (context, provider) = (context(), table.provider());
    in_memory(&context, "m", provider.schema(), &left);
    context.register_table("t", provider).unwrap();
    let mut wrong = Vec::new();
    for (filter, expected) in FILTERS {
        let of = |name: &str| format!("SELECT id FROM {name} WHERE {filter}");
        let (ours, theirs) = (integers(&context, &of("t")).await, integers(&context, &of("m")).await);
        let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
        if ours != theirs {
            wrong.push(format!("{filter}: {ours:?} instead of {theirs:?}"));
        }
        let plan = plan(&context, &of("t")).await;
        let by = match (plan.contains("predicate="), plan.contains("FilterExec")) {
            (true, false) => Scan,
            (true, true) => Both,
            _ => DataFusion,
        };
        if by != *expected {
            wrong.push(format!("{filter} is evaluated by {by:?} instead of {expected:?}: {plan}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn filters_select_the_same_rows() {
    check(&[("delta.enableDeletionVectors", "false")], None).await;
}

#[tokio::test]
async fn filters_select_the_same_rows_with_column_mapping_and_deletion_vectors() {
    let properties = [("delta.columnMapping.mode", "name"), ("delta.enableDeletionVectors", "true")];
    check(&properties, Some(3)).await;
}
