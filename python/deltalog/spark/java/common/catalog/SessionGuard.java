package io.deltalog.spark;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

/**
 * Prevents Spark's own session catalog from handling deltalog tables, in a session that was in use
 * before deltalog's catalog was configured. Spark's catalog only handles the entry and the
 * directory of a table: it would drop a table to replace it, change only the entry, and create
 * entries without a log. But it first asks the data source about the table, and the data source
 * calls check.
 */
public class SessionGuard {
  /** The setting that names the class of the session catalog. */
  static final String CATALOG = "spark.sql.catalog.spark_catalog";

  static final String BUILTIN = "builtin"; // The default value since Spark 4.1.

  private static final String OF_SPARK = ".V2SessionCatalog";

  private SessionGuard() {}

  /**
   * Throws an error if the caller is Spark's catalog. Spark does not tell the source who is
   * calling, so the call stack is examined.
   */
  static void check() {
    StackTraceElement[] calls = new Throwable().getStackTrace();
    for (StackTraceElement call : calls) {
      if (call.getClassName().endsWith(OF_SPARK)) {
        throw Bridge.refusals().catalog(configured());
      }
    }
  }

  /**
   * Throws an error if a session has Spark's catalog. When a stream starts, Spark finds its table
   * in the catalog of the thread's active session, which may differ from the stream's own session.
   * After each batch, however, Spark looks for the table in the catalog of the stream's own
   * session, so the stream would fail after its first commit.
   */
  static void checkCatalogOf(SparkSession session) {
    if (configured(session.sessionState().conf()) == null) {
      throw Bridge.refusals().catalog(null);
    }
  }

  /** Returns the class of the session catalog, or null if it is Spark's own. */
  static String configured() {
    return configured(SQLConf.get());
  }

  private static String configured(SQLConf settings) {
    String catalog = settings.getConfString(CATALOG, null);
    return BUILTIN.equals(catalog) ? null : catalog;
  }
}
