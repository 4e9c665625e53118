package io.deltalog.spark;

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.slf4j.LoggerFactory;
import scala.Function1;

/**
 * A rule of Spark's optimizer that answers aggregates from the log. The setting
 * spark.sql.optimizer.excludedRules turns it off by its name.
 *
 * The rule only saves time, so it never fails a query: when anything goes wrong here, the scan stays, and the
 * first such failure is logged.
 */
public class AnswersFromLog extends Rule {
  /** Users write this name in settings, so it stays the same whatever package the class is in. */
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
      LoggerFactory.getLogger(AnswersFromLog.class).warn("deltalog cannot answer an aggregate from the log and reads the data files instead; this is logged once", problem);
    }
  }

  /** The aggregates of a plan. */
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
        throw e; // Python keeps the scan by itself; only an interrupt of the user's arrives here.
      } catch (Exception e) {
        warnOnce(e);
      } catch (LinkageError e) { // This release of Spark lacks a method or class.
        warnOnce(e);
      }
      return node;
    }
  }
}
