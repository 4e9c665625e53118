package io.deltalog.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;

/** Replaces the column names in a parsed expression with attributes. */
public class NamedColumns extends NodeChange<Expression> {
  private final Map<String, Attribute> columns;

  /** Takes a map from the names of columns to their attributes. */
  public NamedColumns(Map<String, Attribute> columns) {
    this.columns = columns;
  }

  @Override
  public boolean isDefinedAt(Expression node) {
    return node instanceof UnresolvedAttribute column
        && column.nameParts().size() == 1
        && columns.containsKey(column.nameParts().head());
  }

  @Override
  protected Expression changed(Expression node) {
    return columns.get(((UnresolvedAttribute) node).nameParts().head());
  }
}
