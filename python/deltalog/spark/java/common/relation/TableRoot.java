package io.deltalog.spark;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The root directory of a table, which Spark sees as the relation's location.
 *
 * <ul>
 *   <li>Its string form is a label and the path. explain() shows the first 100 characters as the
 *       scan's location.
 *   <li>It does not open a file system. Spark's own insert command requests one from the root
 *       before it deletes or writes anything, so a statement that was not intercepted fails here
 *       and leaves no uncommitted files.
 * </ul>
 */
public class TableRoot extends Path {
  private final String label;

  public TableRoot(String path, String label) {
    super(path);
    this.label = label;
  }

  @Override
  public FileSystem getFileSystem(Configuration configuration) throws IOException {
    throw new UnsupportedOperationException(
        "This statement is not supported yet by deltalog: Spark would write files into the Delta"
            + " table "
            + super.toString()
            + " without a commit. Call deltalog.spark.enable(spark) on this session, and use "
            + "INSERT INTO without a PARTITION clause.");
  }

  @Override
  public String toString() {
    return label + ", " + super.toString();
  }
}
