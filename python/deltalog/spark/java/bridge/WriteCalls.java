package io.deltalog.spark;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;

/** Writes of rows to tables that exist, or that save(path) creates. */
public interface WriteCalls {
  /**
   * Executes save(path) and returns a relation of the table as it is then.
   *
   * @param options the options of the write, among them the path
   * @param mode the name of a SaveMode
   */
  DeltalogRelation save(SparkSession session, Map options, Dataset rows, String mode);

  /**
   * Appends rows, or overwrites others with them.
   *
   * @param options the options of the table and of the write, among them the path
   * @param rows the rows, with the columns in the table's order
   */
  void insert(SparkSession session, Map options, Dataset rows, boolean isOverwrite);

  /** Removes all rows of the table with the path among the options. */
  void truncate(SparkSession session, Map options);

  /**
   * Returns the rows with the columns of a schema, matched by position.
   *
   * @param table the name of the table, for messages
   */
  Dataset byPosition(SparkSession session, Dataset rows, StructType schema, String table);
}
