package io.deltalog.spark;

import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.Function1;

/**
 * The rule of Spark's optimizer that has aggregates answered by the log; spark.sql.optimizer.excludedRules
 * turns it off under its full name.
 */
public class AnswersFromLog extends Rule {
  public TreeNode apply(TreeNode plan) {
    return plan.transform(new Aggregates());
  }

  /** Every aggregate of a plan. */
  public static final class Aggregates extends scala.runtime.AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return node instanceof Aggregate;
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      if (!isDefinedAt(node)) {
        return otherwise.apply(node);
      }
      try {
        return LogAnswers.instead((Aggregate) node);
      } catch (RuntimeException e) {
        throw e;
      } catch (Exception e) {
        throw new IllegalStateException("deltalog cannot use this version of Spark's optimizer: " + e, e);
      }
    }
  }
}
