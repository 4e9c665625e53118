package io.deltalog.spark;

import java.util.BitSet;
import java.util.PrimitiveIterator;
import org.apache.parquet.internal.column.columnindex.OffsetIndex;

/**
 * Runs of consecutive rows in a row group, presented as pages, because Parquet makes ranges of rows
 * from pages.
 */
public class RowRuns implements OffsetIndex {
  private final long[] starts;
  private final long[] ends;
  private int count;

  /**
   * Creates the runs from the rows, which are ascending positions in the file; first is the
   * position of the row group's first row.
   */
  public RowRuns(long[] rows, long first) {
    starts = new long[rows.length];
    ends = new long[rows.length];
    for (long position : rows) {
      long row = position - first;
      if (count == 0 || row != ends[count - 1] + 1) {
        starts[count++] = row;
      }
      ends[count - 1] = row;
    }
  }

  public PrimitiveIterator.OfInt all() {
    BitSet runs = new BitSet(count);
    runs.set(0, count);
    return runs.stream().iterator();
  }

  @Override
  public int getPageCount() {
    return count;
  }

  @Override
  public long getFirstRowIndex(int run) {
    return starts[run];
  }

  @Override
  public long getLastRowIndex(int run, long rows) {
    return ends[run];
  }

  @Override
  public long getOffset(int run) {
    throw new UnsupportedOperationException("runs of rows have no place in a file");
  }

  @Override
  public int getCompressedPageSize(int run) {
    throw new UnsupportedOperationException("runs of rows have no size");
  }
}
