package io.deltalog.spark;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.roaringbitmap.PeekableIntIterator;
import org.roaringbitmap.buffer.ImmutableRoaringBitmap;

/**
 * Which rows of a data file a scan shows: all but those in a bitmap (its deletion vector), or none but those (change data).
 *
 * The bitmap comes as the planner has checked and written it, 64-bit Roaring in the portable form: u64 n, and n times u32 key and a
 * 32-bit Roaring bitmap of the rows key * 2^32 + x; little endian, keys ascending. It is read where it lies, never unpacked.
 *
 * One cursor follows the rows, which a reader delivers in ascending order; an order that goes back costs a restart, no more.
 */
public class RowSelection {
  private static final long NONE = Long.MAX_VALUE;
  private final boolean keep;
  private final long[] bases;
  private final ImmutableRoaringBitmap[] bitmaps;
  private int bucket;
  private PeekableIntIterator cursor;
  /** The first row of the bitmap that is not before the row asked for last. */
  private long next;
  private long last;

  public RowSelection(byte[] bytes, boolean keep) {
    this.keep = keep;
    ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    int count = (int) buffer.getLong();
    bases = new long[count];
    bitmaps = new ImmutableRoaringBitmap[count];
    for (int i = 0; i < count; i++) {
      bases[i] = (long) buffer.getInt() << 32;
      bitmaps[i] = new ImmutableRoaringBitmap(buffer);
      buffer.position(buffer.position() + bitmaps[i].serializedSizeInBytes());
    }
    restart();
  }

  private void restart() {
    bucket = 0;
    cursor = null;
    last = -1;
    seek(0);
  }

  /** Moves to the first row of the bitmap from row on. */
  private void seek(long row) {
    for (; bucket < bases.length; bucket++) {
      if (cursor == null) {
        cursor = bitmaps[bucket].getIntIterator();
      }
      if (bases[bucket] < row) {
        if (row - bases[bucket] > 0xffffffffL) {
          cursor = null;
          continue;
        }
        cursor.advanceIfNeeded((int) (row - bases[bucket]));
      }
      if (cursor.hasNext()) {
        next = bases[bucket] + (cursor.peekNext() & 0xffffffffL);
        return;
      }
      cursor = null;
    }
    next = NONE;
  }

  private boolean holds(long row) {
    if (row < last) {
      restart();
    }
    last = row;
    if (next < row) {
      seek(row);
    }
    return next == row;
  }

  /** Whether the scan shows the row. */
  public boolean shows(long row) {
    return holds(row) == keep;
  }

  /** Writes the positions of those among the first count rows of a batch that the scan shows, and returns how many. */
  public int select(ColumnVector rowIndexes, int count, int[] positions) {
    if (count == 0) {
      return 0;
    }
    long first = rowIndexes.getLong(0);
    boolean contiguous = rowIndexes.getLong(count - 1) - first == count - 1;
    int shown = 0;
    for (int i = 0; i < count; i++) {
      if (shows(contiguous ? first + i : rowIndexes.getLong(i))) {
        positions[shown++] = i;
      }
    }
    return shown;
  }
}
