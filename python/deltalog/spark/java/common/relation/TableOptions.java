package io.deltalog.spark;

import java.util.Map;

/**
 * Converts options of tables and table properties between JSON, for Python, and Scala's maps, for
 * Spark.
 */
public class TableOptions {
  private TableOptions() {}

  public static String json(Map<String, String> options) {
    return Json.text(options);
  }

  public static String json(scala.collection.immutable.Map<String, String> options) {
    return Json.text(scala.jdk.javaapi.CollectionConverters.asJava(options));
  }

  public static scala.collection.immutable.Map<String, String> scala(Map<String, String> options) {
    return scala.collection.immutable.Map$.MODULE$.from(
        scala.jdk.javaapi.CollectionConverters.asScala(options));
  }
}
