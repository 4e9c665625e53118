package io.deltalog.spark;

/**
 * The same source under the name "delta", for applications without the JVM connector that ask for it.
 *
 * The class is always there; a jar that lists it among Spark's sources is added when it is asked for.
 */
public class DeltaAlias extends DeltalogSource {
  public static final String NAME = "delta";
  private static volatile boolean enabled;

  /** Makes catalog entries of the provider "delta" and names such as delta.`/path` tables of ours. */
  public static void enable() {
    enabled = true;
  }

  /** Returns whether the name of a provider or of a path's namespace stands for this source. */
  public static boolean is(String name) {
    return enabled && (NAME.equalsIgnoreCase(name) || DeltaAlias.class.getName().equals(name));
  }

  public String shortName() {
    return NAME;
  }
}
