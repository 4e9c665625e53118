package io.deltalog.spark;

import java.lang.reflect.Field;

/**
 * Access to private fields of Spark's objects by reflection. Spark reads these fields at each use,
 * so a new value takes effect at once.
 */
public class HiddenFields {
  private HiddenFields() {}

  /**
   * Returns the field that a class declares, or null if this version of Spark lacks it or does not
   * allow access to it.
   */
  public static Field orNull(Class<?> type, String name) {
    try {
      Field field = type.getDeclaredField(name);
      field.setAccessible(true);
      return field;
    } catch (NoSuchFieldException | SecurityException e) {
      return null;
    }
  }

  /**
   * Sets the field with this name, which the class of the object or one of its superclasses
   * declares.
   */
  public static void set(Object object, String name, Object value)
      throws ReflectiveOperationException {
    Field field = find(object.getClass(), name);
    field.setAccessible(true);
    field.set(object, value);
  }

  private static Field find(Class<?> type, String name) throws NoSuchFieldException {
    Class<?> at = type;
    while (at != null) {
      for (Field field : at.getDeclaredFields()) {
        if (field.getName().equals(name)) {
          return field;
        }
      }
      at = at.getSuperclass();
    }
    throw new NoSuchFieldException(type.getName() + "." + name);
  }
}
