package io.deltalog.spark;

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.slf4j.LoggerFactory;

/**
 * A change of nodes of a plan that only saves time, so it never fails a query. If anything goes
 * wrong, the node stays, and the first failure is logged.
 */
abstract class Improvement extends NodeChange<LogicalPlan> {
  private final AtomicBoolean hasWarned;
  private final String failure;

  /** Creates it; failure says what does not work, and hasWarned whether that was logged before. */
  protected Improvement(String failure, AtomicBoolean hasWarned) {
    this.failure = failure;
    this.hasWarned = hasWarned;
  }

  /** Returns what takes the place of the node, or the node. */
  protected abstract LogicalPlan improved(LogicalPlan node) throws Exception;

  @Override
  protected LogicalPlan changed(LogicalPlan node) {
    try {
      return improved(node);
    } catch (DeltalogException e) {
      throw e; // Python handles its own failures; only a user's interrupt arrives here.
    } catch (Exception | LinkageError e) {
      warnOnce(e); // A LinkageError: this Spark release lacks a method or class.
    }
    return node;
  }

  private void warnOnce(Throwable problem) {
    if (!hasWarned.getAndSet(true)) {
      LoggerFactory.getLogger(getClass()).warn(failure + "; this is logged once", problem);
    }
  }
}
