package io.deltalog.spark;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.Iterator;

/**
 * Structs of files that have none of the fields to read. From 4.1, Spark reads another field of
 * such a struct, which tells where it is NULL, unless a setting asks for the behaviour of 4.0.
 */
public class StructNulls {
  private static final String AS_BEFORE =
      "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing";

  private StructNulls() {}

  /** Prepares the configuration of a scan. */
  static void configure(Configuration conf) {
    conf.setBoolean(AS_BEFORE, false);
  }

  /** Returns Spark's reader of these columns, with the guard alone. */
  static GuardedReader guarded(
      Function1<PartitionedFile, Iterator<?>> reader,
      String root,
      StructType columns,
      StructType partition,
      Configuration conf) {
    return new GuardedReader(reader, root);
  }
}
