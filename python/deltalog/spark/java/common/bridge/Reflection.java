package io.deltalog.spark;

import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/**
 * Lets Python call this package's constructors and static methods, with one message per call. py4j
 * cannot find these classes by name, because they were loaded later than py4j, and it does not
 * support variable numbers of arguments.
 */
public class Reflection {

  /** Returns the only public constructor of a class. */
  public Executable constructor(Class<?> type) {
    return type.getConstructors()[0];
  }

  /** Returns the method with this name and number of parameters. */
  public Executable method(Class<?> type, String name, int parameters)
      throws NoSuchMethodException {
    for (Method method : type.getMethods()) {
      if (method.getName().equals(name) && method.getParameterCount() == parameters) {
        return method;
      }
    }
    throw new NoSuchMethodException(
        type.getSimpleName() + "." + name + " with " + parameters + " parameters");
  }

  public Object call(Executable member) throws Throwable {
    return called(member, new Object[0]);
  }

  public Object call(Executable member, Object a) throws Throwable {
    return called(member, new Object[] {a});
  }

  public Object call(Executable member, Object a, Object b) throws Throwable {
    return called(member, new Object[] {a, b});
  }

  public Object call(Executable member, Object a, Object b, Object c) throws Throwable {
    return called(member, new Object[] {a, b, c});
  }

  public Object call(Executable member, Object a, Object b, Object c, Object d) throws Throwable {
    return called(member, new Object[] {a, b, c, d});
  }

  public Object call(Executable member, Object a, Object b, Object c, Object d, Object e)
      throws Throwable {
    return called(member, new Object[] {a, b, c, d, e});
  }

  public Object call(Executable member, Object a, Object b, Object c, Object d, Object e, Object f)
      throws Throwable {
    return called(member, new Object[] {a, b, c, d, e, f});
  }

  /** Returns the result, or throws what the constructor or the static method throws. */
  private static Object called(Executable member, Object[] arguments) throws Throwable {
    try {
      return member instanceof Constructor<?> constructor
          ? constructor.newInstance(arguments)
          : ((Method) member).invoke(null, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
