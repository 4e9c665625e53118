package io.deltalog.spark;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.rules.Rule;
import scala.Product;

/**
 * Refuses to add a constraint to a view. Spark resolves the name in ADD CONSTRAINT like a name in a
 * query, so the statement would change the table that the view reads. Also refuses conditions that
 * writes must not evaluate.
 */
public class ConstraintTargets extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    // The class exists since Spark 4.1.
    if (!plan.getClass().getSimpleName().equals("AddCheckConstraint") || !plan.resolved()) {
      return plan;
    }
    // This query, a filter over the table, looks for rows that violate the constraint.
    LogicalPlan query = plan.children().head();
    StatementTarget target = StatementTarget.of(query);
    if (target != null && !target.isTable()) {
      throw Bridge.refusals().table(name(query), "it is a view");
    }
    if (target != null) {
      check((Product) ((Product) plan).productElement(1), name(query), target);
    }
    return plan;
  }

  /**
   * Checks a constraint in Spark's plan. Its element 1 is the condition as SQL, and its element 2
   * is the name.
   */
  private static void check(Product constraint, String table, StatementTarget target) {
    Attribute[] columns = Plans.list(target.output()).toArray(new Attribute[0]);
    String name = (String) constraint.productElement(2);
    RuleExpression.ofConstraint(table, name, (String) constraint.productElement(1))
        .resolved(columns);
  }

  private static String name(LogicalPlan query) {
    LogicalPlan target = query.children().head();
    return target instanceof SubqueryAlias subqueryAlias
        ? subqueryAlias.identifier().toString()
        : "the target";
  }
}
