package io.deltalog.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.types.StructType;

/**
 * A scan during optimization: its columns, its size, and the partition columns by which it can be
 * pruned while the query runs. It is never executed, because DeltalogStrategy replaces it with
 * Spark's own scan.
 */
public class DeltalogScan
    implements Scan, SupportsReportStatistics, SupportsRuntimeV2Filtering, Statistics {
  private final DeltalogTable table;
  private final StructType columns;
  private final long size;

  public DeltalogScan(DeltalogTable table, StructType columns) {
    this(table, columns, -1);
  }

  private DeltalogScan(DeltalogTable table, StructType columns, long size) {
    this.table = table;
    this.columns = columns;
    this.size = size;
  }

  /** Returns this scan with the size of the files that it reads. */
  public DeltalogScan withSize(long bytes) {
    return new DeltalogScan(table, columns, bytes);
  }

  /**
   * Returns whether the size only includes the files that remain after the filters of the query.
   */
  public boolean isPruned() {
    return size >= 0;
  }

  public DeltalogTable table() {
    return table;
  }

  @Override
  public StructType readSchema() {
    return columns;
  }

  @Override
  public String description() {
    return table.relation().location().toString();
  }

  @Override
  public Statistics estimateStatistics() {
    return this;
  }

  @Override
  public OptionalLong sizeInBytes() {
    return OptionalLong.of(Math.max(1L, size < 0 ? table.relation().sizeInBytes() : size));
  }

  @Override
  public OptionalLong numRows() {
    return OptionalLong.empty();
  }

  /**
   * Returns the partition columns that the scan reads. Others are left out, because Spark looks
   * only among the columns of the scan.
   */
  @Override
  public NamedReference[] filterAttributes() {
    List<String> read = Arrays.asList(columns.fieldNames());
    List<NamedReference> found = new ArrayList<>();
    for (String partition : table.partitionColumns()) {
      if (read.contains(partition)) {
        found.add(FieldReference.column(partition));
      }
    }
    return found.toArray(new NamedReference[0]);
  }

  @Override
  public void filter(Predicate[] predicates) {
    throw notEnabled();
  }

  @Override
  public org.apache.spark.sql.connector.read.Batch toBatch() {
    throw notEnabled();
  }

  private static RuntimeException notEnabled() {
    return new UnsupportedOperationException(
        "deltalog is not enabled in this session: call deltalog.spark.enable(spark) on it");
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof DeltalogScan deltalogScan
        && table.equals(deltalogScan.table)
        && columns.equals(deltalogScan.columns)
        && size == deltalogScan.size;
  }

  @Override
  public int hashCode() {
    return table.hashCode();
  }
}
