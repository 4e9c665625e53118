package io.deltalog.spark;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import scala.Function1;

/** Replaces the columns that a parsed expression names by attributes. */
public class NamedColumns extends scala.runtime.AbstractPartialFunction {
  private final Map columns;

  /** From the names of columns to their attributes. */
  public NamedColumns(Map columns) {
    this.columns = columns;
  }

  @Override
  public boolean isDefinedAt(Object node) {
    return node instanceof UnresolvedAttribute column
        && column.nameParts().size() == 1
        && columns.containsKey(column.nameParts().head());
  }

  @Override
  public Object applyOrElse(Object node, Function1 otherwise) {
    return isDefinedAt(node)
        ? columns.get(((UnresolvedAttribute) node).nameParts().head())
        : otherwise.apply(node);
  }
}
