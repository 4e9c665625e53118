package io.deltalog.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** Static methods of interfaces, which Janino cannot call in the class files that it makes for us. */
public class InterfaceMethods {
  private InterfaceMethods() {}

  /** Returns what the static method with this name and number of parameters returns. */
  public static Object call(Class type, String name, Object first, Object second) {
    Method[] methods = type.getMethods();
    for (int i = 0; i < methods.length; i++) {
      if (methods[i].getName().equals(name) && methods[i].getParameterCount() == 2) {
        try {
          return methods[i].invoke(null, new Object[] {first, second});
        } catch (IllegalAccessException e) {
          throw new IllegalStateException(e);
        } catch (InvocationTargetException e) {
          throw new IllegalStateException(e.getCause());
        }
      }
    }
    throw new IllegalStateException("this version of Spark has no " + type.getName() + "." + name);
  }
}
