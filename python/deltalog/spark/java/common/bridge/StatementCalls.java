package io.deltalog.spark;

import org.apache.spark.sql.SparkSession;

/** Calls to Python for DELETE, UPDATE and MERGE. */
public interface StatementCalls {
  /**
   * Executes a resolved statement. Returns its row counts, separated by spaces: the number of
   * affected rows, and for a MERGE also the numbers of updated, deleted and inserted rows.
   *
   * @param statement the StatementRun, whose steps Python calls
   * @param description the description of the statement (StatementDescription)
   */
  String change(SparkSession session, Object statement, String description);

  /**
   * Returns the columns that a MERGE adds or changes, as the JSON of a schema.
   *
   * @param planner the key of the planner of the target
   * @param data the JSON of the schema of the columns that the MERGE assigns
   */
  String evolved(String planner, String data);
}
