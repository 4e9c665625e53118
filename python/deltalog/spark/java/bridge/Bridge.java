package io.deltalog.spark;

/**
 * The only way in which Spark calls Python: with the name of an operation and its arguments.
 *
 * Python does not raise exceptions through py4j, which would mix the stack traces of two languages. It returns
 * a DeltalogException, which is thrown here.
 */
public class Bridge {
  private static volatile PythonCalls python;

  /** Sets the Python process that receives all further calls. */
  public static void install(PythonCalls calls) {
    python = calls;
  }

  /** Returns the result of an operation of Python's Bridge. */
  public static Object call(String operation, Object[] arguments) {
    PythonCalls calls = python;
    if (calls == null) {
      throw new IllegalStateException(
          "deltalog is not enabled in this application: call deltalog.spark.enable(spark) first");
    }
    Object answer;
    try {
      answer = calls.call(operation, arguments);
    } catch (RuntimeException e) {
      throw e;
    } catch (Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException("deltalog: the call of " + operation + " in Python failed: " + e, e);
    }
    if (answer instanceof DeltalogException) {
      throw (DeltalogException) answer;
    }
    return answer;
  }
}
