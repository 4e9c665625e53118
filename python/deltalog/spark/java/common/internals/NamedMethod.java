package io.deltalog.spark;

import java.lang.reflect.Method;

/**
 * Methods of Spark that are found only by their names, because releases change their parameters.
 */
public class NamedMethod {
  private NamedMethod() {}

  public static Method of(Object value, String name) throws NoSuchMethodException {
    Method[] methods = value.getClass().getMethods();
    for (Method method : methods) {
      if (method.getName().equals(name)) {
        return method;
      }
    }
    throw new NoSuchMethodException(value.getClass().getName() + " has no " + name);
  }
}
