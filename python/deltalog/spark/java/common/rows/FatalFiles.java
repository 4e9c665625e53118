package io.deltalog.spark;

import java.util.Arrays;
import org.apache.hadoop.fs.Path;

/**
 * Distinguishes JVM errors that a file causes from other JVM errors. Spark ends an executor, and in
 * local mode the driver, after a JVM error, even if it is only the cause of another exception.
 */
public final class FatalFiles {
  /** The package that parses footers and the headers of pages. */
  private static final String HEADERS = "org.apache.parquet.format.";

  private static final String[] READERS = {
    "org.apache.parquet.", "org.apache.spark.sql.execution.datasources.parquet."
  };

  private static final String VECTORS = "org.apache.spark.sql.execution.vectorized.";

  /**
   * The JVM's message for an array that is longer than the maximum length of arrays, regardless of
   * free memory.
   */
  private static final String LONGER_THAN_ARRAYS = "Requested array size exceeds VM limit";

  /** The number of nested causes that Spark examines. */
  private static final int CAUSES = 5;

  private FatalFiles() {}

  /**
   * Returns a FileFault if the file at the path has caused the error, and otherwise throws the
   * error. The claims are null if they are unknown.
   */
  public static FileFault faultOf(Throwable error, Path path, PageClaims claims) {
    Throwable fatal = fatal(error);
    if (fatal instanceof StackOverflowError && isOf(fatal, HEADERS)) {
      return PageClaims.damaged(path, "the Parquet file is nested too deeply to be read");
    }
    if (fatal instanceof OutOfMemoryError && isClaimed(fatal, claims)) {
      return new FileFault(
          FileFault.CORRUPT,
          "the Parquet file claims more values or entries than the memory holds",
          "read it again with more memory for each task; if that fails, too, restore the file",
          path,
          null);
    }
    if (error instanceof Error fault) {
      throw fault;
    }
    throw (RuntimeException) error;
  }

  private static Throwable fatal(Throwable error) {
    Throwable at = error;
    for (int i = 0; i < CAUSES && at != null; i++) {
      if (at instanceof VirtualMachineError) {
        return at;
      }
      at = at.getCause();
    }
    return null;
  }

  /**
   * Returns whether the memory was requested because the file makes a false claim, and not for its
   * real contents.
   */
  private static boolean isClaimed(Throwable error, PageClaims claims) {
    if (isOf(error, HEADERS)) {
      return true;
    }
    if (!isOfReader(error.getStackTrace())) {
      return false;
    }
    if (LONGER_THAN_ARRAYS.equals(error.getMessage())) {
      return true;
    }
    Runtime jvm = Runtime.getRuntime();
    long free = jvm.maxMemory() - (jvm.totalMemory() - jvm.freeMemory());
    return claims == null ? free > jvm.maxMemory() / 4 : claims.needLessThan(free);
  }

  /**
   * Returns whether the reader of a file requested the memory to decode a page, and not to make
   * room for more values of a batch. If the error happens often, the JVM omits the stack trace;
   * then this also returns true.
   */
  private static boolean isOfReader(StackTraceElement[] calls) {
    for (StackTraceElement call : calls) {
      String type = call.getClassName();
      if (type.startsWith(VECTORS) && !call.getMethodName().equals("reserve")) {
        continue; // A vector is created, with room for all values of a page.
      }
      if (!type.startsWith("java.")) {
        return Arrays.stream(READERS).anyMatch(type::startsWith);
      }
    }
    return calls.length == 0;
  }

  private static boolean isOf(Throwable error, String packages) {
    return Arrays.stream(error.getStackTrace())
        .anyMatch(call -> call.getClassName().startsWith(packages));
  }
}
