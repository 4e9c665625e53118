package io.deltalog.spark;

import java.util.function.Function;

/**
 * The one way from Spark to Python: an operation's name and its arguments in, a value out.
 *
 * Python never throws across the wire (a stack of two languages helps nobody): it returns a
 * DeltalogException, thrown here.
 */
public class Bridge {
  private static volatile Function handler;

  public static void install(Function function) {
    handler = function;
  }

  public static Object call(String operation, Object[] arguments) {
    Function function = handler;
    if (function == null) {
      throw new IllegalStateException("deltalog is not enabled in this application: call deltalog.spark.enable(spark) first");
    }
    Object[] request = new Object[arguments.length + 1];
    request[0] = operation;
    System.arraycopy(arguments, 0, request, 1, arguments.length);
    return checked(function.apply(request));
  }

  public static Object checked(Object answer) {
    if (answer instanceof DeltalogException) {
      throw (DeltalogException) answer;
    }
    return answer;
  }
}
