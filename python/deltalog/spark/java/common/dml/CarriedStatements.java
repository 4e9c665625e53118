package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteAction;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.InsertStarAction;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeAction;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateStarAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Turns a hint from a Spark Connect client into the DELETE, UPDATE or MERGE that it carries
 * (`connect/carried.py`). Spark Connect has no message for statements whose conditions and values
 * are columns.
 *
 * <pre>
 * hint(description, expression, …)      over the target, or for MERGE over target JOIN source
 * </pre>
 *
 * <p>The description is JSON. It states what each expression is for, in the order of the
 * expressions.
 *
 * <p>A hint in SQL text is ignored, because a query must not change a table.
 */
public class CarriedStatements extends Rule<LogicalPlan> {
  static final String HINT = "deltalog_statement";

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (!(plan instanceof UnresolvedHint hint)
        || !HINT.equals(hint.name())
        || hint.origin().sqlText().isDefined()) {
      return plan;
    }
    Iterator<?> parameters = Plans.list(hint.parameters()).iterator();
    Map<?, ?> statement = Json.object(((Literal) parameters.next()).value().toString());
    try {
      return new Parts(parameters).statement(statement, hint.child());
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalStateException(
          "deltalog cannot use this version of Spark's statements: " + e, e);
    }
  }

  /** The expressions of a statement, which are consumed in order. */
  private record Parts(Iterator<?> expressions) {
    LogicalPlan statement(Map<?, ?> statement, LogicalPlan child) throws Exception {
      String name = (String) statement.get("statement");
      return switch (name) {
        case "DELETE" ->
            new DeleteFromTable(
                child, condition(statement).getOrElse(Literal$.MODULE$::TrueLiteral));
        case "UPDATE" -> {
          Option<Expression> condition = condition(statement);
          yield new UpdateTable(child, assignments(statement), condition);
        }
        case "MERGE" -> merge(statement, (Join) child);
        default ->
            throw new UnsupportedOperationException(
                "deltalog on the server does not know the statement " + name);
      };
    }

    private LogicalPlan merge(Map<?, ?> statement, Join joined) throws Exception {
      List<Seq<MergeAction>> clauses = new ArrayList<>();
      for (Object kind : (List<?>) statement.get("clauses")) {
        List<MergeAction> actions = new ArrayList<>();
        for (Object clause : (List<?>) kind) {
          actions.add(action((Map<?, ?>) clause));
        }
        clauses.add(Plans.seq(actions));
      }
      return new MergeIntoTable(
          joined.left(),
          joined.right(),
          joined.condition().get(),
          clauses.get(0),
          clauses.get(1),
          clauses.get(2),
          Boolean.TRUE.equals(statement.get("evolves")));
    }

    private MergeAction action(Map<?, ?> clause) throws Exception {
      String action = (String) clause.get("action");
      Option<Expression> condition = condition(clause);
      boolean isAll = clause.get("columns") == null;
      return switch (action) {
        case "delete" -> new DeleteAction(condition);
        case "insert" ->
            isAll
                ? new InsertStarAction(condition)
                : new InsertAction(condition, assignments(clause));
        default ->
            isAll
                ? new UpdateStarAction(condition)
                : (MergeAction)
                    CaseClass.create(UpdateAction.class, condition, assignments(clause));
      };
    }

    private Option<Expression> condition(Map<?, ?> described) {
      boolean isGiven = Boolean.TRUE.equals(described.get("has_condition"));
      return isGiven ? Option.apply((Expression) expressions.next()) : Option.empty();
    }

    private Seq<Assignment> assignments(Map<?, ?> described) {
      List<Assignment> made = new ArrayList<>();
      for (Object column : (List<?>) described.get("columns")) {
        UnresolvedAttribute key = UnresolvedAttribute.quotedString((String) column);
        made.add(new Assignment(key, (Expression) expressions.next()));
      }
      return Plans.seq(made);
    }
  }
}
