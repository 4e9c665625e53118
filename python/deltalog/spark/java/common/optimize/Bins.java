package io.deltalog.spark;

import java.io.Serializable;
import java.util.Arrays;
import java.util.List;

/**
 * The bins of a batch of an OPTIMIZE: how many files each has, and where the new files belong. A
 * bin becomes one file, or several if its rows are ordered. Each new file is written by the task
 * with its number.
 */
public class Bins implements Serializable {
  /** The number of the first old file of each bin, and at the end the number of all files. */
  private final int[] starts;

  /** The number of the first new file of each bin, and at the end the number of all files. */
  private final int[] tasks;

  private final boolean[] ordered;

  /** The number of rows in the old files of each bin; -1 if the log does not have the number. */
  private final long[] rows;

  /** The directory of the new files; null for the root. */
  private final String[] directories;

  /** The partition values of the new files, as strings. */
  private final String[][] values;

  /**
   * Takes the bins as JSON: for each bin, how many old files and new files it has, whether its rows
   * are ordered, how many rows there are (or null), and the directory and the partition values.
   */
  public Bins(String json) {
    List<List<?>> bins = Json.list(json);
    starts = new int[bins.size() + 1];
    tasks = new int[bins.size() + 1];
    ordered = new boolean[bins.size()];
    rows = new long[bins.size()];
    directories = new String[bins.size()];
    values = new String[bins.size()][];
    for (int i = 0; i < directories.length; i++) {
      List<?> bin = bins.get(i);
      starts[i + 1] = starts[i] + ((Number) bin.get(0)).intValue();
      tasks[i + 1] = tasks[i] + ((Number) bin.get(1)).intValue();
      ordered[i] = (Boolean) bin.get(2);
      rows[i] = bin.get(3) == null ? -1 : ((Number) bin.get(3)).longValue();
      String directory = (String) bin.get(4);
      directories[i] = directory.isEmpty() ? null : directory.substring(0, directory.length() - 1);
      values[i] = ((List<?>) bin.get(5)).toArray(new String[0]);
    }
  }

  /** Returns the number of bins. */
  public int count() {
    return directories.length;
  }

  /**
   * Returns the number of the first file of a bin. For the index after the last bin, returns the
   * number of all files.
   */
  public int start(int bin) {
    return starts[bin];
  }

  /**
   * Returns the number of the first new file of a bin, which is also the number of its task. For
   * the index after the last bin, returns the number of all new files.
   */
  public int firstTask(int bin) {
    return tasks[bin];
  }

  /** Returns the number of new files. */
  public int tasks() {
    return tasks[directories.length];
  }

  /** Returns the bin of an old file. Every bin has at least one file. */
  public int ofFile(int file) {
    return of(starts, file);
  }

  /** Returns the bin of a task. */
  public int ofTask(int task) {
    return of(tasks, task);
  }

  private static int of(int[] starts, int number) {
    int found = Arrays.binarySearch(starts, number);
    return found >= 0 ? found : -found - 2;
  }

  public boolean isOrdered(int bin) {
    return ordered[bin];
  }

  /** Returns whether the number of the rows of a bin is known. */
  public boolean isExact(int bin) {
    return rows[bin] >= 0;
  }

  /** Returns the number of rows in the old files of a bin, including deleted rows. */
  public long rows(int bin) {
    return rows[bin];
  }

  public String directory(int bin) {
    return directories[bin];
  }

  public String[] values(int bin) {
    return values[bin];
  }
}
