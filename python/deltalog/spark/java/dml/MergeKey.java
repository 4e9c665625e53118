package io.deltalog.spark;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;

/** A column of a MERGE's target that must equal a value of the source. */
public class MergeKey {
  private final Attribute column;
  private final Expression value;

  public MergeKey(Attribute column, Expression value) {
    this.column = column;
    this.value = value;
  }

  public Expression value() {
    return value;
  }

  /**
   * Returns whether the order of the values decides which rows can match, so that bounds may be used. It does not for
   * floating point numbers, of which NaN equals itself, and for types without an order.
   */
  public boolean isOrdered() {
    DataType type = column.dataType();
    return RowOrdering$.MODULE$.isOrderable(type) && !(type instanceof FloatType) && !(type instanceof DoubleType)
        && type.equals(value.dataType());
  }

  /** Returns the condition that the column is between two values of a row; null if there are none. */
  public Expression between(InternalRow bounds, int at) {
    if (bounds.isNullAt(at)) {
      return Literal$.MODULE$.FalseLiteral();
    }
    DataType type = column.dataType();
    Expression least = new Literal(bounds.get(at, type), type);
    Expression greatest = new Literal(bounds.get(at + 1, type), type);
    return new And(new GreaterThanOrEqual(column, least), new LessThanOrEqual(column, greatest));
  }

  /** Returns the condition that the column is one of the values in the column at this index of the rows. */
  public Expression among(InternalRow[] rows, int at) {
    DataType type = column.dataType();
    Set values = new LinkedHashSet();
    for (int i = 0; i < rows.length; i++) {
      if (!rows[i].isNullAt(at)) {
        values.add(new Literal(rows[i].get(at, type), type));
      }
    }
    List all = new ArrayList(values);
    return all.isEmpty() ? Literal$.MODULE$.FalseLiteral() : new In(column, Plans.seq(all));
  }

  /** Returns the rows of a small query, in Spark's own form. */
  public static InternalRow[] rows(Dataset data) {
    return data.queryExecution().executedPlan().executeCollect();
  }
}
