package io.deltalog.spark;

import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;

/**
 * Turns a resolved DELETE, UPDATE or MERGE on one of our tables into a command, at the end of the
 * analysis. At that point, the tables in the statement are not yet replaced with cached data or
 * values from the log. Unlike a statement, a command can return a result.
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
    // Spark cannot check the plan inside the command, so it is checked here.
    session.sessionState().analyzer().checkAnalysis(RandomValues.fixed(statement));
    AssignedValues.checkDistinct(statement, StatementTarget.of(statement).label());
    return new StatementCommand(statement, StatementCommand.counts(isMerge));
  }

  /**
   * Returns the statement with a completely analyzed source. This is done here, because the
   * analyzer's later rules do not see the statement inside the command. These rules prepare
   * nondeterministic expressions, and the handling of NULL by functions.
   */
  private LogicalPlan withWholeSource(MergeIntoTable merge) {
    LogicalPlan source = session.sessionState().analyzer().execute(merge.sourceTable());
    List<LogicalPlan> children = List.of(merge.targetTable(), source);
    return merge.withNewChildren(Plans.seq(children));
  }
}
