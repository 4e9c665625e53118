package io.deltalog.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * A group of features. If Spark is a build for which deltalog's jar was not compiled, it may lack
 * something that a group needs (LinkCheck). Statements of such a group are refused, and its classes
 * are never used. Without the group READ, this package cannot be used at all.
 *
 * <p>`scripts/feature_groups.py` lists the entry classes of each group. Classes of READ check the
 * group here before they use one of its entry classes.
 */
public enum FeatureGroup {
  READ("read"),
  WRITE("write"),
  STATEMENTS("statements"),
  OWN_SQL("own SQL"),
  STREAMS("streams");

  /** Null until the groups have been checked. */
  private static Map<FeatureGroup, String> lost;

  /** For each class, the names of its groups; empty if all groups can be used. */
  private static Map<String, Set<String>> owners = Map.of();

  /** The name in the list of symbols and in messages. */
  private final String label;

  FeatureGroup(String label) {
    this.label = label;
  }

  boolean isLost() {
    return lost().containsKey(this);
  }

  /**
   * Throws an error if the group cannot be used. The error names the group and the missing symbols.
   */
  void require() {
    if (isLost()) {
      throw Bridge.refusals().feature(refusal(this));
    }
  }

  /** Returns the first missing symbols of each group that cannot be used. Checks only once. */
  static synchronized Map<FeatureGroup, String> lost() {
    if (lost == null) {
      try {
        lost = found();
      } catch (IOException e) {
        throw new UncheckedIOException("deltalog cannot read its jar", e);
      }
    }
    return lost;
  }

  private static Map<FeatureGroup, String> found() throws IOException {
    Map<FeatureGroup, String> found = new EnumMap<>(FeatureGroup.class);
    if (!Installation.isForThisSpark()) {
      LinkCheck check =
          new LinkCheck(Installation.class.getClassLoader(), Installation.own().getPath());
      Map<String, List<String>> missing = check.missing();
      for (FeatureGroup group : values()) {
        if (missing.containsKey(group.label)) {
          found.put(group, DriverClasses.shortened(missing.get(group.label)));
        }
      }
      owners = found.isEmpty() ? Map.of() : check.owners();
    }
    return found;
  }

  /** Returns the given classes that can be used. */
  static Class<?>[] available(Class<?>... classes) {
    return Arrays.stream(classes)
        .filter(type -> lostWith(type.getName()) == null)
        .toArray(Class<?>[]::new);
  }

  /** Returns an unusable group that a class belongs to, or null if the class can be used. */
  private static FeatureGroup lostWith(String type) {
    Set<String> lostLabels =
        lost().keySet().stream().map(group -> group.label).collect(Collectors.toSet());
    Set<String> groups = owners.getOrDefault(type, Set.of());
    if (groups.isEmpty() || !lostLabels.containsAll(groups)) {
      return null;
    }
    return lost().keySet().stream().filter(group -> groups.contains(group.label)).findFirst().get();
  }

  /**
   * Returns the reason why the class with this simple name cannot be used, or null if it can.
   * Python calls this before it uses a class.
   */
  public static String refusal(String name) {
    FeatureGroup group = lostWith(FeatureGroup.class.getPackageName() + "." + name);
    return group == null ? null : refusal(group);
  }

  private static String refusal(FeatureGroup group) {
    return "the feature group "
        + group.label
        + " of deltalog cannot be used with this build of Spark "
        + org.apache.spark.package$.MODULE$.SPARK_VERSION()
        + ", which lacks "
        + lost().get(group);
  }

  /** Returns a warning that lists all unusable groups and the symbols that they need. */
  static String warning() {
    return lost().keySet().stream()
        .map(FeatureGroup::refusal)
        .collect(Collectors.joining("; ", "", "; their statements are refused"));
  }
}
