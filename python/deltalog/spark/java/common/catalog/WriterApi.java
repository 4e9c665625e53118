package io.deltalog.spark;

import java.util.Arrays;
import java.util.function.Predicate;

/**
 * Determines from the call stack which of Spark's writer methods is calling, because Spark does not
 * pass this information to sources and catalogs.
 */
public class WriterApi {

  /**
   * Returns whether the caller is saveAsTable. It uses the same plans as statements, but treats an
   * existing table differently: it keeps the table's definition, and its options determine which
   * rows are replaced.
   */
  public static boolean isSaveAsTable() {
    return isCalling("saveAsTable");
  }

  /** Returns whether the caller is save, to a path. */
  public static boolean isSave() {
    return isCalling("save");
  }

  /** Returns whether the caller is toTable, of a stream. */
  public static boolean isToTable() {
    return isCalling(
        call ->
            call.getMethodName().equals("toTable")
                && call.getClassName().endsWith(".DataStreamWriter"));
  }

  /** Returns whether the caller is any writer, of tables or streams. */
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
