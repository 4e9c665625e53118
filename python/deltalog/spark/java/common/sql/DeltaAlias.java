package io.deltalog.spark;

/**
 * The data source under the name "delta", for applications without the JVM connector that enable
 * it.
 *
 * <p>The class is always present. The jar that registers it as a data source is added on demand.
 */
public class DeltaAlias extends DeltalogSource {
  public static final String NAME = "delta";
  private static volatile boolean enabled;

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

  @Override
  public String shortName() {
    return NAME;
  }
}
