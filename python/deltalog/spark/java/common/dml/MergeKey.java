package io.deltalog.spark;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.*;
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
   * Returns whether a row can match only if its value lies in the range of the source's values, so
   * that bounds may be used. Returns false for floating-point numbers, because NaN equals itself in
   * Spark, for types without an order, and for a value of another type than the column.
   */
  public boolean isOrdered() {
    DataType type = column.dataType();
    return RowOrdering$.MODULE$.isOrderable(type)
        && !(type instanceof FloatType)
        && !(type instanceof DoubleType)
        && type.equals(value.dataType());
  }

  /**
   * Returns a condition that is true for all rows of the target that can match the source; at is
   * the index of this key.
   */
  public Expression filter(KeySummary source, int at) {
    Object least = source.least(at);
    if (least == null) {
      return Literal$.MODULE$.FalseLiteral();
    }
    DataType type = column.dataType();
    if (!source.hasAll()) {
      Expression from = new GreaterThanOrEqual(column, new Literal(least, type));
      return new And(from, new LessThanOrEqual(column, new Literal(source.greatest(at), type)));
    }
    Set<Expression> values = new LinkedHashSet<>();
    List<Object> all = source.values(at);
    for (Object each : all) {
      values.add(new Literal(each, type));
    }
    return new In(column, Plans.seq(new ArrayList<>(values)));
  }
}
