package io.deltalog.spark;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.classic.Dataset;

/**
 * Finds rows of old files in the new files, after an OPTIMIZE has shuffled and sorted them. This is
 * needed if another writer has deleted the rows in the meantime.
 *
 * <p>Tasks do not record where they write each row. But a row's position on the curve is unique, so
 * its position in the new file is the number of rows of the same task with smaller positions on the
 * curve. One job finds the positions of the rows on the curve, and another one counts the rows
 * before them. Both jobs read the columns by which rows are ordered, and shuffle nothing.
 */
public class RowSearch {
  /** The maximum total size in bytes of the answers of all tasks that count. */
  private static final long ANSWERS = 1 << 28;

  private final Dataset<Row> rows;
  private final Bins bins;
  private final CurvePlaces places;
  private final OrderedColumn[] columns;

  /**
   * Takes the same rows that were ordered; the last columns are the number of the file and the
   * position there.
   */
  public RowSearch(Dataset<Row> rows, Bins bins, CurvePlaces places, OrderedColumn[] columns) {
    this.rows = rows;
    this.bins = bins;
    this.places = places;
    this.columns = columns;
  }

  /**
   * Finds rows, which must be sorted by file and position. Each row is given as an int, the number
   * of its old file, and a long, its position there. Returns, for each row, an int, the number of
   * the task that wrote it, and a long, its position in the file of that task. Returns null if the
   * answers of the counting tasks would be too large.
   */
  public byte[] find(byte[] asked) {
    ByteBuffer in = ByteBuffer.wrap(asked);
    int count = asked.length / 12;
    if (8L * count * rows.queryExecution().toRdd().getNumPartitions() > ANSWERS) {
      return null;
    }
    int[] files = new int[count];
    long[] positions = new long[count];
    for (int i = 0; i < count; i++) {
      files[i] = in.getInt();
      positions[i] = in.getLong();
    }
    byte[][] found = places(files, positions);
    int[] tasks = new int[count];
    Integer[] order = new Integer[count];
    for (int i = 0; i < count; i++) {
      if (found[i] == null) {
        throw new IllegalStateException(
            "an internal error of deltalog: row "
                + positions[i]
                + " of the file "
                + files[i]
                + " was not read again");
      }
      tasks[i] = places.task(files[i], found[i]);
      order[i] = Integer.valueOf(i);
    }
    Arrays.sort(
        order,
        Comparator.<Integer>comparingInt(row -> tasks[row])
            .thenComparing((one, other) -> Arrays.compareUnsigned(found[one], found[other])));
    byte[][][] ofTasks = new byte[bins.tasks()][][];
    int[] firsts = new int[bins.tasks()];
    boolean[] counted = new boolean[bins.start(bins.count())];
    int begun = 0;
    while (begun < count) {
      int task = tasks[order[begun].intValue()];
      List<byte[]> ofTask = new ArrayList<>();
      int end = begun;
      while (end < count && tasks[order[end].intValue()] == task) {
        ofTask.add(found[order[end].intValue()]);
        end++;
      }
      ofTasks[task] = ofTask.toArray(new byte[0][]);
      firsts[task] = begun;
      begun = end;
      int bin = bins.ofTask(task);
      Arrays.fill(counted, bins.start(bin), bins.start(bin + 1), true);
    }
    RowCountTask counting = new RowCountTask(places, columns, ofTasks, firsts, count, counted);
    long[] between = new RowCountJob(rows, count).sums(counting);
    ByteBuffer out = ByteBuffer.allocate(12 * count);
    long position = 0;
    for (int i = 0; i < count; i++) {
      int row = order[i].intValue();
      // Each number counts the rows from the previous searched row (inclusive) to the current one.
      position = between[i] + (i == firsts[tasks[row]] ? 0 : position);
      out.putInt(12 * row, tasks[row]);
      out.putLong(12 * row + 4, position);
    }
    return out.array();
  }

  /** Returns the positions of rows on the curve. The rows must be sorted by file and position. */
  private byte[][] places(int[] files, long[] positions) {
    long[][] ofFiles = new long[bins.start(bins.count())][];
    int[] firsts = new int[ofFiles.length];
    int begun = 0;
    while (begun < files.length) {
      int end = begun;
      while (end < files.length && files[end] == files[begun]) {
        end++;
      }
      ofFiles[files[begun]] = Arrays.copyOfRange(positions, begun, end);
      firsts[files[begun]] = begun;
      begun = end;
    }
    RowPlaceTask task = new RowPlaceTask(places, columns, ofFiles, firsts);
    return new RowPlaceJob(rows, files.length).places(task);
  }
}
