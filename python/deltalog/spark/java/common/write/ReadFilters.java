package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.MetadataAttribute$;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.InnerLike;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftOuter$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;

/**
 * Finds the conditions that decide which rows of a table matter to an analyzed plan. Conditions of
 * a filter or a join are pushed down the plan as long as rows that do not meet them cannot affect
 * the result:
 *
 * <ul>
 *   <li>through projections, names and views;
 *   <li>into both sides of an inner join; for an outer, semi or anti join, into the side that the
 *       join keeps;
 *   <li>from a join's own condition, into each side on which the join drops rows without a match.
 * </ul>
 *
 * They are not pushed through other nodes, such as aggregates, limits and windows. Below these, all
 * rows matter.
 */
public class ReadFilters {
  private static final List<Expression> NONE = Collections.emptyList();

  private ReadFilters() {}

  /**
   * Returns the conditions for the rows of a child, if only rows of the node that meet `above`
   * matter.
   */
  public static List<Expression> below(LogicalPlan node, int child, List<Expression> above) {
    if (node instanceof Filter filter) {
      return both(above, Plans.conjuncts(filter.condition()));
    }
    if (node instanceof Project || node instanceof SubqueryAlias || node instanceof View) {
      return above;
    }
    if (node instanceof Join join) {

      JoinType type = join.joinType();
      boolean isInner = type instanceof InnerLike;
      boolean isLeft = child == 0;
      boolean keepsLeft =
          type == LeftOuter$.MODULE$ || type == LeftAnti$.MODULE$ || type instanceof ExistenceJoin;
      boolean isSemi = type == LeftSemi$.MODULE$;
      boolean isRightOuter = type == RightOuter$.MODULE$;
      boolean isShown = isInner || (isLeft ? keepsLeft || isSemi : isRightOuter);
      boolean mustMatch = isInner || isSemi || (isLeft ? isRightOuter : keepsLeft);
      List<Expression> own =
          join.condition().isDefined() ? Plans.conjuncts(join.condition().get()) : NONE;
      return both(isShown ? above : NONE, mustMatch ? own : NONE);
    }
    return NONE;
  }

  private static List<Expression> both(List<Expression> some, List<Expression> others) {
    List<Expression> all = new ArrayList<>(some);
    all.addAll(others);
    return all;
  }

  /**
   * Returns, as one SQL string, the conditions that only read columns of the relation; an empty
   * string if there are none.
   */
  public static String text(LogicalPlan relation, List<Expression> conditions) {
    List<Expression> found = new ArrayList<>();
    for (Expression condition : conditions) {
      if (isAboutRows(condition) && looksAtColumns(condition, relation)) {
        found.add(Plans.simplified(condition, relation));
      }
    }
    return FilterText.of(
        DataSourceStrategy$.MODULE$.normalizeExprs(Plans.seq(found), relation.output()));
  }

  /**
   * Returns whether a condition reads only columns of the relation, and none of its hidden columns.
   */
  private static boolean looksAtColumns(Expression condition, LogicalPlan relation) {
    for (Attribute column : Plans.each(condition.references())) {
      if (!relation.outputSet().contains(column)
          || MetadataAttribute$.MODULE$.isValid(column.metadata())) {
        return false;
      }
    }
    return true;
  }

  /**
   * Returns whether a condition depends only on a row of one table, and not, for example, on the
   * time of day.
   */
  private static boolean isAboutRows(Expression condition) {
    return condition.deterministic()
        && !condition.references().isEmpty()
        && !condition.containsPattern(TreePattern.CURRENT_LIKE())
        && !condition.containsPattern(TreePattern.OUTER_REFERENCE())
        && !condition.containsPattern(TreePattern.PLAN_EXPRESSION());
  }
}
