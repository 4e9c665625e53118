package io.deltalog.spark;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.Iterator;

/**
 * Lets Spark read structs if a file has none of their requested fields. Since version 4.1, Spark
 * reads another field of such a struct to find out in which rows the struct is NULL, unless a
 * setting requests the behaviour of 4.0. This class turns that setting off.
 */
public class StructNulls {
  private static final String AS_BEFORE =
      "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing";

  private StructNulls() {}

  /** Prepares the configuration of a scan: turns off the behaviour of 4.0. */
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
