package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;

/** Overwrites by the options replaceOn and replaceUsing, as the MERGE of ReplacingInserts. */
public class ReplacingRows {
  private final List names = new ArrayList();
  private final List values = new ArrayList();

  /** The rows, under the name that the user has given them. */
  private final LogicalPlan rows;

  private ReplacingRows(LogicalPlan given) {
    // Where Spark has fitted the columns, they are values of the user's rows.
    boolean isFitted = given instanceof Project project && project.child() instanceof SubqueryAlias;
    rows = isFitted ? ((Project) given).child() : given;
    List columns =
        isFitted ? Plans.list(((Project) given).projectList()) : Plans.list(given.output());
    for (Object column : columns) {
      names.add(((NamedExpression) column).name());
      values.add(column instanceof Alias alias ? alias.child() : column);
    }
  }

  /**
   * Returns the resolved statement, to be executed.
   *
   * @param described the JSON of RelationDescription of the table
   * @param options the JSON of the options of the write
   * @param evolves whether columns are added to the table
   */
  public static StatementRun run(
      SparkSession session, String described, String options, Dataset data, boolean evolves)
      throws ParseException {
    Map all = Json.object(options);
    LogicalPlan target =
        ((Dataset)
                session.baseRelationToDataFrame(
                    RelationDescription.relation(session, described, TableOptions.scala(all))))
            .queryExecution()
            .analyzed();
    String on = (String) all.get("replaceon");
    String alias = (String) all.get("targetalias");
    if (alias != null) {
      target = SubqueryAlias$.MODULE$.apply(alias, target);
    }
    ReplacingRows rows = new ReplacingRows(data.queryExecution().analyzed());
    Expression condition =
        on == null
            ? rows.using(target, (String) all.get("replaceusing"))
            : session.sessionState().sqlParser().parseExpression(on);
    return VerbPlans.run(
        session,
        ReplacingInserts.merge(target, rows.rows, condition, rows.names, rows.values, evolves));
  }

  /** Returns whether rows have equal values in columns. */
  private Expression using(LogicalPlan target, String columns) {
    Expression equal = null;
    for (Object name :
        Arrays.stream(columns.split(",", -1)).map(String::strip).distinct().toList()) {
      Attribute known = ReplacingInserts.column(Plans.list(target.output()), (String) name);
      int at = -1;
      for (int i = 0; i < names.size(); i++) {
        at = ((String) names.get(i)).equalsIgnoreCase((String) name) ? i : at;
      }
      if (known == null || at < 0) {
        throw Bridge.refusals()
            .arguments(
                "replaceUsing",
                "the column " + name + " is not in the " + (known == null ? "table" : "data"));
      }
      Expression same = new EqualTo(known, (Expression) values.get(at));
      equal = equal == null ? same : new And(equal, same);
    }
    return equal;
  }
}
