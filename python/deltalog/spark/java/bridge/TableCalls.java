package io.deltalog.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Map;

/** Tables at one version, as queries read them. */
public interface TableCalls {
  /**
   * Returns a relation of the rows, or of the change data feed, that the options of a read ask for.
   *
   * @param options the options, among them the path
   * @param schema the schema that the user expects, or null
   */
  DeltalogRelation read(SparkSession session, Map options, StructType schema);

  /** Returns the version of a table that the options ask for, among them the path. */
  TableState state(SparkSession session, Map options);

  /**
   * Returns a relation of the version that a planner reads, opened with the options of a query.
   *
   * @param planner the key of the planner
   * @param options the options, among them the path
   */
  DeltalogRelation reopened(SparkSession session, String planner, Map options);

  /** Returns whether there is a Delta table at a path. */
  boolean exists(SparkSession session, String path);
}
