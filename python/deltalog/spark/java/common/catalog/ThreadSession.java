package io.deltalog.spark;

import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.Option;

/**
 * The session of a thread, by whose settings Spark finds the session catalog: writers look up their
 * table before they execute anything for their own session. A thread that has executed nothing has
 * no session, and then Spark uses its own catalog.
 */
public class ThreadSession {
  private ThreadSession() {}

  /**
   * Makes the session of a writer the active one of this thread, if the thread's session has
   * another session catalog or if there is none. To be called when the session parses the name of a
   * table. Others than writers leave the look-up to an execution of their session.
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
   * Makes the default session the active one, if the thread has none. To be called when Spark looks
   * up a source, which a writer does before its session parses the name of the table.
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
