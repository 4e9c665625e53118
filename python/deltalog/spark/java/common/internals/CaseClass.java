package io.deltalog.spark;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Access to fields of Scala case classes by name, because their number differs between Spark
 * releases.
 */
public class CaseClass {

  /** Returns a copy of value with changed fields. Throws an error if a field does not exist. */
  public static <T extends scala.Product> T with(T value, Map<String, ?> changes) throws Exception {
    Object[] fields = new Object[value.productArity()];
    Set<String> unused = new HashSet<>(changes.keySet());
    for (int i = 0; i < fields.length; i++) {
      String name = value.productElementName(i);
      fields[i] = changes.containsKey(name) ? changes.get(name) : value.productElement(i);
      unused.remove(name);
    }
    if (!unused.isEmpty()) {
      throw new NoSuchFieldException(value.getClass().getName() + " has no " + unused);
    }
    return Unchecked.cast(construct(value.getClass(), fields));
  }

  /** Returns the field of a value with a name; null if this release of Spark has none. */
  public static Object field(scala.Product value, String name) {
    for (int i = 0; i < value.productArity(); i++) {
      if (value.productElementName(i).equals(name)) {
        return value.productElement(i);
      }
    }
    return null;
  }

  /** Creates a value from its first fields; the other fields have their defaults. */
  public static <T> T create(Class<T> type, Object... first) throws Exception {
    Class<?> companion = Class.forName(type.getName() + "$", true, type.getClassLoader());
    Object module = companion.getField("MODULE$").get(null);
    Object[] fields = new Object[primary(type).getParameterCount()];
    for (int i = 0; i < fields.length; i++) {
      if (i < first.length) {
        fields[i] = first[i];
      } else {
        Method method = companion.getMethod("apply$default$" + (i + 1));
        fields[i] = method.invoke(module);
      }
    }
    return type.cast(construct(type, fields));
  }

  private static Object construct(Class<?> type, Object[] fields) throws Exception {
    try {
      return primary(type).newInstance(fields);
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof Exception cause) {
        throw cause;
      }
      throw e;
    }
  }

  private static Constructor<?> primary(Class<?> type) {
    Constructor<?>[] all = type.getConstructors();
    Constructor<?> widest = all[0];
    for (int i = 1; i < all.length; i++) {
      if (all[i].getParameterCount() > widest.getParameterCount()) {
        widest = all[i];
      }
    }
    return widest;
  }
}
