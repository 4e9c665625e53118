package io.deltalog.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;

/** Gives new ids to the columns of a plan. */
class Renumbering extends NodeChange<Expression> {
  private final Map<ExprId, ExprId> ids;

  Renumbering(Map<ExprId, ExprId> ids) {
    this.ids = ids;
  }

  @Override
  public boolean isDefinedAt(Expression node) {
    return (node instanceof AttributeReference || node instanceof Alias)
        && ids.containsKey(((NamedExpression) node).exprId());
  }

  @Override
  protected Expression changed(Expression node) {
    ExprId id = ids.get(((NamedExpression) node).exprId());
    return node instanceof Alias alias
        ? Plans.alias(alias.child(), alias.name(), id)
        : ((AttributeReference) node).withExprId(id);
  }
}
