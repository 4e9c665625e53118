package io.deltalog.spark;

import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.TimeZoneAwareExpression;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import scala.Function1;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * The pushed filters as one SQL text, for planners that read it in the session's time zone. Names lose the
 * qualifiers of the query, because the planner knows only the table's columns.
 *
 * Two things a text does not say, and a filter that depends on them has none and prunes nothing. In which
 * zone an expression counts: not the session's if the query was made when there was another one, or if the
 * filter is in a view, which keeps the zone of the session that made it. And by which collation strings are
 * compared, if not byte by byte.
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
      String sql;
      try {
        if (!saysAll(filter, SQLConf.get().sessionLocalTimeZone())) {
          continue;
        }
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

  private static boolean saysAll(Expression expression, String zone) {
    DataType type = expression.dataType();
    if (type instanceof StringType && !((StringType) type).isUTF8BinaryCollation()) {
      return false;
    }
    if (expression instanceof TimeZoneAwareExpression) {
      Option own = ((TimeZoneAwareExpression) expression).timeZoneId();
      if (own.isDefined() && !zone.equals(own.get())) {
        return false;
      }
    }
    Iterator children = expression.children().iterator();
    while (children.hasNext()) {
      if (!saysAll((Expression) children.next(), zone)) {
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
