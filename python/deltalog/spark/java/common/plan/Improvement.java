package io.deltalog.spark;

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.slf4j.LoggerFactory;

/**
 * An optimization of nodes of a plan that must never fail a query. If it fails, the node stays
 * unchanged, and the first failure is logged.
 */
abstract class Improvement extends NodeChange<LogicalPlan> {
  private final AtomicBoolean hasWarned;
  private final String failure;

  /**
   * Creates the optimization; failure is the message of the warning, and hasWarned states whether
   * it was already logged.
   */
  protected Improvement(String failure, AtomicBoolean hasWarned) {
    this.failure = failure;
    this.hasWarned = hasWarned;
  }

  /** Returns the replacement of the node, or the node itself. */
  protected abstract LogicalPlan improved(LogicalPlan node) throws Exception;

  @Override
  protected LogicalPlan changed(LogicalPlan node) {
    try {
      return improved(node);
    } catch (DeltalogException e) {
      throw e; // Python handles its own failures; only a user's interrupt arrives here.
    } catch (Exception | LinkageError e) {
      warnOnce(e); // A LinkageError means that this Spark release lacks a method or class.
    }
    return node;
  }

  private void warnOnce(Throwable problem) {
    if (!hasWarned.getAndSet(true)) {
      LoggerFactory.getLogger(getClass()).warn(failure + "; this is logged once", problem);
    }
  }
}
