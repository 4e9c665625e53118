package io.deltalog.spark;

import java.lang.reflect.Field;

/** Fields that an object sets when it is created. Reflection may set them later, and Spark reads them at each use. */
public class FinalFields {
  private FinalFields() {}

  /** Sets the field with this name, of the class of the object or of a class that it extends. */
  public static void set(Object object, String name, Object value) throws ReflectiveOperationException {
    Field field = find(object.getClass(), name);
    field.setAccessible(true);
    field.set(object, value);
  }

  private static Field find(Class type, String name) throws NoSuchFieldException {
    Class at = type;
    while (at != null) {
      Field[] fields = at.getDeclaredFields();
      for (int i = 0; i < fields.length; i++) {
        if (fields[i].getName().equals(name)) {
          return fields[i];
        }
      }
      at = at.getSuperclass();
    }
    throw new NoSuchFieldException(type.getName() + "." + name);
  }
}
