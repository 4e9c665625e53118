package io.deltalog.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * The filters that read only partition columns. Spark leaves them to the file index and does not
 * apply them again, so they are evaluated exactly here, independently of the planner.
 */
public class PartitionFilter extends scala.runtime.AbstractPartialFunction {
  private final StructType schema;
  private BasePredicate predicate;

  public PartitionFilter(Seq filters, StructType schema) {
    this.schema = schema;
    Expression all = null;
    Iterator each = filters.iterator();
    while (each.hasNext()) {
      Expression filter = ((Expression) each.next()).transform(this);
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
  public boolean isDefinedAt(Object node) {
    return node instanceof AttributeReference;
  }

  @Override
  public Object applyOrElse(Object node, Function1 otherwise) {
    if (node instanceof AttributeReference attributeReference) {
      int column = schema.fieldIndex(attributeReference.name());
      return new BoundReference(column, schema.fields()[column].dataType(), true);
    }
    return otherwise.apply(node);
  }
}
