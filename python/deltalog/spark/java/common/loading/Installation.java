package io.deltalog.spark;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.JarFile;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.slf4j.LoggerFactory;
import scala.Option;

/**
 * Detects jars that do not fit together in an installation that was configured by settings: a jar
 * for another release of Spark, jars of different versions, or the extensions of the JVM connector.
 * `enable` chooses the jar itself, so it needs no check.
 */
final class Installation {
  private static final String EXTENSIONS = "spark.sql.extensions";
  private static final String OURS = "io.deltalog.spark.DeltalogExtensions";
  private static final String CONNECTOR = "io.delta.sql.DeltaSparkSessionExtension";

  /** Null until the installation has been checked, and empty if nothing is wrong. */
  private static String problem;

  private Installation() {}

  /**
   * Throws an exception that names the jars that do not fit together, if there are any. Checks only
   * once per JVM.
   */
  static synchronized void check() {
    if (problem == null) {
      problem = found();
    }
    String connector = connector();
    String wrong = problem.isEmpty() ? connector : problem;
    if (!wrong.isEmpty()) {
      throw new IllegalStateException("deltalog cannot be used in this application: " + wrong);
    }
  }

  /** Records that `enable` has chosen the jar. */
  static synchronized void accept() {
    problem = "";
  }

  private static String connector() {
    Option<SparkContext> application = SparkContext$.MODULE$.getActive();
    String setting = application.isEmpty() ? "" : application.get().conf().get(EXTENSIONS, "");
    List<String> names = Arrays.stream(setting.split(",")).map(String::strip).toList();
    return names.contains(CONNECTOR) && names.contains(OURS)
        ? EXTENSIONS
            + " has "
            + CONNECTOR
            + ", the extension of the JVM connector, beside deltalog's; remove one of them"
        : "";
  }

  private static String found() {
    try {
      String others = others();
      return others.isEmpty() ? missing() : others;
    } catch (IOException e) {
      throw new UncheckedIOException("deltalog cannot read its jar", e);
    }
  }

  /** Returns the jars of different versions, or an empty string. */
  private static String others() throws IOException {
    Map<String, String> jars = new TreeMap<>();
    ClassLoader loader = Installation.class.getClassLoader();
    for (URL marker : Collections.list(loader.getResources(DriverClasses.MARKER))) {
      String place = marker.getPath().replaceFirst("^file:", "").replaceFirst("!/.*", "");
      jars.putIfAbsent(DriverClasses.text(marker), place);
    }
    return jars.size() < 2
        ? ""
        : "there are jars of different versions, " + named(jars) + "; keep one of them";
  }

  private static String named(Map<String, String> jars) {
    return String.join(
        " and ",
        jars.entrySet().stream().map(jar -> jar.getValue() + " of " + jar.getKey()).toList());
  }

  /**
   * Returns the reason why deltalog's jar does not fit this build of Spark, or an empty string. If
   * the jar was compiled for this release of Spark, a build that lacks symbols for some features is
   * accepted; these features are then refused.
   */
  private static String missing() throws IOException {
    Map<FeatureGroup, String> lost = FeatureGroup.lost();
    if (lost.isEmpty()) {
      return "";
    }
    String version = org.apache.spark.package$.MODULE$.SPARK_VERSION();
    String release = version.replaceFirst("^(\\d+\\.\\d+).*", "$1");
    if (!FeatureGroup.READ.isLost() && release.equals(text(DriverClasses.RELEASE))) {
      LoggerFactory.getLogger(Installation.class).warn(FeatureGroup.warning());
      return "";
    }
    return own()
        + " was built for another release than Spark "
        + version
        + ", which lacks "
        + lost.values().iterator().next()
        + "; name the jar that `python -m deltalog.spark jar --spark "
        + release
        + "` prints";
  }

  /** Returns whether deltalog's jar was compiled for this build of Spark. */
  static boolean isForThisSpark() throws IOException {
    return !own().isFile()
        || text(DriverClasses.BUILD)
            .equals(DriverClasses.buildOfSpark(Installation.class.getClassLoader()));
  }

  /** Returns the content of a file in deltalog's jar. */
  private static String text(String name) throws IOException {
    try (JarFile opened = new JarFile(own());
        InputStream stream = opened.getInputStream(opened.getEntry(name))) {
      return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
    }
  }

  /** Returns the jar with these classes. */
  static File own() {
    try {
      return new File(
          Installation.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    } catch (URISyntaxException e) {
      throw new IllegalStateException("the path of the jar of deltalog is not a URI", e);
    }
  }
}
