package io.deltalog.spark;

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * An optimizer rule for Spark that computes aggregates from the log instead of the data files.
 * Users disable it by listing its name in spark.sql.optimizer.excludedRules.
 */
public class AnswersFromLog extends Rule<LogicalPlan> {
  /** The name that users write in settings. It does not depend on the package of the class. */
  private static final String NAME = "io.deltalog.spark.AnswersFromLog";

  private static final AtomicBoolean warned = new AtomicBoolean();

  @Override
  public String ruleName() {
    return NAME;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.transform(new Aggregates());
  }

  /** Replaces the aggregates of a plan. */
  private static final class Aggregates extends Improvement {
    Aggregates() {
      super(
          "deltalog cannot answer an aggregate from the log and reads the data files instead",
          warned);
    }

    @Override
    public boolean isDefinedAt(LogicalPlan node) {
      return node instanceof Aggregate;
    }

    @Override
    protected LogicalPlan improved(LogicalPlan node) throws Exception {
      return LogAnswers.instead((Aggregate) node);
    }
  }
}
