package io.deltalog.spark;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;

/**
 * Sets the active session of a thread. Spark finds the session catalog through the settings of the
 * thread's active session, but writers look up their table before they execute anything in their
 * own session. A thread that has not executed anything has no active session, and Spark would use
 * its own catalog.
 */
public class ThreadSession {
  private ThreadSession() {}

  /**
   * Makes the session of a writer the active one of this thread, if the thread has no session or
   * one with another session catalog. Call this when the session parses the name of a table.
   * Callers that are not writers look up tables only while their own session executes something.
   */
  static void useForWriter(SparkSession session) {
    if (hasOtherCatalog(session) && WriterApi.isWriter()) {
      org.apache.spark.sql.SparkSession.setActiveSession(session);
    }
  }

  private static boolean hasOtherCatalog(SparkSession session) {
    String own = session.sessionState().conf().getConfString(SessionGuard.CATALOG, null);
    return own != null && !own.equals(SQLConf.get().getConfString(SessionGuard.CATALOG, null));
  }

  /**
   * Makes the default session the active one if the thread has none. Call this when Spark looks up
   * a data source, which a writer does before its session parses the name of the table.
   */
  static void useDefault() {
    if (!isUsable(org.apache.spark.sql.SparkSession.getActiveSession())) {
      Option<org.apache.spark.sql.SparkSession> session =
          org.apache.spark.sql.SparkSession.getDefaultSession();
      if (isUsable(session)
          && session.get() instanceof SparkSession found
          && hasOtherCatalog(found)) {
        org.apache.spark.sql.SparkSession.setActiveSession(found);
      }
    }
  }

  private static boolean isUsable(Option<org.apache.spark.sql.SparkSession> session) {
    return session.isDefined() && !session.get().sparkContext().isStopped();
  }
}
