package io.deltalog.spark;

/**
 * The one way from Spark to Python: the name of an operation and its arguments go in, a value comes out.
 *
 * Python never throws across the wire, because a stack trace of two languages helps no reader. It returns a
 * DeltalogException, which is thrown here.
 */
public class Bridge {
  private static volatile PythonCalls python;

  /** Sends all calls to this Python process from now on. */
  public static void install(PythonCalls calls) {
    python = calls;
  }

  /** Returns what Python's Bridge answers to an operation. */
  public static Object call(String operation, Object[] arguments) {
    PythonCalls calls = python;
    if (calls == null) {
      throw new IllegalStateException("deltalog is not enabled in this application: call deltalog.spark.enable(spark) first");
    }
    Object answer;
    try {
      answer = calls.call(operation, arguments);
    } catch (RuntimeException e) {
      throw e;
    } catch (Error e) {
      throw e;
    } catch (Throwable e) {
      throw new IllegalStateException("deltalog: Python failed to answer " + operation + ": " + e, e);
    }
    if (answer instanceof DeltalogException) {
      throw (DeltalogException) answer;
    }
    return answer;
  }
}
