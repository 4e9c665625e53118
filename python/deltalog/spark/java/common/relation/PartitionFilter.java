package io.deltalog.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;

/**
 * Applies the filters that read only partition columns. Spark relies on the file index for these
 * filters and does not apply them again. So they are evaluated exactly in this class, independently
 * of the planner.
 */
public class PartitionFilter extends NodeChange<Expression> {
  private final StructType schema;
  private BasePredicate predicate;

  public PartitionFilter(Seq<Expression> filters, StructType schema) {
    this.schema = schema;
    Expression all = null;
    for (Expression expression : Plans.each(filters)) {
      Expression filter = expression.transform(this);
      all = all == null ? filter : new And(all, filter);
    }
    if (all != null) {
      predicate = Predicate$.MODULE$.createInterpreted(all);
      predicate.initialize(0);
    }
  }

  public boolean keeps(InternalRow values) {
    return predicate == null || predicate.eval(values);
  }

  @Override
  public boolean isDefinedAt(Expression node) {
    return node instanceof AttributeReference;
  }

  @Override
  protected Expression changed(Expression node) {
    int column = schema.fieldIndex(((AttributeReference) node).name());
    return new BoundReference(column, schema.fields()[column].dataType(), true);
  }
}
