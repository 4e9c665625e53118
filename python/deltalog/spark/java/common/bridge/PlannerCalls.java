package io.deltalog.spark;

/**
 * Calls to Python for planners. Each planner lists the files of one version of a table. Planners
 * are identified by keys, because Spark may call them from its own threads, without a session, and
 * long after the version was read.
 */
public interface PlannerCalls {
  /** Returns the size of all files in bytes. */
  long size(String planner);

  /**
   * Returns the packed list of the files that may have matching rows: a byte array, or the name of
   * a temporary file with the bytes, which the caller deletes.
   *
   * @param filters the text of FilterText
   * @param timeZone the time zone of the times in the filters
   */
  Object plan(String planner, String filters, String timeZone);

  /**
   * Returns packed values from the log, from which Spark can compute aggregates: a byte array or
   * the name of a temporary file, as plan does. Returns null if the log does not have the exact
   * values.
   *
   * @param filters the text of FilterText
   * @param timeZone the time zone of the times in the filters
   * @param columns the names of the columns whose bounds are needed, as a JSON array
   */
  Object answers(String planner, String filters, String timeZone, String columns);
}
