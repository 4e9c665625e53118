package io.deltalog.spark;

import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.internal.SQLConf;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * The pushed filters as one SQL text, for planners that read it in the session's time zone. Names lose the qualifiers of the query, because the planner
 * knows only the table's columns.
 *
 * The text does not say in which zone an expression counts, and that need not be the session's: the query was made when there was another one, or the
 * filter is in a view, which keeps the zone of the session that made it. Such a filter has no text and prunes nothing.
 */
public class FilterText extends scala.runtime.AbstractPartialFunction {

  public static String of(Seq partitionFilters, Seq dataFilters) {
    StringBuilder text = new StringBuilder();
    append(text, partitionFilters);
    append(text, dataFilters);
    return text.toString();
  }

  private static void append(StringBuilder text, Seq filters) {
    Iterator all = filters.iterator();
    while (all.hasNext()) {
      Expression filter = (Expression) all.next();
      if (!isOfZone(filter, SQLConf.get().sessionLocalTimeZone())) {
        continue;
      }
      String sql;
      try {
        sql = ((Expression) filter.transform(new FilterText())).sql();
      } catch (RuntimeException e) {
        continue; // an expression without SQL form prunes nothing; Spark applies it to the rows itself
      }
      if (text.length() > 0) {
        text.append(" AND ");
      }
      text.append('(').append(sql).append(')');
    }
  }

  private static boolean isOfZone(Expression expression, String zone) {
    if (expression instanceof TimeZoneAwareExpression) {
      Option own = ((TimeZoneAwareExpression) expression).timeZoneId();
      if (own.isDefined() && !zone.equals(own.get())) {
        return false;
      }
    }
    Iterator children = expression.children().iterator();
    while (children.hasNext()) {
      if (!isOfZone((Expression) children.next(), zone)) {
        return false;
      }
    }
    return true;
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof AttributeReference;
  }

  public Object applyOrElse(Object node, Function1 otherwise) {
    if (node instanceof AttributeReference) {
      return ((AttributeReference) node).withQualifier((Seq) scala.collection.immutable.Nil$.MODULE$);
    }
    return otherwise.apply(node);
  }
}
