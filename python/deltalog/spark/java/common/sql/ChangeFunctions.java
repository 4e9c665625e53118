package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegralType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.unsafe.Platform;
import scala.Option;

/**
 * Resolves the functions of the JVM connector that read a change data feed: table_changes('name',
 * start) and table_changes_by_path('path', start), both with an optional end. Integers are
 * versions; strings and timestamps are times.
 */
public class ChangeFunctions {
  private static final String BY_NAME = "table_changes";
  private static final String BY_PATH = "table_changes_by_path";

  private ChangeFunctions() {}

  /**
   * Returns the table of such a function as a relation with options that request the feed; null for
   * any other function.
   */
  static UnresolvedRelation relation(SparkSession session, UnresolvedTableValuedFunction function) {
    List<String> parts = Plans.list(function.name());
    String name = parts.get(parts.size() - 1).toLowerCase(Locale.ROOT);
    if (parts.size() != 1 || !(name.equals(BY_NAME) || name.equals(BY_PATH))) {
      return null;
    }
    List<Expression> arguments = arguments(session, Plans.list(function.functionArgs()));
    if (arguments.size() < 2 || arguments.size() > 3) {
      throw Bridge.refusals()
          .arguments(
              name,
              "there are " + arguments.size() + "; pass a table, a start and, optionally, an end");
    }
    Map<String, String> options = new HashMap<>();
    options.put("readChangeFeed", "true");
    add(session, options, name, "starting", arguments.get(1));
    if (arguments.size() == 3) {
      add(session, options, name, "ending", arguments.get(2));
    }
    String table = text(session, arguments.get(0));
    if (table == null || arguments.get(0).dataType() != DataTypes.StringType) {
      throw Bridge.refusals().arguments(name, "the table is not a string");
    }
    List<String> names =
        name.equals(BY_PATH) ? Arrays.asList("deltalog", table) : named(session, table);
    return new UnresolvedRelation(Plans.seq(names), new CaseInsensitiveStringMap(options), false);
  }

  private static List<String> named(SparkSession session, String table) {
    try {
      return Plans.list(session.sessionState().sqlParser().parseMultipartIdentifier(table));
    } catch (ParseException e) {
      Platform.throwException(e);
      return null;
    }
  }

  /**
   * Returns the arguments as Spark resolves them, with functions of the current time replaced by
   * its value.
   */
  private static List<Expression> arguments(SparkSession session, List<Expression> given) {
    List<NamedExpression> columns = new ArrayList<>();
    for (int i = 0; i < given.size(); i++) {
      columns.add(Plans.alias(given.get(i), "argument" + i));
    }
    LogicalPlan row = new Project(Plans.seq(columns), new OneRowRelation());
    LogicalPlan analyzed = session.sessionState().analyzer().execute(row);
    session.sessionState().analyzer().checkAnalysis(analyzed);
    List<Expression> found = Plans.list(Plans.atOneTime(analyzed).expressions());
    found.replaceAll(column -> ((Alias) column).child());
    return found;
  }

  private static void add(
      SparkSession session,
      Map<String, String> options,
      String function,
      String bound,
      Expression argument) {
    String value = text(session, argument);
    if (value == null) {
      throw Bridge.refusals().arguments(function, "the " + bound + " bound is NULL");
    }
    boolean isVersion = argument.dataType() instanceof IntegralType;
    options.put(bound + (isVersion ? "Version" : "Timestamp"), value);
  }

  private static String text(SparkSession session, Expression argument) {
    Option<String> zone = Option.apply(session.sessionState().conf().sessionLocalTimeZone());
    Object value =
        new Cast(argument, DataTypes.StringType, zone, EvalMode$.MODULE$.ANSI()).eval(null);
    return value == null ? null : value.toString();
  }
}
