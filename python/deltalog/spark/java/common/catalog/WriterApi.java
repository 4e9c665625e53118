package io.deltalog.spark;

/**
 * Finds the calling method of DataFrameWriter. Spark does not pass it to its sources and catalogs,
 * so the call stack is examined.
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

  private static boolean isCalling(String method) {
    StackTraceElement[] calls = new Throwable().getStackTrace();
    for (int i = 0; i < calls.length; i++) {
      if (calls[i].getMethodName().equals(method)
          && calls[i].getClassName().endsWith(".DataFrameWriter")) {
        return true;
      }
    }
    return false;
  }
}
