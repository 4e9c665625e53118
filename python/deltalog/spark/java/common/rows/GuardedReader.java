package io.deltalog.spark;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.Function1;
import scala.runtime.AbstractFunction1;

/** Spark's reader of a file, which looks at the file before it is opened. Runs in tasks. */
public class GuardedReader extends AbstractFunction1 implements Serializable {
  /** The package with the parser of footers. */
  private static final String FOOTERS = "org.apache.parquet.format.";

  private final Function1 reader;
  private final String root;

  /** Creates the reader of files of the table with the root, a Hadoop path. */
  public GuardedReader(Function1 reader, String root) {
    this.reader = reader;
    this.root = root;
  }

  @Override
  public Object apply(Object file) {
    Path path = ((PartitionedFile) file).toPath();
    LocalPlace.checkRead(root, path);
    try {
      return reader.apply(file);
    } catch (StackOverflowError e) {
      // An executor, and in local mode the driver, ends at errors of these kinds. The footer is
      // read recursively.
      throw damaged(path, "the footer of the Parquet file is nested too deeply to be read");
    } catch (OutOfMemoryError e) {
      if (!isOfFooter(e)) {
        throw e;
      }
      throw damaged(
          path, "the footer of the Parquet file claims more entries than the memory holds");
    }
  }

  /**
   * Returns whether a list of a footer has asked for the memory. If this happens often, the JVM
   * leaves out the calls. Much memory is left then, if one array has asked for more than that.
   */
  private static boolean isOfFooter(OutOfMemoryError error) {
    StackTraceElement[] calls = error.getStackTrace();
    if (calls.length == 0) {
      Runtime jvm = Runtime.getRuntime();
      return jvm.maxMemory() - (jvm.totalMemory() - jvm.freeMemory()) > jvm.maxMemory() / 4;
    }
    return Arrays.stream(calls).anyMatch(call -> call.getClassName().startsWith(FOOTERS));
  }

  private static FileFault damaged(Path path, String message) {
    return new FileFault(
        FileFault.CORRUPT, message, "restore the file, or remove it from the table", path, null);
  }
}
