package io.deltalog.spark;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.Iterator;

/**
 * Reads structs when a file has none of their requested fields. From 4.1 on, Spark itself reads
 * another field of such a struct, which shows in which rows it is NULL, unless a setting requests
 * the behaviour of 4.0.
 */
public class StructNulls {
  private static final String AS_BEFORE =
      "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing";

  private StructNulls() {}

  /** Prepares the configuration of a scan. */
  static void configure(Configuration conf) {
    conf.setBoolean(AS_BEFORE, false);
  }

  /** Returns Spark's own reader of these columns, wrapped in the guard. */
  static GuardedReader guarded(
      Function1<PartitionedFile, Iterator<?>> reader,
      String root,
      StructType columns,
      StructType partition,
      Configuration conf) {
    return new GuardedReader(reader, root);
  }
}
