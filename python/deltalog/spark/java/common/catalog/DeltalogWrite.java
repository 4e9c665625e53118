package io.deltalog.spark;

import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The table and the options of a write. */
public class DeltalogWrite implements Write {
  private final RowTarget table;
  private final CaseInsensitiveStringMap options;

  public DeltalogWrite(RowTarget table, CaseInsensitiveStringMap options) {
    this.table = table;
    this.options = options;
  }

  public RowTarget table() {
    return table;
  }

  public CaseInsensitiveStringMap options() {
    return options;
  }

  @Override
  public String description() {
    return "deltalog " + table.name();
  }

  @Override
  public String toString() {
    return description();
  }
}
