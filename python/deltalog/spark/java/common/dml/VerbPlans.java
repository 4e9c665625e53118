package io.deltalog.spark;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CommandExecutionMode$;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.functions;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * The plans for the methods of DeltaTable that change rows. They are the same plans that Spark's
 * parser builds for statements, so Spark resolves and checks both in the same way.
 *
 * <p>A condition is null, SQL text, or a Column. Assigned values are a JSON array of pairs: the
 * name of a column or of a field of a struct, and the SQL text of its value. If the value is a
 * Column, the SQL text is null, and the Column must already have been passed to `take`.
 */
public class VerbPlans {
  private final SparkSession session;
  private final OwnColumns own;
  private final Queue<Column> taken = new ArrayDeque<>();
  private final List<MergeAction> matched = new ArrayList<>();
  private final List<MergeAction> notMatched = new ArrayList<>();
  private final List<MergeAction> bySource = new ArrayList<>();

  /**
   * Creates the plans for a table. The columns of its DataFrames are marked with the given id
   * (OwnColumns).
   */
  public VerbPlans(SparkSession session, String columnsId) {
    this.session = session;
    this.own = new OwnColumns(columnsId);
  }

  /** Adds a Column that is a value of the next assignments. */
  public void take(Column value) {
    taken.add(value);
  }

  public StatementRun delete(Dataset<Row> target, Object condition) {
    Expression rows = condition == null ? Literal$.MODULE$.TrueLiteral() : expression(condition);
    return resolved(new DeleteFromTable(target.logicalPlan(), rows));
  }

  public StatementRun update(Dataset<Row> target, String values, Object condition) {
    return resolved(
        new UpdateTable(target.logicalPlan(), assignments(values), optional(condition)));
  }

  /** Returns a MERGE with the clauses added so far. */
  public StatementRun merge(
      Dataset<Row> target, Dataset<Row> source, Object condition, boolean evolvesSchema) {
    return resolved(
        new MergeIntoTable(
            target.logicalPlan(),
            source.logicalPlan(),
            expression(condition),
            Plans.seq(matched),
            Plans.seq(notMatched),
            Plans.seq(bySource),
            evolvesSchema));
  }

  /**
   * Adds a clause for rows that match. If values is null, an update assigns all of the source's
   * columns.
   */
  public void whenMatched(String action, Object condition, String values) {
    matched.add(clause(action, condition, values));
  }

  public void whenNotMatched(String action, Object condition, String values) {
    notMatched.add(clause(action, condition, values));
  }

  public void whenNotMatchedBySource(String action, Object condition, String values) {
    bySource.add(clause(action, condition, values));
  }

  private MergeAction clause(String action, Object condition, String values) {
    Option<Expression> holds = optional(condition);
    return switch (action) {
      case "delete" -> new DeleteAction(holds);
      case "update" -> values == null ? new UpdateStarAction(holds) : updating(holds, values);
      case "insert" ->
          values == null
              ? new InsertStarAction(holds)
              : new InsertAction(holds, assignments(values));
      default -> throw new IllegalArgumentException(action);
    };
  }

  private MergeAction updating(Option<Expression> condition, String values) {
    Object[] fields = {condition, assignments(values)};
    try {
      return (MergeAction) CaseClass.create(UpdateAction.class, fields);
    } catch (Exception e) {
      throw new IllegalStateException(
          "deltalog cannot use the clauses of this version of Spark: " + e, e);
    }
  }

  private Seq<Assignment> assignments(String values) {
    List<Assignment> made = new ArrayList<>();
    for (String[] value : Json.value(values, String[][].class)) {
      Object given = value[1] == null ? taken.remove() : value[1];
      made.add(new Assignment(UnresolvedAttribute.quotedString(value[0]), expression(given)));
    }
    return Plans.seq(made);
  }

  private Option<Expression> optional(Object condition) {
    return condition == null ? Option.empty() : Option.apply(expression(condition));
  }

  private Expression expression(Object given) {
    return session.expression(given instanceof String text ? functions.expr(text) : (Column) given);
  }

  private StatementRun resolved(LogicalPlan plan) {
    return run(session, own.bound(plan));
  }

  /** Resolves a statement, and returns it to be executed. */
  static StatementRun run(SparkSession session, LogicalPlan plan) {
    QueryExecution query =
        session.sessionState().executePlan(plan, CommandExecutionMode$.MODULE$.SKIP());
    query.assertAnalyzed();
    LogicalPlan analyzed = query.analyzed();
    LogicalPlan statement =
        analyzed instanceof StatementCommand command ? command.statement() : analyzed;
    return StatementRun.of(session, statement);
  }
}
