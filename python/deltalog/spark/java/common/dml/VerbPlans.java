package io.deltalog.spark;

import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.execution.QueryExecution;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * The plans of the verbs, as Spark's parser makes them of statements. Spark resolves and checks
 * both alike.
 */
public class VerbPlans {
  private final SparkSession session;
  private final OwnColumns own;

  /** The columns are those of the table's frames. */
  public VerbPlans(SparkSession session, OwnColumns own) {
    this.session = session;
    this.own = own;
  }

  public LogicalPlan delete(Dataset target, Column condition) {
    Expression rows =
        condition == null ? Literal$.MODULE$.TrueLiteral() : session.expression(condition);
    return resolved(new DeleteFromTable(target.logicalPlan(), rows));
  }

  /** Returns the plan of an UPDATE; assignments are those of the method of this name. */
  public LogicalPlan update(Dataset target, Seq assignments, Column condition) {
    return resolved(new UpdateTable(target.logicalPlan(), assignments, optional(condition)));
  }

  /** Returns the plan of a MERGE; the clauses are those of the methods of their names. */
  public LogicalPlan merge(
      Dataset target,
      Dataset source,
      Column condition,
      Seq matched,
      Seq notMatched,
      Seq bySource,
      boolean evolvesSchema) {
    return resolved(
        new MergeIntoTable(
            target.logicalPlan(),
            source.logicalPlan(),
            session.expression(condition),
            matched,
            notMatched,
            bySource,
            evolvesSchema));
  }

  /** Returns the assignment of a value to a column, which may be a field of a struct. */
  public Assignment assignment(String column, Column value) {
    return new Assignment(UnresolvedAttribute.quotedString(column), session.expression(value));
  }

  public MergeAction updating(Column condition, Seq assignments) throws Exception {
    return (MergeAction)
        CaseClass.create(UpdateAction.class, new Object[] {optional(condition), assignments});
  }

  public MergeAction updatingAll(Column condition) {
    return new UpdateStarAction(optional(condition));
  }

  public MergeAction deleting(Column condition) {
    return new DeleteAction(optional(condition));
  }

  public MergeAction inserting(Column condition, Seq assignments) {
    return new InsertAction(optional(condition), assignments);
  }

  public MergeAction insertingAll(Column condition) {
    return new InsertStarAction(optional(condition));
  }

  private Option optional(Column condition) {
    return condition == null ? Option.empty() : Option.apply(session.expression(condition));
  }

  private LogicalPlan resolved(LogicalPlan plan) {
    QueryExecution query =
        session.sessionState().executePlan(own.bound(plan), CommandExecutionMode$.MODULE$.SKIP());
    query.assertAnalyzed();
    LogicalPlan analyzed = query.analyzed();
    return analyzed instanceof StatementCommand statementCommand
        ? statementCommand.statement()
        : analyzed;
  }
}
