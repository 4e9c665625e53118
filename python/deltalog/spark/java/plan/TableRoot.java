package io.deltalog.spark;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A table's root as our file index shows it to Spark.
 *
 * - It prints as a label and the path, which is what explain() shows as the scan's location (the first 100
 *   characters of a long text).
 * - It opens no file system. Spark's own insert command asks the root for one before it deletes or writes
 *   anything, so a statement that was not caught fails here instead of leaving files that no commit names.
 */
public class TableRoot extends Path {
  private final String label;

  public TableRoot(String path, String label) {
    super(path);
    this.label = label;
  }

  public FileSystem getFileSystem(Configuration configuration) throws IOException {
    throw new UnsupportedOperationException("This statement is not supported yet by deltalog: Spark would write files into the Delta table "
        + super.toString() + " without a commit. Call deltalog.spark.enable(spark) on this session, and use INSERT INTO without a PARTITION clause.");
  }

  public String toString() {
    return label + ", " + super.toString();
  }
}
