package io.deltalog.spark;

import java.io.Serializable;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import scala.Function1;
import scala.runtime.AbstractFunction1;

/** Spark's reader of a file, which looks at the file before it is opened. Runs in tasks. */
public class GuardedReader extends AbstractFunction1 implements Serializable {
  private final Function1 reader;
  private final String root;

  /** Creates the reader of files of the table with the root, a Hadoop path. */
  public GuardedReader(Function1 reader, String root) {
    this.reader = reader;
    this.root = root;
  }

  public Object apply(Object file) {
    Path path = ((PartitionedFile) file).toPath();
    LocalPlace.checkRead(root, path);
    try {
      return reader.apply(file);
    } catch (StackOverflowError e) {
      // An executor, and in local mode the driver, ends at an error of this kind. The footer is read recursively.
      String message = "the footer of the Parquet file is nested too deeply to be read";
      throw new FileFault(FileFault.CORRUPT, message, "restore the file, or remove it from the table", path, null);
    }
  }
}
