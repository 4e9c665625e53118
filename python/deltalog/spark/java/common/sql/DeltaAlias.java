package io.deltalog.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URL;
import java.util.Collections;

/**
 * The data source under the name "delta", for applications without the JVM connector that enable
 * it.
 *
 * <p>The class is always present. A jar that registers it as a data source is added on demand, or
 * is on the class path from the start.
 */
public class DeltaAlias extends DeltalogSource {
  public static final String NAME = "delta";
  private static final String REGISTER =
      "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister";
  private static volatile boolean enabled = isRegistered();

  /**
   * Makes this source handle catalog entries of the provider "delta" and names such as
   * delta.`/path`.
   */
  public static void enable() {
    enabled = true;
  }

  /** Returns whether the name of a provider or of a path's namespace refers to this source. */
  public static boolean is(String name) {
    return enabled && (NAME.equalsIgnoreCase(name) || DeltaAlias.class.getName().equals(name));
  }

  private static boolean isRegistered() {
    try {
      ClassLoader loader = DeltaAlias.class.getClassLoader();
      for (URL file : Collections.list(loader.getResources(REGISTER))) {
        if (DriverClasses.text(file).lines().anyMatch(DeltaAlias.class.getName()::equals)) {
          return true;
        }
      }
      return false;
    } catch (IOException e) {
      throw new UncheckedIOException("deltalog cannot read its jar", e);
    }
  }

  @Override
  public String shortName() {
    return NAME;
  }
}
