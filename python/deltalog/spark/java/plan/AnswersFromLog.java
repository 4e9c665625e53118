package io.deltalog.spark;

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.slf4j.LoggerFactory;
import scala.Function1;

/**
 * A rule of Spark's optimizer that answers aggregates from the log. Users disable it by listing its name in
 * spark.sql.optimizer.excludedRules.
 *
 * The rule only saves time, so it never fails a query. If anything goes wrong, the scan stays, and the first
 * failure is logged.
 */
public class AnswersFromLog extends Rule {
  /** The name that users write in settings. It does not depend on the package of the class. */
  private static final String NAME = "io.deltalog.spark.AnswersFromLog";
  private static final AtomicBoolean warned = new AtomicBoolean();

  public String ruleName() {
    return NAME;
  }

  public TreeNode apply(TreeNode plan) {
    return plan.transform(new Aggregates());
  }

  private static void warnOnce(Throwable problem) {
    if (!warned.getAndSet(true)) {
      String message = "deltalog cannot answer an aggregate from the log and reads the data files instead; "
          + "this is logged once";
      LoggerFactory.getLogger(AnswersFromLog.class).warn(message, problem);
    }
  }

  /** Replaces the aggregates of a plan. */
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
      } catch (DeltalogException e) {
        throw e; // Python handles its own failures; only a user's interrupt arrives here.
      } catch (Exception e) {
        warnOnce(e);
      } catch (LinkageError e) { // This Spark release lacks a method or class.
        warnOnce(e);
      }
      return node;
    }
  }
}
