package io.deltalog.spark;

import org.apache.spark.sql.SparkSession;

/** Calls to Python for procedures, which Python describes and executes. */
public interface ProcedureCalls {
  /** Returns the names of all procedures, separated by spaces. */
  String names();

  /**
   * Returns the description of a procedure as JSON, for DescribedProcedure. Throws an error if
   * there is no such procedure.
   */
  String describe(String name);

  /**
   * Calls a procedure and returns its rows as JSON, for ProcedureResult.
   *
   * @param table the table as the user names it, for messages
   * @param options the JSON of the options with which it is opened; the path is one of them
   * @param arguments a JSON array of texts, numbers, booleans or nulls, in the order of the
   *     parameters after the table
   */
  String call(SparkSession session, String name, String table, String options, String arguments);
}
