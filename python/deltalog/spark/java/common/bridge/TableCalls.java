package io.deltalog.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructType;

/**
 * Calls to Python for versions of tables that queries read. Options are the JSON of TableOptions,
 * including the path.
 */
public interface TableCalls {
  /**
   * Returns the rows, or the change data feed, that the options of a read select, as the JSON of
   * RelationDescription.
   *
   * @param schema the schema that the user expects, or null
   */
  String read(SparkSession session, String options, StructType schema);

  /** Returns the columns of the newest version of a table, as JSON. */
  String columns(SparkSession session, String options);

  /** Returns the version of a table that the options select, as the JSON of TableState. */
  String state(SparkSession session, String options);

  /**
   * Returns the version that a planner reads, opened with the options of a query, as the JSON of
   * RelationDescription.
   *
   * @param planner the key of the planner
   */
  String reopened(SparkSession session, String planner, String options);

  /**
   * Returns rows of the version that a planner reads, as a Dataset. This is for tables with files
   * that Hadoop cannot reach.
   *
   * @param planner the key of the planner
   * @param schema the columns, as JSON
   * @param filters the text of FilterText; the rows of files that cannot match may be missing
   * @param timeZone the time zone of the times in the filters
   */
  Object portable(
      SparkSession session, String planner, String schema, String filters, String timeZone);

  /**
   * Executes the command of `DeltaTable` that the options describe. Returns its result or its
   * error, as the JSON of `sql/commands.py`.
   */
  String answer(SparkSession session, String options);

  /** Returns whether there is a Delta table at the path in the options. */
  boolean exists(SparkSession session, String options);

  /**
   * Returns whether the end of a path such as `/path@v1` is a version. It is not if there is a
   * Delta table at exactly this path. Throws an error if it is, but other options request a version
   * as well.
   */
  boolean namesVersion(SparkSession session, String options);
}
