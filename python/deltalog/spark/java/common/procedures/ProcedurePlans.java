package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.ResolvedProcedure;
import org.apache.spark.sql.catalyst.analysis.UnresolvedProcedure;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.Call;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.command.ExplainCommand;

/**
 * Resolves calls of procedures in plans, from CALL or from one of deltalog's own statements. Spark
 * binds and checks the arguments.
 */
public class ProcedurePlans {
  public static final String NAMESPACE = "deltalog";

  private ProcedurePlans() {}

  /**
   * Returns the plan. If it calls one of deltalog's procedures, that procedure is resolved,
   * regardless of the current catalog.
   */
  public static LogicalPlan resolved(LogicalPlan plan) throws Exception {
    return replaced(plan, new ArrayList<>(), true, given -> given);
  }

  /**
   * Returns the plan of a statement. The parsed call has only the arguments whose values are not
   * known yet.
   */
  public static LogicalPlan of(LogicalPlan plan, OwnStatement statement, ParserInterface spark)
      throws Exception {
    List<Expression> arguments = new ArrayList<>();
    for (Map.Entry<String, Object> entry : statement.arguments().entrySet()) {
      arguments.add(
          new NamedArgumentExpression(entry.getKey(), Literal$.MODULE$.apply(entry.getValue())));
    }
    return replaced(
        plan, arguments, statement.hasResult(), given -> bound(given, statement, spark));
  }

  /** Returns the argument to use in place of an argument that Spark has parsed. */
  private interface Argument {
    Expression of(Expression given) throws Exception;
  }

  /** Returns an argument; for a list of parameters, returns the condition that contains them. */
  private static Expression bound(Expression given, OwnStatement statement, ParserInterface spark)
      throws Exception {
    if (!(given instanceof NamedArgumentExpression argument)) {
      return given;
    }
    BoundText text = statement.bound().get(argument.key());
    return text == null
        ? given
        : new NamedArgumentExpression(argument.key(), text.expression(argument.value(), spark));
  }

  private static LogicalPlan replaced(
      LogicalPlan plan, List<Expression> arguments, boolean hasResult, Argument parsed)
      throws Exception {
    if (plan instanceof ExplainCommand explainCommand) {
      LogicalPlan explained = replaced(explainCommand.logicalPlan(), arguments, hasResult, parsed);
      return CaseClass.with(plan, Collections.singletonMap("logicalPlan", explained));
    }
    if (!(plan instanceof Call call)
        || !(call.procedure() instanceof UnresolvedProcedure unresolved)) {
      return plan;
    }

    Identifier name = name(Plans.list(unresolved.nameParts()));
    if (name == null) {
      return plan;
    }
    Procedures catalog = new Procedures();
    ResolvedProcedure procedure =
        new ResolvedProcedure(catalog, name, catalog.load(name.name(), hasResult));
    for (Expression given : Plans.each(call.args())) {
      arguments.add(parsed.of(given));
    }
    return new Call(procedure, Plans.seq(arguments), call.execute());
  }

  /** Returns the name of a deltalog procedure, or null. */
  private static Identifier name(List<String> parts) {
    int first = parts.size() == 3 && "spark_catalog".equalsIgnoreCase(parts.get(0)) ? 1 : 0;
    if (parts.size() - first != 2 || !CatalogEntries.isOurs(parts.get(first))) {
      return null;
    }
    return Procedures.identifier(parts.get(first + 1));
  }
}
