package io.deltalog.spark;

import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * The partition values of the files of one task, as strings that are written as in the log.
 *
 * <p>Spark identifies the partition of a new file by its directory, but the directory may be the
 * same for NULL and for a certain string. However, Spark passes the values of a partition before it
 * creates the partition's first file.
 */
public class TaskPartitions {
  private final boolean opensSeveral;
  private final Map<String, String[]> byDirectory = new HashMap<>();
  private final Set<String> ambiguous = new HashSet<>();
  private String[] announced;

  /**
   * Creates the partitions of a task. opensSeveral states whether the task may have files of
   * several partitions open; it may then return to a partition without an announcement.
   */
  public TaskPartitions(boolean opensSeveral) {
    this.opensSeveral = opensSeveral;
  }

  /** Records the values of the next partition. */
  public void announce(InternalRow values) {
    announced = new String[values.numFields()];
    for (int i = 0; i < announced.length; i++) {
      announced[i] = values.isNullAt(i) ? null : values.getUTF8String(i).toString();
    }
  }

  /**
   * Returns the values of a new file in this directory; the directory is null if there are no
   * partition columns.
   */
  public String[] ofFileIn(String directory) {
    if (directory == null) {
      return new String[0];
    }
    if (announced != null) {
      String[] values = announced;
      announced = null;
      String[] before = byDirectory.put(directory, values);
      if (before != null && !Arrays.equals(before, values)) {
        ambiguous.add(directory);
      }
      return values;
    }
    String[] values = byDirectory.get(directory);
    if (values == null || (opensSeveral && ambiguous.contains(directory))) {
      throw new IllegalStateException(
          "deltalog cannot tell which partition a file in the directory "
              + directory
              + " belongs to, because several "
              + "partitions share that name: set spark.sql.maxConcurrentOutputFileWriters to 0");
    }
    return values;
  }
}
