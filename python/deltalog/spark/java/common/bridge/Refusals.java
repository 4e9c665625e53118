package io.deltalog.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Errors that Java finds. Each method throws one, so that Python raises it as an exception of its
 * own; the result is only for the `throw` of the caller.
 */
public interface Refusals {
  /** A statement that is not supported, or not in this session. */
  RuntimeException statement(LogicalPlan statement);

  /**
   * A write that would replace an existing table by a table of another format, or by a table that
   * is not in our catalog.
   *
   * @param definition the new table
   * @param catalog the class of the session catalog, or null if it is Spark's own
   */
  RuntimeException existing(SparkSession session, CatalogTable definition, String catalog);

  /**
   * A use of a table of ours in a catalog that does not know the log: its class, or null if it is
   * Spark's own.
   */
  RuntimeException catalog(String catalog);

  /** A write to a directory that belongs to a table, by another source. */
  RuntimeException write(String directory, String table);

  /** A name or a path that is no Delta table, for a reason. */
  RuntimeException table(String table, String reason);

  /** A name or a path of what cannot be converted, for a reason. */
  RuntimeException directory(String name, String reason);

  /** Arguments of a function that it cannot have, for a reason. */
  RuntimeException arguments(String function, String reason);

  /** A call of a procedure without a table. */
  RuntimeException noTable(String procedure);

  /** An expression of a table's log; refusal is the JSON of RuleRefusal. */
  RuntimeException expression(String refusal);

  /**
   * A use of features for which this build of Spark lacks something, for the reason that says so.
   */
  RuntimeException feature(String reason);

  /** A field of a value that the column of this type does not have. */
  RuntimeException field(String name, String columnType);
}
