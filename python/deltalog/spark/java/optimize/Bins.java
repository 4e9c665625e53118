package io.deltalog.spark;

import java.io.Serializable;
import java.util.List;

/** The bins of a batch of an OPTIMIZE: how many files each has, and where the file that they become belongs. */
public class Bins implements Serializable {
  /** The number of the first file of each bin, and at the end that of all files. */
  private final int[] starts;
  /** The directory of each new file; null for the root. */
  private final String[] directories;
  /** The text of the partition values of each new file. */
  private final String[][] values;

  /** Takes the bins as JSON: for each its number of files, directory and partition values. */
  public Bins(String json) {
    List bins = (List) Json.value(json, List.class);
    starts = new int[bins.size() + 1];
    directories = new String[bins.size()];
    values = new String[bins.size()][];
    for (int i = 0; i < directories.length; i++) {
      List bin = (List) bins.get(i);
      starts[i + 1] = starts[i] + ((Number) bin.get(0)).intValue();
      String directory = (String) bin.get(1);
      directories[i] = directory.isEmpty() ? null : directory.substring(0, directory.length() - 1);
      values[i] = (String[]) ((List) bin.get(2)).toArray(new String[0]);
    }
  }

  /** Returns the number of bins. */
  public int count() {
    return directories.length;
  }

  /** Returns the number of the first file of a bin. Those of the last one end at that of the bin after it. */
  public int start(int bin) {
    return starts[bin];
  }

  public String directory(int bin) {
    return directories[bin];
  }

  public String[] values(int bin) {
    return values[bin];
  }
}
