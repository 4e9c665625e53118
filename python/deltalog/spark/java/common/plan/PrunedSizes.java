package io.deltalog.spark;

import java.util.Collections;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;

/**
 * An optimizer rule for Spark that sets the size of each filtered scan to the size of the files
 * that remain after the filters. Spark then chooses join strategies by these sizes. The files are
 * listed earlier than without this rule, but not twice (see Listings).
 *
 * <p>Users disable the rule by listing its name in spark.sql.optimizer.excludedRules.
 */
public class PrunedSizes extends Rule<LogicalPlan> {
  /** The name that users write in settings. It does not depend on the package of the class. */
  private static final String NAME = "io.deltalog.spark.PrunedSizes";

  private static final AtomicBoolean warned = new AtomicBoolean();

  @Override
  public String ruleName() {
    return NAME;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.transformDown(new Scans());
  }

  /** Changes scans below filters and projections, beginning with the outermost nodes. */
  private static final class Scans extends Improvement {
    Scans() {
      super(
          "deltalog cannot tell Spark the size of the files that a query reads, and reports the"
              + " size of the whole table",
          warned);
    }

    @Override
    public boolean isDefinedAt(LogicalPlan node) {
      return node instanceof Project || node instanceof Filter;
    }

    @Override
    protected LogicalPlan improved(LogicalPlan node) throws Exception {
      return sized(node);
    }
  }

  private static LogicalPlan sized(LogicalPlan plan) throws Exception {
    boolean isFiltered = false;
    LogicalPlan scan = plan;
    while (scan instanceof Project || scan instanceof Filter) {
      isFiltered |= scan instanceof Filter;
      scan = scan.children().head();
    }
    if (!isFiltered || !isUnsized(scan)) {
      return plan;
    }
    long size = ScanPlan.size(plan);
    return size < 0 ? plan : plan.transformDown(new Sized(scan, withSize(scan, size)));
  }

  private static boolean isUnsized(LogicalPlan scan) {
    if (FileRelation.isScan(scan)) {
      return !((DeltalogScan) ((DataSourceV2ScanRelation) scan).scan()).isPruned();
    }
    return scan instanceof LogicalRelation logicalRelation
        && logicalRelation.relation() instanceof DeltalogRelation relation
        && !relation.isPruned();
  }

  private static LogicalPlan withSize(LogicalPlan scan, long bytes) throws Exception {
    long size = (long) (bytes * SQLConf.get().fileCompressionFactor());
    if (scan instanceof LogicalRelation logicalRelation) {
      DeltalogRelation relation = (DeltalogRelation) logicalRelation.relation();
      return (LogicalPlan)
          CaseClass.with(
              logicalRelation, Collections.singletonMap("relation", relation.withSize(size)));
    }
    DeltalogScan sized = ((DeltalogScan) ((DataSourceV2ScanRelation) scan).scan()).withSize(size);
    return (LogicalPlan)
        CaseClass.with((DataSourceV2ScanRelation) scan, Collections.singletonMap("scan", sized));
  }

  /** Replaces one scan with another. */
  private static final class Sized extends NodeChange<LogicalPlan> {
    private final LogicalPlan scan;
    private final LogicalPlan sized;

    Sized(LogicalPlan scan, LogicalPlan sized) {
      this.scan = scan;
      this.sized = sized;
    }

    @Override
    public boolean isDefinedAt(LogicalPlan node) {
      return node == scan;
    }

    @Override
    protected LogicalPlan changed(LogicalPlan node) {
      return sized;
    }
  }
}
