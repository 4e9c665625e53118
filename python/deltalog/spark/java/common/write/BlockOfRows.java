package io.deltalog.spark;

import org.roaringbitmap.BitSetUtil;
import org.roaringbitmap.RoaringBitmap;

/**
 * Collects rows for a bitmap. If rows come in ascending order, as in a scan, this is faster than
 * adding them one by one: the last block of 65,536 rows is kept as plain bits. Rows of earlier
 * blocks are added to the bitmap directly.
 */
public class BlockOfRows {
  private static final int BLOCK = 16;

  private final RoaringBitmap rows;

  /** The last block that has rows. */
  private int block;

  /** The rows of this block; null if they are already in the bitmap. */
  private long[] bits;

  public BlockOfRows(RoaringBitmap rows) {
    this.rows = rows;
    this.block = rows.isEmpty() ? -1 : rows.last() >>> BLOCK;
  }

  /** Adds a row, and returns whether it is new. */
  public boolean add(int row) {
    int of = row >>> BLOCK;
    if (of > block) {
      settle();
      block = of;
      bits = new long[1 << (BLOCK - 6)];
    } else if (of < block || bits == null) {
      return rows.checkedAdd(row);
    }
    int word = row >>> 6 & bits.length - 1;
    long bit = 1L << (row & 63);
    boolean isNew = (bits[word] & bit) == 0;
    bits[word] |= bit;
    return isNew;
  }

  public boolean contains(int row) {
    if (bits != null && row >>> BLOCK == block) {
      return (bits[row >>> 6 & bits.length - 1] & 1L << (row & 63)) != 0;
    }
    return rows.contains(row);
  }

  /** Moves all added rows to the bitmap. */
  public void settle() {
    if (bits != null) {
      rows.or(RoaringBitmap.addOffset(BitSetUtil.bitmapOf(bits), (long) block << BLOCK));
      bits = null;
    }
  }
}
