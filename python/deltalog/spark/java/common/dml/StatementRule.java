package io.deltalog.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Turns a resolved DELETE, UPDATE or MERGE on a table of ours into a command, at the end of the
 * analysis. So the statement reaches us as it was analyzed, before tables in it are replaced by
 * caches and answers from the log, and it has a result.
 */
public class StatementRule extends Rule<LogicalPlan> {
  private final SparkSession session;

  public StatementRule(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!StatementTarget.isStatement(plan) || !plan.resolved()) {
      return plan;
    }
    boolean isMerge = plan instanceof MergeIntoTable;
    LogicalPlan statement = isMerge ? withWholeSource((MergeIntoTable) plan) : plan;
    // Spark only checks plans that it can see.
    session.sessionState().analyzer().checkAnalysis(RandomValues.fixed(statement));
    AssignedValues.checkDistinct(statement, StatementTarget.of(statement).label());
    return new StatementCommand(statement, StatementCommand.counts(isMerge));
  }

  /**
   * Returns the statement with a source whose analysis is complete. What follows this rule prepares
   * expressions that are not deterministic, and functions for NULL, and does not see the statement
   * any more.
   */
  private LogicalPlan withWholeSource(MergeIntoTable merge) {
    LogicalPlan source = session.sessionState().analyzer().execute(merge.sourceTable());
    List<LogicalPlan> children = List.of(merge.targetTable(), source);
    return merge.withNewChildren(Plans.seq(children));
  }
}
