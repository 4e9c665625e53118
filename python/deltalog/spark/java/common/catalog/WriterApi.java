package io.deltalog.spark;

import java.util.Arrays;
import java.util.function.Predicate;

/**
 * Which writer of Spark calls. Spark does not tell its sources and catalogs, so the stack of calls
 * does.
 */
public class WriterApi {

  /**
   * Returns whether it is saveAsTable. For an existing table, it means something else than the
   * statements whose plans it shares: it keeps the table's definition, and its options choose which
   * rows are replaced.
   */
  public static boolean isSaveAsTable() {
    return isCalling("saveAsTable");
  }

  /** Returns whether it is save, to a path. */
  public static boolean isSave() {
    return isCalling("save");
  }

  /** Returns whether it is toTable, of a stream. */
  static boolean isToTable() {
    return isCalling(
        call ->
            call.getMethodName().equals("toTable")
                && call.getClassName().endsWith(".DataStreamWriter"));
  }

  /** Returns whether it is any writer, of tables or streams. */
  static boolean isWriter() {
    return isCalling(
        call -> call.getClassName().matches("org\\.apache\\.spark\\.sql\\..*Writer(V2)?"));
  }

  private static boolean isCalling(String method) {
    return isCalling(
        call ->
            call.getMethodName().equals(method)
                && call.getClassName().endsWith(".DataFrameWriter"));
  }

  private static boolean isCalling(Predicate<StackTraceElement> wanted) {
    return Arrays.stream(new Throwable().getStackTrace()).anyMatch(wanted);
  }
}
