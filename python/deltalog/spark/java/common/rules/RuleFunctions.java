package io.deltalog.spark;

import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * The functions that an expression of a table's log may call, as the core lists them
 * (`constraints/functions.rs`).
 */
public class RuleFunctions {
  private static volatile Map<String, Object> lists;

  private RuleFunctions() {}

  /** Returns whether a function always returns the same value for the same arguments. */
  public static boolean always(String name) {
    return has("always", name);
  }

  /** Returns whether a function returns the time at which the statement began. */
  public static boolean ofMoment(String name) {
    return has("byStatement", name);
  }

  /** Returns the maximum number of bytes that the values of an expression may take for one row. */
  public static long bytes() {
    return ((Number) lists().get("bytes")).longValue();
  }

  private static boolean has(String list, String name) {
    return ((Set<?>) lists().get(list)).contains(name.toLowerCase(Locale.ROOT));
  }

  private static Map<String, Object> lists() {
    if (lists == null) {
      Map<String, Object> found = Json.object(Bridge.definitions().ruleFunctions());
      for (String name : List.of("always", "byStatement")) {
        found.put(name, new HashSet<>((List<?>) found.get(name)));
      }
      lists = found;
    }
    return lists;
  }
}
