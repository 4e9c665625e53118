//! Tests that each filter selects the same rows from a table as DataFusion selects in memory, and is pushed down as
//! expected.

use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::expr::InList;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{Expr, Operator, TableProviderFilterPushDown, binary_expr, col, lit};
use datafusion_functions::core::expr_fn::get_field;
use datafusion_physical_expr::create_physical_expr;
use datafusion_session::TableProvider;
use deltalog_datafusion::DeltaTableProvider;

use crate::rows::batch;
use crate::support::{integers, rows, scan};
use crate::table::Table;

use TableProviderFilterPushDown::{Exact, Inexact, Unsupported};

fn text(value: &str) -> Expr {
    lit(ScalarValue::Utf8View(Some(value.to_owned())))
}

fn decimal(unscaled: i128) -> Expr {
    lit(ScalarValue::Decimal128(Some(unscaled), 10, 2))
}

fn day(days: i32) -> Expr {
    lit(ScalarValue::Date32(Some(days)))
}

fn instant(micros: i64) -> Expr {
    lit(ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into())))
}

fn bytes(value: &[u8]) -> Expr {
    lit(ScalarValue::BinaryView(Some(value.to_vec())))
}

fn is_one_of(column: &str, values: Vec<Expr>, negated: bool) -> Expr {
    Expr::InList(InList::new(Box::new(col(column)), values, negated))
}

/// The filters, and whether the scan evaluates them exactly, inexactly or not at all.
#[rustfmt::skip]
fn filters() -> Vec<(Expr, TableProviderFilterPushDown)> {
    let (i, f, g, s, b) = (|| col("i"), || col("f"), || col("g"), || col("s"), || col("b"));
    let compared = |left: Expr, op, right: Expr| binary_expr(left, op, right);
    let (nan, null) = (lit(f64::NAN), lit(ScalarValue::Int32(None)));
    let (integers, floats) = (|| [1, 2, 3].map(lit).to_vec(), || [0.0, 1.5].map(lit).to_vec());
    vec![
        (i().eq(lit(3)), Exact),
        (lit(3).gt_eq(i()), Exact),
        (i().not_eq(lit(3)), Exact),
        (i().lt(lit(0)).or(i().gt_eq(lit(5))), Exact),
        (i().is_null(), Exact),
        (i().is_not_null().and(b()), Exact),
        (!b(), Exact),
        (b().is_true(), Exact),
        (b().is_false(), Exact),
        (b().is_not_true(), Exact),
        (b().is_not_false(), Exact),
        (b().is_unknown(), Exact),
        (b().is_not_unknown(), Exact),
        (i().gt(lit(3)).is_not_true(), Exact),
        (compared(i(), Operator::IsDistinctFrom, lit(3)), Exact),
        (compared(i(), Operator::IsNotDistinctFrom, lit(3)), Exact),
        (i().between(lit(1), lit(4)), Exact),
        (i().not_between(lit(1), lit(4)), Exact),
        (is_one_of("i", integers(), false), Exact),
        (is_one_of("i", integers(), true), Exact),
        (is_one_of("i", vec![lit(1), null], false), Unsupported),
        ((i() + lit(1)).eq(lit(4)), Unsupported),
        // Parts that cannot be translated are left to DataFusion inside of an AND, but not inside of an OR or a NOT.
        (col("id").lt(lit(9_i64)).and((i() % lit(2)).eq(lit(1))), Inexact),
        (col("id").lt(lit(2_i64)).or((i() % lit(2)).eq(lit(1))), Unsupported),
        (!(col("id").lt(lit(9_i64)).and((i() % lit(2)).eq(lit(1)))), Unsupported),
        // Floating-point numbers, including NaNs and zeros of both signs.
        (f().gt(lit(1.5)), Inexact),
        (f().gt_eq(lit(1.5)), Inexact),
        (f().gt(lit(-0.0)), Inexact),
        (f().lt(lit(0.0)), Inexact),
        (f().lt_eq(lit(-0.0)), Inexact),
        (f().eq(lit(0.0)), Inexact),
        (f().eq(lit(-0.0)), Inexact),
        (f().not_eq(lit(0.0)), Unsupported),
        (!f().gt(lit(1.5)), Unsupported),
        (f().gt(lit(1.5)).is_true(), Unsupported),
        (f().eq(nan), Unsupported),
        (f().is_null(), Exact),
        (is_one_of("f", floats(), false), Inexact),
        (is_one_of("f", floats(), true), Unsupported),
        (f().between(lit(-1.0), lit(1.5)), Inexact),
        (f().lt(lit(1.0)).or(i().eq(lit(3))), Inexact),
        (f().lt(col("h")), Inexact),
        (g().gt(lit(1.5_f32)), Inexact),
        (g().eq(lit(0.1_f32)), Inexact),
        // Strings and bytes.
        (s().eq(text("it's")), Exact),
        (s().eq(text("a\\b")), Exact),
        (s().eq(text("")), Exact),
        (s().lt(text("b")), Exact),
        (s().gt(text("é")), Exact),
        (s().like(text("a%")), Exact),
        (s().like(text("%b")), Exact),
        (s().like(text("%a%")), Exact),
        (s().like(text("a_b")), Exact),
        (s().like(text("_")), Exact),
        (s().not_like(text("%a%")), Exact),
        (s().like(text("a\\%b")), Unsupported),
        (s().ilike(text("A%")), Unsupported),
        (is_one_of("s", vec![text("a%b"), text("it's"), text("100%")], false), Exact),
        (col("x").eq(bytes(&[0, 255])), Exact),
        (col("x").gt(bytes(&[127])), Exact),
        // Decimals, dates and times.
        (col("d").eq(decimal(150)), Exact),
        (col("d").lt(decimal(-1)), Exact),
        (is_one_of("d", vec![decimal(150), decimal(225)], true), Exact),
        (col("day").eq(day(19_782)), Exact),
        (col("day").lt(day(0)), Exact),
        (col("t").gt_eq(instant(1_704_067_200_000_000)), Exact),
        (col("t").gt_eq(lit(ScalarValue::TimestampMicrosecond(Some(0), None))), Unsupported),
        (col("n").lt(lit(ScalarValue::TimestampMicrosecond(Some(6), None))), Exact),
        // Fields of structs.
        (get_field(col("o"), "k").eq(lit(3)), Exact),
        (get_field(col("o"), "k").is_null(), Exact),
        (get_field(col("o"), "v").lt(lit(1.0)), Inexact),
    ]
}

/// Returns the ids of the rows for which DataFusion evaluates `filter` to true.
fn selected(filter: &Expr, batch: &RecordBatch) -> Vec<i64> {
    let schema = DFSchema::try_from(batch.schema()).unwrap();
    let expr =
        create_physical_expr(filter, &schema, &ExecutionProps::new(), &PhysicalPlanningContext::default())
            .unwrap();
    let found = expr.evaluate(batch).unwrap().into_array(batch.num_rows()).unwrap();
    integers(&[arrow::compute::filter_record_batch(batch, found.as_boolean()).unwrap()])
}

/// Converts `batch` to the types that the provider has, which are views.
fn with_views(batch: &RecordBatch, provider: &DeltaTableProvider) -> RecordBatch {
    let schema = provider.schema();
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| arrow::compute::cast(column, field.data_type()).unwrap());
    RecordBatch::try_new(Arc::clone(&schema), columns.collect()).unwrap()
}

async fn check(properties: &[(&str, &str)], deleted: Option<i64>) {
    let batch = batch();
    let table = Table::new(properties, &[], &[batch.slice(0, 5), batch.slice(5, 1), batch.slice(6, 6)]);
    if let Some(id) = deleted {
        table.delete(&format!("id = {id}"));
    }
    let provider = table.provider();
    let batch = with_views(&batch, &provider);
    let mut wrong = Vec::new();
    for (filter, expected) in filters() {
        let support = provider.supports_filters_pushdown(&[&filter]).unwrap().remove(0);
        if support != expected {
            wrong.push(format!("{filter} is {support:?} instead of {expected:?}"));
            continue;
        }
        if support == Unsupported {
            continue;
        }
        let mut truth = selected(&filter, &batch);
        truth.retain(|id| deleted != Some(*id));
        let found = rows(scan(&provider, None, std::slice::from_ref(&filter), None).await).await.unwrap();
        let mut found = match support {
            Exact => integers(&found),
            _ => found.iter().flat_map(|batch| selected(&filter, batch)).collect(),
        };
        found.sort_unstable();
        if found != truth {
            wrong.push(format!("{filter}: {found:?} instead of {truth:?}"));
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
