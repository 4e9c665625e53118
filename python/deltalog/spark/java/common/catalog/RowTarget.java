package io.deltalog.spark;

import java.util.Map;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.types.StructType;

/** A table to which DeltalogWriteExec writes rows. */
public interface RowTarget {
  String name();

  StructType schema();

  /** Returns whether deltalog, and not Spark's analyzer, fits rows to the columns. */
  boolean acceptsAnySchema();

  /** Writes rows and commits them. */
  void insert(
      SparkSession session, Dataset<Row> rows, boolean isOverwrite, Map<String, String> options);
}
