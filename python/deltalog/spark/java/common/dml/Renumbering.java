package io.deltalog.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/** Gives columns of a plan other ids. */
class Renumbering extends AbstractPartialFunction {
  private final Map ids;

  Renumbering(Map ids) {
    this.ids = ids;
  }

  @Override
  public boolean isDefinedAt(Object node) {
    return node instanceof NamedExpression named && ids.containsKey(named.exprId());
  }

  @Override
  public Object applyOrElse(Object node, Function1 otherwise) {
    if (node instanceof AttributeReference column && isDefinedAt(column)) {
      return column.withExprId((ExprId) ids.get(column.exprId()));
    }
    return node instanceof Alias alias && isDefinedAt(alias)
        ? Plans.alias(alias.child(), alias.name(), (ExprId) ids.get(alias.exprId()))
        : otherwise.apply(node);
  }
}
