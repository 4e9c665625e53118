package io.deltalog.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Calls to Python for writes of rows to existing tables, or to tables that save(path) creates. The
 * options of the table and of the write are the JSON of TableOptions, including the path.
 */
public interface WriteCalls {
  /**
   * Executes save(path), and returns the table after the write, as the JSON of RelationDescription.
   *
   * @param mode the name of a SaveMode
   */
  String save(SparkSession session, String options, Dataset<Row> rows, String mode);

  /**
   * Appends rows, or replaces other rows with them.
   *
   * @param rows the rows, with the columns in the table's order
   */
  void insert(SparkSession session, String options, Dataset<Row> rows, boolean isOverwrite);

  /** Removes all rows. */
  void truncate(SparkSession session, String options);
}
