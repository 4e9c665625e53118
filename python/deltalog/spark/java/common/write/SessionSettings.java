package io.deltalog.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import scala.Tuple2;

/**
 * The settings of a session that affect changes of tables, as Python reads them
 * (`write/settings.py`).
 */
public class SessionSettings {
  /** The prefix of the JVM connector's settings. */
  private static final String DELTA = "spark.databricks.delta.";

  private static final String REBASE_MODE = "spark.sql.parquet.datetimeRebaseModeInWrite";

  private SessionSettings() {}

  /** Returns the settings as JSON. */
  public static String json(SparkSession session) {
    return Json.text(of(session));
  }

  /** Returns the settings as values that Json accepts. */
  public static Map<String, Object> of(SparkSession session) {
    SQLConf conf = session.sessionState().conf();
    Map<String, Object> settings = new HashMap<>();
    settings.put("sparkVersion", session.version());
    settings.put("timeZone", conf.sessionLocalTimeZone());
    settings.put("isCaseSensitive", Boolean.valueOf(conf.caseSensitiveAnalysis()));
    settings.put("partitionOverwriteMode", conf.partitionOverwriteMode().toString());
    settings.put("storeAssignmentPolicy", conf.storeAssignmentPolicy().toString());
    settings.put("rebaseMode", session.conf().get(REBASE_MODE));
    settings.put("isAdaptive", Boolean.valueOf(conf.adaptiveExecutionEnabled()));
    settings.put("ignoresMissingFiles", Boolean.valueOf(conf.ignoreMissingFiles()));
    settings.put("delta", ofDelta(session));
    return settings;
  }

  private static Map<String, String> ofDelta(SparkSession session) {
    Map<String, String> found = new HashMap<>();
    for (Tuple2<String, String> setting : Plans.each(session.conf().getAll())) {
      if (setting._1().startsWith(DELTA)) {
        found.put(setting._1(), setting._2());
      }
    }
    return found;
  }
}
