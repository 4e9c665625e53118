package io.deltalog.spark;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;

/** Implements an interface by calling the Python class of the same name. */
public class PythonRole implements InvocationHandler {
  private static final Object[] NONE = new Object[0];
  private final String name;

  public PythonRole(Class<?> role) {
    this.name = role.getSimpleName();
  }

  /** Returns what Python's method returns, or throws the exception that it returns. */
  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    if (method.getDeclaringClass() == Object.class) {
      return own(method, arguments);
    }
    Object answer;
    try {
      answer = Bridge.call(name, method.getName(), arguments == null ? NONE : arguments);
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) {
      // The interfaces declare no other exceptions.
      throw new IllegalStateException(
          "deltalog: the call of " + name + "." + method.getName() + " in Python failed: " + e, e);
    }
    if (answer instanceof DeltalogException failure) {
      throw thrown(failure);
    }
    // py4j returns small numbers as Integer even if the method returns long.
    boolean isLong = method.getReturnType() == Long.TYPE && answer instanceof Number;
    return isLong ? Long.valueOf(((Number) answer).longValue()) : answer;
  }

  /**
   * Returns the exception to throw. A failure of Spark that has passed through a sidecar keeps its
   * class, unless it is a checked exception, which no interface declares.
   */
  private static Throwable thrown(DeltalogException failure) {
    Throwable spark = failure.ofSpark();
    if (spark instanceof RuntimeException || spark instanceof Error) {
      return spark;
    }
    failure.fillInStackTrace(); // Until now, it has the trace of the py4j call that created it.
    return failure;
  }

  private Object own(Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(this, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }

  @Override
  public String toString() {
    return name + " in Python";
  }
}
