package io.deltalog.spark;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Map;

/**
 * Hides the options of a stream that may be secrets. Spark 4.0 and 4.1 show all options of a stream
 * in its plan, although they hide secrets among the options of other reads.
 */
public class StreamSecrets extends Rule<LogicalPlan> {
  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    scala.collection.Iterator<LogicalPlan> leaves = plan.collectLeaves().iterator();
    while (leaves.hasNext()) {
      // The class of the node is in another package in later releases.
      if (CaseClass.field(leaves.next(), "dataSource") instanceof DataSource source
          && CatalogEntries.isOurs(source.className())) {
        hide(source);
      }
    }
    return plan;
  }

  /** Changes only what the plan shows. Spark starts the stream with a copy of the options. */
  private static void hide(DataSource source) {
    Map<String, String> shown = SQLConf.get().redactOptions(source.options());
    if (shown.equals(source.options())) {
      return;
    }
    try {
      HiddenFields.set(source, "options", shown);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("deltalog cannot hide the options of a stream", e);
    }
  }
}
