package io.deltalog.spark;

import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import scala.Option;
import scala.collection.immutable.Seq;

/**
 * Writes the pushed filters as one SQL string, which the planner evaluates in the session's time
 * zone. Qualifiers are removed from column names, because the planner only has the table's columns.
 *
 * <p>SQL cannot express two things. Filters that depend on them are left out, so they do not
 * exclude files:
 *
 * <ul>
 *   <li>a time zone other than the session's, if the query was created under another setting, or if
 *       the filter belongs to a view, which keeps the time zone of the session that created it;
 *   <li>a collation that does not compare strings byte by byte.
 * </ul>
 */
public class FilterText extends NodeChange<Expression> {

  public static String of(Seq<Expression> filters) {
    return of(filters, Plans.none());
  }

  public static String of(Seq<Expression> partitionFilters, Seq<Expression> dataFilters) {
    StringBuilder text = new StringBuilder();
    append(text, partitionFilters);
    append(text, dataFilters);
    return text.toString();
  }

  /**
   * Returns a condition on the columns of a table as SQL. Throws an error if it cannot be written
   * as SQL.
   */
  public static String exact(Expression condition) {
    String text = exactOrNull(condition);
    if (text == null) {
      throw new UnsupportedOperationException(
          "deltalog cannot replace the rows for which "
              + condition.sql()
              + " is true: the condition depends on a "
              + "collation or on another time zone than the session's");
    }
    return text;
  }

  /**
   * Returns a condition on the columns of a table as SQL, or null if it cannot be written as SQL.
   */
  public static String exactOrNull(Expression condition) {
    boolean isExpressible = isExpressible(condition, SQLConf.get().sessionLocalTimeZone());
    return isExpressible ? condition.transform(new FilterText()).sql() : null;
  }

  private static void append(StringBuilder text, Seq<Expression> filters) {
    for (Expression filter : Plans.each(filters)) {
      String sql;
      try {
        if (!isExpressible(filter, SQLConf.get().sessionLocalTimeZone())) {
          continue;
        }
        sql = filter.transform(new FilterText()).sql();
      } catch (RuntimeException e) {
        // An expression that cannot be written as SQL excludes no files. Spark applies it to the
        // rows.
        continue;
      }
      if (text.length() > 0) {
        text.append(" AND ");
      }
      text.append('(').append(sql).append(')');
    }
  }

  /** Returns an expression as SQL that people can read. */
  public static String readable(Expression expression) {
    Expression simple = Plans.simplified(expression, OneRowRelation$.MODULE$.apply());
    return simple.transform(new FilterText()).sql();
  }

  /** Returns an expression as SQL that people can read, with columns qualified by their tables. */
  public static String qualified(Expression expression) {
    return Plans.simplified(expression, OneRowRelation$.MODULE$.apply()).sql();
  }

  /** Returns whether the SQL of the expression has the same meaning in this time zone. */
  private static boolean isExpressible(Expression expression, String zone) {
    DataType type = expression.dataType();
    if (type instanceof StringType stringType && !stringType.isUTF8BinaryCollation()) {
      return false;
    }
    if (expression instanceof UserDefinedExpression) {
      return false; // A user-defined function may have the name of another function.
    }
    if (expression instanceof TimeZoneAwareExpression timeZoneAwareExpression) {
      Option<String> own = timeZoneAwareExpression.timeZoneId();
      if (own.isDefined() && !zone.equals(own.get())) {
        return false;
      }
    }
    for (Expression child : Plans.each(expression.children())) {
      if (!isExpressible(child, zone)) {
        return false;
      }
    }
    return true;
  }

  @Override
  public boolean isDefinedAt(Expression node) {
    return node instanceof AttributeReference;
  }

  @Override
  protected Expression changed(Expression node) {
    return ((AttributeReference) node).withQualifier(Plans.none());
  }
}
