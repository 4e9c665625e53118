package io.deltalog.spark;

import java.lang.reflect.Proxy;

/**
 * The only way in which Java calls Python. Each group of calls is an interface (a role), which the
 * Python class with the same name implements.
 *
 * <p>Python does not raise exceptions through py4j, which would mix the stack traces of two
 * languages. It returns a DeltalogException, which is thrown here (see PythonRole).
 */
public class Bridge {
  private static final TableCalls TABLES = role(TableCalls.class);
  private static final PlannerCalls PLANNERS = role(PlannerCalls.class);
  private static final WriteCalls WRITES = role(WriteCalls.class);
  private static final DefinitionCalls DEFINITIONS = role(DefinitionCalls.class);
  private static final StatementCalls STATEMENTS = role(StatementCalls.class);
  private static final ProcedureCalls PROCEDURES = role(ProcedureCalls.class);
  private static final StreamSinkCalls STREAM_SINKS = role(StreamSinkCalls.class);
  private static final StreamSourceCalls STREAM_SOURCES = role(StreamSourceCalls.class);
  private static final Refusals REFUSALS = role(Refusals.class);
  private static final CurrentPython PYTHON = new CurrentPython();

  private Bridge() {}

  private static <T> T role(Class<T> type) {
    return type.cast(
        Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, new PythonRole(type)));
  }

  /**
   * Returns the id of another Python process that receives the calls and is still running, or 0.
   */
  public static int other(int process) {
    return PYTHON.other(process);
  }

  /** Sets the Python program that receives all further calls. */
  public static void install(PythonCalls program) {
    PYTHON.set(program);
  }

  /** Calls a method of a role in Python, and returns its result. */
  static Object call(String role, String method, Object[] arguments) throws Throwable {
    return PYTHON.call(role, method, arguments);
  }

  public static TableCalls tables() {
    return TABLES;
  }

  public static PlannerCalls planners() {
    return PLANNERS;
  }

  public static WriteCalls writes() {
    return WRITES;
  }

  public static DefinitionCalls definitions() {
    return DEFINITIONS;
  }

  public static StatementCalls statements() {
    return STATEMENTS;
  }

  public static ProcedureCalls procedures() {
    return PROCEDURES;
  }

  public static StreamSinkCalls streamSinks() {
    return STREAM_SINKS;
  }

  public static StreamSourceCalls streamSources() {
    return STREAM_SOURCES;
  }

  public static Refusals refusals() {
    return REFUSALS;
  }
}
