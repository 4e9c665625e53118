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
  private static volatile Map lists;

  private RuleFunctions() {}

  /** Returns whether a function has the same value for the same arguments. */
  public static boolean always(String name) {
    return has("always", name);
  }

  /** Returns whether a function returns the time at which the statement began. */
  public static boolean ofMoment(String name) {
    return has("byStatement", name);
  }

  /** Returns the bytes that the values of an expression may have for a row. */
  public static long bytes() {
    return ((Number) lists().get("bytes")).longValue();
  }

  private static boolean has(String list, String name) {
    return ((Set) lists().get(list)).contains(name.toLowerCase(Locale.ROOT));
  }

  private static Map lists() {
    if (lists == null) {
      Map found = Json.object(Bridge.definitions().ruleFunctions());
      String[] names = {"always", "byStatement"};
      for (int i = 0; i < names.length; i++) {
        found.put(names[i], new HashSet((List) found.get(names[i])));
      }
      lists = found;
    }
    return lists;
  }
}
