package io.deltalog.spark;

import java.time.LocalDateTime;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.time.temporal.ChronoUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.internal.SQLConf;

/**
 * A path with a version or a time at its end, as the JVM connector reads it: `/path@v1`, and
 * `/path@yyyyMMddHHmmssSSS` in the time zone of the session. If there is a table whose path really
 * ends like that, the path means that table.
 */
record VersionedPath(String path, String option, String value) {
  private static final Pattern VERSION = Pattern.compile("(.+)@[vV](\\d+)");
  private static final Pattern TIME = Pattern.compile("(.+)@(\\d{17})");
  private static final DateTimeFormatter FORMAT = DateTimeFormatter.ofPattern("yyyyMMddHHmmssSSS");

  /**
   * Splits a path into the path of a table and a version; returns null if there is a table at the
   * whole path, or if it has no version.
   *
   * @param options the JSON of the options of the read, including the settings of the store and the
   *     path to split
   */
  static VersionedPath of(SparkSession session, String text, String options) {
    VersionedPath found = parse(text);
    return found != null && Bridge.tables().namesVersion(session, options) ? found : null;
  }

  private static VersionedPath parse(String text) {
    Matcher version = VERSION.matcher(text);
    if (version.matches()) {
      return new VersionedPath(version.group(1), "versionAsOf", version.group(2));
    }
    Matcher time = TIME.matcher(text);
    String micros = time.matches() ? micros(time.group(2)) : null;
    return micros == null ? null : new VersionedPath(time.group(1), "timestampAsOfMicros", micros);
  }

  private static String micros(String digits) {
    ZoneId zone = ZoneId.of(SQLConf.get().sessionLocalTimeZone());
    try {
      LocalDateTime time = LocalDateTime.parse(digits, FORMAT);
      return String.valueOf(
          ChronoUnit.MICROS.between(java.time.Instant.EPOCH, time.atZone(zone).toInstant()));
    } catch (DateTimeParseException e) {
      return null; // The digits are not a valid time.
    }
  }
}
