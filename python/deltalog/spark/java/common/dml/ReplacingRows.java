package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import scala.Function2;

/**
 * Executes overwrites with the options replaceOn and replaceUsing as the MERGE of ReplacingInserts.
 *
 * <p>The condition refers to the rows with the column names that the user has passed. A write by
 * position converts the rows to the table's names and types, in projections above a marker node.
 * Projections below the marker are the user's own, and are kept.
 */
public class ReplacingRows {
  private static final String MARK = "__deltalog_given";

  private final List<String> names = new ArrayList<>();
  private final List<Expression> values = new ArrayList<>();

  /** The rows with the columns that are written. */
  private final LogicalPlan written;

  /** The rows, with the names that the user gave them. */
  private final LogicalPlan rows;

  private ReplacingRows(LogicalPlan written) {
    this.written = written;
    Map<ExprId, Expression> computed = new HashMap<>();
    LogicalPlan marked = marked(written, computed);
    rows = marked == null ? written : marked;
    for (Attribute column : Plans.list(written.output())) {
      names.add(column.name());
      values.add(value(column, computed));
    }
  }

  /** Marks the rows of a write as the user passed them, before they are fitted by position. */
  public static Dataset<Row> marked(SparkSession session, Dataset<Row> rows) {
    LogicalPlan plan = rows.queryExecution().analyzed();
    return Dataset.ofRows(session, SubqueryAlias$.MODULE$.apply(MARK, plan));
  }

  /**
   * Returns the rows below the marker. Adds the expressions that compute the projected columns to
   * the map, by column id. Returns null if there is no marker.
   */
  private static LogicalPlan marked(LogicalPlan plan, Map<ExprId, Expression> computed) {
    if (plan instanceof SubqueryAlias alias && alias.alias().equals(MARK)) {
      return alias.child();
    }
    LogicalPlan rows = plan instanceof Project above ? marked(above.child(), computed) : null;
    if (rows != null) {
      for (NamedExpression column : Plans.list(((Project) plan).projectList())) {
        if (column instanceof Alias alias) {
          computed.put(alias.exprId(), value(alias.child(), computed));
        }
      }
    }
    return rows;
  }

  /** Returns an expression with its columns replaced by the expressions that compute them. */
  private static Expression value(Expression expression, Map<ExprId, Expression> computed) {
    if (expression instanceof Attribute column) {
      return computed.getOrDefault(column.exprId(), column);
    }
    List<Expression> children = Plans.list(expression.children());
    children.replaceAll(child -> value(child, computed));
    return expression.withNewChildren(Plans.seq(children));
  }

  /**
   * Returns the resolved statement, to be executed.
   *
   * @param described the JSON of RelationDescription of the table
   * @param options the JSON of the options of the write
   * @param evolves whether columns are added to the table
   */
  public static StatementRun run(
      SparkSession session, String described, String options, Dataset<Row> data, boolean evolves)
      throws ParseException {
    Map<String, String> all = Json.object(options);
    LogicalPlan target =
        session
            .baseRelationToDataFrame(
                RelationDescription.relation(session, described, TableOptions.scala(all)))
            .queryExecution()
            .analyzed();
    String on = all.get("replaceon");
    String alias = all.get("targetalias");
    if (alias != null) {
      target = SubqueryAlias$.MODULE$.apply(alias, target);
    }
    ReplacingRows rows = new ReplacingRows(data.queryExecution().analyzed());
    Expression condition =
        on == null ? rows.using(target, all.get("replaceusing")) : rows.on(session, target, on);
    return VerbPlans.run(
        session,
        ReplacingInserts.merge(target, rows.rows, condition, rows.names, rows.values, evolves));
  }

  /**
   * Returns the condition. Spark refuses names that are both in the table and in the user's rows.
   * This method also refuses names that are in the table and only in the converted rows: Spark
   * would take them for the table's columns, and the condition might be true for all rows.
   */
  private Expression on(SparkSession session, LogicalPlan target, String text)
      throws ParseException {
    Expression condition = session.sessionState().sqlParser().parseExpression(text);
    if (rows != written) {
      checkNames(condition, target, session.sessionState().conf().resolver());
    }
    return condition;
  }

  private void checkNames(
      Expression part, LogicalPlan target, Function2<String, String, Object> resolver) {
    if (part instanceof UnresolvedAttribute name
        && target.resolve(name.nameParts(), resolver).isDefined()
        && written.resolve(name.nameParts(), resolver).isDefined()) {
      throw Bridge.refusals()
          .arguments(
              "replaceOn",
              "the column "
                  + name.name()
                  + " is a column of both the table and the rows: set targetAlias, and write"
                  + " <targetAlias>.<column> for columns of the table");
    }
    for (Expression child : Plans.list(part.children())) {
      checkNames(child, target, resolver);
    }
  }

  /**
   * Returns the condition that a row of the table and a new row have equal values in these columns.
   */
  private Expression using(LogicalPlan target, String columns) {
    Expression equal = null;
    for (String name :
        Arrays.stream(columns.split(",", -1)).map(String::strip).distinct().toList()) {
      Attribute known = ReplacingInserts.column(Plans.list(target.output()), name);
      int at = -1;
      for (int i = 0; i < names.size(); i++) {
        at = names.get(i).equalsIgnoreCase(name) ? i : at;
      }
      if (known == null || at < 0) {
        throw Bridge.refusals()
            .arguments(
                "replaceUsing",
                "the column " + name + " is not in the " + (known == null ? "table" : "data"));
      }
      Expression same = new EqualTo(known, values.get(at));
      equal = equal == null ? same : new And(equal, same);
    }
    return equal;
  }
}
