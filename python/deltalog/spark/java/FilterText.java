package io.deltalog.spark;

import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/** The pushed filters as one SQL text. Names lose the qualifiers of the query, because the planner knows only the table's columns. */
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
      String sql;
      try {
        sql = ((Expression) ((Expression) all.next()).transform(new FilterText())).sql();
      } catch (RuntimeException e) {
        continue; // an expression without SQL form prunes nothing; Spark applies it to the rows itself
      }
      if (text.length() > 0) {
        text.append(" AND ");
      }
      text.append('(').append(sql).append(')');
    }
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
