package io.deltalog.spark;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import scala.Product;
import scala.collection.immutable.Seq;

/**
 * Allows values in UPDATE and MERGE that are not deterministic, such as uuid() or rand().
 *
 * <p>Spark refuses such values everywhere in these statements. In assigned values they are safe:
 * each is an expression in a single projection over the changed rows, which Spark never evaluates
 * twice. If a task is repeated, only the files of one attempt are used. In conditions they are
 * still refused, because a condition is evaluated more than once to find files and rows.
 *
 * <p>They are also refused for structs and maps, because Spark casts these field by field, and
 * evaluates the whole value for each field.
 */
public class RandomValues {
  private RandomValues() {}

  /** Returns the statement with such values replaced with constants, which pass Spark's checks. */
  static LogicalPlan fixed(LogicalPlan statement) {
    LogicalPlan made = statement;
    Product parts = (Product) statement;
    for (int i = 0; i < parts.productArity(); i++) {
      if (parts.productElement(i) instanceof Seq<?> items) {
        List<Object> all = Plans.list(items);
        boolean isSame = true;
        for (int j = 0; j < all.size(); j++) {
          Object item = all.get(j);
          all.set(j, item instanceof Expression expression ? fixed(expression, false) : item);
          isSame = isSame && all.get(j) == item;
        }
        if (!isSame) {
          Object changed = Plans.seq(all);
          made = EvolvingWrites.with(made, Map.of(parts.productElementName(i), changed));
        }
      }
    }
    return made;
  }

  private static Expression fixed(Expression expression, boolean isAssigned) {
    if (expression.deterministic()) {
      return expression;
    }
    List<Expression> children = Plans.list(expression.children());
    boolean isSame = true;
    for (int i = 0; i < children.size(); i++) {
      Expression child = children.get(i);
      // The first child is the column.
      boolean isValue =
          isAssigned
              || (expression instanceof Assignment assignment
                  && i == 1
                  && !hasParts(assignment.key().dataType()));
      children.set(i, fixed(child, isValue));
      isSame = isSame && children.get(i) == child;
    }
    if (!isSame) {
      return expression.withNewChildren(Plans.seq(children));
    }
    return isAssigned ? Plans.nothing(expression.dataType()) : expression;
  }

  private static boolean hasParts(DataType type) {
    return type instanceof StructType
        || type instanceof MapType
        || (type instanceof ArrayType array && hasParts(array.elementType()));
  }
}
