package io.deltalog.spark;

import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructType;

/**
 * Records the columns that a query reads. All filters stay in the plan, where Spark's own scan
 * finds them.
 */
public class DeltalogScanBuilder implements ScanBuilder, SupportsPushDownRequiredColumns {
  private final DeltalogTable table;
  private StructType columns;

  public DeltalogScanBuilder(DeltalogTable table) {
    this.table = table;
    this.columns = table.schema();
  }

  @Override
  public void pruneColumns(StructType required) {
    columns = required;
  }

  @Override
  public Scan build() {
    return new DeltalogScan(table, columns);
  }
}
