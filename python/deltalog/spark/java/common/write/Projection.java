package io.deltalog.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.ExpressionUtils;

/** Rows with some columns replaced by others. Columns are identified by their positions. */
public class Projection {
  private final Dataset<Row> rows;
  private final Attribute[] attributes;
  private final List<Column> columns = new ArrayList<>();
  private boolean isChanged;

  /** Begins with all columns unchanged. */
  public Projection(Dataset<Row> rows) {
    this.rows = rows;
    this.attributes = attributes(rows);
    for (int i = 0; i < attributes.length; i++) {
      columns.add(column(i));
    }
  }

  public static Attribute[] attributes(Dataset<Row> rows) {
    return Plans.list(rows.queryExecution().analyzed().output()).toArray(new Attribute[0]);
  }

  /** Returns attributes as columns that can be selected. */
  static List<Column> columns(List<? extends Expression> attributes) {
    List<Column> columns = new ArrayList<>();
    for (Expression attribute : attributes) {
      columns.add(ExpressionUtils.column(attribute));
    }
    return columns;
  }

  public int size() {
    return attributes.length;
  }

  public Attribute attribute(int position) {
    return attributes[position];
  }

  /** Returns the column unchanged. */
  public Column column(int position) {
    return ExpressionUtils.column(attributes[position]);
  }

  /** Replaces a column with another one. The name of the new column is kept. */
  public void put(int position, Column column) {
    columns.set(position, column);
    isChanged = true;
  }

  /** Returns the rows with the columns. */
  public Dataset<Row> rows() {
    return isChanged ? rows.select(Plans.seq(columns)) : rows;
  }
}
