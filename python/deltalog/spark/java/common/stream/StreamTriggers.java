package io.deltalog.spark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;

/**
 * Refuses the continuous trigger for streams that write to tables, because it makes no batches.
 * Spark would only say that the type of the trigger is unknown.
 */
public class StreamTriggers extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof WriteToStreamStatement write
        && write.sink() instanceof StreamSink
        && isContinuous(write)) {
      throw Bridge.refusals()
          .feature(
              "deltalog does not support the continuous trigger, because it commits batches: use"
                  + " processingTime, availableNow or once");
    }
    return plan;
  }

  /**
   * In Spark 4.0, the statement has a flag. In later releases it has the trigger, and the package
   * of the trigger's class differs between releases.
   */
  private static boolean isContinuous(WriteToStreamStatement write) {
    Object trigger = CaseClass.field(write, "trigger");
    return Boolean.TRUE.equals(CaseClass.field(write, "isContinuousTrigger"))
        || (trigger != null && trigger.getClass().getSimpleName().equals("ContinuousTrigger"));
  }
}
