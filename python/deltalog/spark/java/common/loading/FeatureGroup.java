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
 * A group of features, for which a build of Spark that our jar was not compiled for may lack
 * something (LinkCheck). Such a group is refused, and its classes are never used. Without READ,
 * nothing of this package is.
 *
 * <p>Which classes are the entries of a group, is in `scripts/feature_groups.py`. Every use of an
 * entry by classes of READ comes after a look at its group here.
 */
public enum FeatureGroup {
  READ("read"),
  WRITE("write"),
  STATEMENTS("statements"),
  OWN_SQL("own SQL"),
  STREAMS("streams");

  /** Null as long as nothing was checked. */
  private static Map<FeatureGroup, String> lost;

  /** The groups of classes, by their names; empty if no group is lost. */
  private static Map<String, Set<String>> owners = Map.of();

  /** The name in the list of symbols, and in messages. */
  private final String label;

  FeatureGroup(String label) {
    this.label = label;
  }

  boolean isLost() {
    return lost().containsKey(this);
  }

  /** Throws an error that names the group and what it needs, if it is lost. */
  void require() {
    if (isLost()) {
      throw Bridge.refusals().feature(refusal(this));
    }
  }

  /** Returns the first symbols that are missing, by the groups that need them. Looks once. */
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

  /** Returns the classes among some that can be used. */
  static Class<?>[] available(Class<?>... classes) {
    return Arrays.stream(classes)
        .filter(type -> lostWith(type.getName()) == null)
        .toArray(Class<?>[]::new);
  }

  /** Returns a lost group to which a class belongs, or null if the class can be used. */
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
   * Returns why a class with this simple name cannot be used, or null if it can. Python asks before
   * it uses a class.
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

  /** Returns a warning that names all lost groups and what they need. */
  static String warning() {
    return lost().keySet().stream()
        .map(FeatureGroup::refusal)
        .collect(Collectors.joining("; ", "", "; their statements are refused"));
  }
}
