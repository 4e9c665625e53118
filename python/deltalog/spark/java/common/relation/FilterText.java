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
 * Writes the pushed filters as one SQL text, which the planner evaluates in the session's time
 * zone. Qualifiers of the query are removed from names, because the planner knows only the table's
 * columns.
 *
 * <p>A text cannot express two things. Filters that depend on them are left out, so they prune
 * nothing:
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
   * Returns a condition on the columns of a table as text. A condition that cannot be written as
   * text is an error.
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
   * Returns a condition on the columns of a table as text, or null if it cannot be written as text.
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
        continue; // An expression without a SQL form prunes nothing. Spark applies it to the rows
        // itself.
      }
      if (text.length() > 0) {
        text.append(" AND ");
      }
      text.append('(').append(sql).append(')');
    }
  }

  /** Returns the text of an expression as people read it. */
  public static String readable(Expression expression) {
    Expression simple = Plans.simplified(expression, OneRowRelation$.MODULE$.apply());
    return simple.transform(new FilterText()).sql();
  }

  /** Returns the text of an expression as people read it, with the tables of its columns. */
  public static String qualified(Expression expression) {
    return Plans.simplified(expression, OneRowRelation$.MODULE$.apply()).sql();
  }

  /** Returns whether the text of the expression has the same meaning in the time zone. */
  private static boolean isExpressible(Expression expression, String zone) {
    DataType type = expression.dataType();
    if (type instanceof StringType stringType && !stringType.isUTF8BinaryCollation()) {
      return false;
    }
    if (expression instanceof UserDefinedExpression) {
      return false; // It may be the name of another function.
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
