package io.deltalog.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Calls to Python for errors that Java detects. Each method throws the error, which Python programs
 * see as a Python exception. The declared result only exists so that callers can write a `throw`
 * statement.
 */
public interface Refusals {
  /** A statement that is not supported, at all or in this session. */
  RuntimeException statement(LogicalPlan statement);

  /**
   * A write that would replace an existing table by a table of another format, or by a table that
   * is not in deltalog's catalog.
   *
   * @param definition the new table
   * @param catalog the class of the session catalog, or null if it is Spark's own
   */
  RuntimeException existing(SparkSession session, CatalogTable definition, String catalog);

  /**
   * The use of a Delta table in a catalog other than deltalog's; the argument is the catalog's
   * class, or null if it is Spark's own.
   */
  RuntimeException catalog(String catalog);

  /** A write by another source to a directory that belongs to a table. */
  RuntimeException write(String directory, String table);

  /** A name or path at which there is no Delta table, and the reason. */
  RuntimeException table(String table, String reason);

  /** A name or path of something that cannot be converted, and the reason. */
  RuntimeException directory(String name, String reason);

  /** Invalid arguments of a function, and the reason. */
  RuntimeException arguments(String function, String reason);

  /** A call of a procedure without a table. */
  RuntimeException noTable(String procedure);

  /** An expression in a table's log that is not allowed; refusal is the JSON of RuleRefusal. */
  RuntimeException expression(String refusal);

  /** A use of features that this build of Spark does not support, for the given reason. */
  RuntimeException feature(String reason);

  /** A value with a field that the type of its column does not have. */
  RuntimeException field(String name, String columnType);
}
