package io.deltalog.spark;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.roaringbitmap.PeekableIntIterator;
import org.roaringbitmap.buffer.ImmutableRoaringBitmap;

/**
 * The rows of a data file that a deletion vector marks. (PROTOCOL, "Deletion Vector Format".)
 *
 * <pre>
 *   portable   u32 magic 1681511377 | u64 buckets | u32 key,  32-bit Roaring bitmap | ...
 *   native     u32 magic 1681511376 | u32 buckets | u32 size, 32-bit Roaring bitmap | ...
 * </pre>
 *
 * <ul>
 *   <li>The portable format is little endian. The native format is older and is used in the
 *       protocol's example of an inline vector. It has either byte order, and no keys: they count
 *       up from zero.
 *   <li>Keys are the upper halves of row numbers. They ascend and are not negative. No bytes follow
 *       the last bitmap.
 *   <li>Bitmaps are read in place and never unpacked.
 * </ul>
 *
 * A cursor moves along the marked rows, because readers ask for rows in ascending order. Going
 * backwards also works, but restarts the cursor.
 */
public class DeletionVector {
  private static final int PORTABLE = 1681511377;
  private static final int NATIVE = 1681511376;

  /** The minimum size of a bucket: a key, and a bitmap without containers. */
  private static final int LEAST_BUCKET = 12;

  private static final long NONE = Long.MAX_VALUE;
  private final List<Long> bases = new ArrayList<>();
  private final List<ImmutableRoaringBitmap> bitmaps = new ArrayList<>();
  private int bucket;
  private PeekableIntIterator cursor;

  /** The first row of the vector that is not before the last requested row. */
  private long next;

  private long asked;

  public DeletionVector(byte[] vector, long cardinality) throws MalformedVector {
    ByteBuffer bytes = ByteBuffer.wrap(vector).order(ByteOrder.LITTLE_ENDIAN);
    require(8, bytes);
    int magic = bytes.getInt();
    boolean portable = magic == PORTABLE;
    boolean bigEndian = magic == Integer.reverseBytes(NATIVE);
    if (!portable && !bigEndian && magic != NATIVE) {
      throw new MalformedVector(
          "the deletion vector begins with " + magic + " instead of " + PORTABLE);
    }
    long rows = portable ? portable(bytes) : unkeyed(bytes, bigEndian);
    if (bytes.hasRemaining()) {
      throw new MalformedVector("the deletion vector has " + bytes.remaining() + " trailing bytes");
    }
    if (rows != cardinality) {
      throw new MalformedVector(
          "the deletion vector holds " + rows + " rows, but its descriptor says " + cardinality);
    }
    restart();
  }

  private long portable(ByteBuffer bytes) throws MalformedVector {
    require(8, bytes);
    long rows = 0;
    int previous = -1;
    for (int left = plausible(bytes.getLong(), bytes); left > 0; left--) {
      require(LEAST_BUCKET, bytes);
      int key = bytes.getInt();
      if (key <= previous) {
        throw new MalformedVector(
            "the deletion vector's bucket " + (key & 0xffffffffL) + " is out of order");
      }
      previous = key;
      rows += bucket(key, bytes);
    }
    return rows;
  }

  private long unkeyed(ByteBuffer bytes, boolean bigEndian) throws MalformedVector {
    long rows = 0;
    int count = plausible(number(bytes, bigEndian) & 0xffffffffL, bytes);
    for (int key = 0; key < count; key++) {
      require(LEAST_BUCKET, bytes);
      int size = number(bytes, bigEndian);
      require(size & 0xffffffffL, bytes);
      int end = bytes.position() + size;
      rows += bucket(key, bytes);
      if (bytes.position() != end) {
        throw new MalformedVector("the size of the deletion vector's bucket " + key + " is wrong");
      }
    }
    return rows;
  }

  private static void require(long count, ByteBuffer bytes) throws MalformedVector {
    if (bytes.remaining() < count) {
      throw new MalformedVector("the deletion vector is truncated");
    }
  }

  private static int number(ByteBuffer bytes, boolean bigEndian) {
    int number = bytes.getInt();
    return bigEndian ? Integer.reverseBytes(number) : number;
  }

  /** Returns the count if the bytes can hold that many buckets; otherwise throws. */
  private static int plausible(long count, ByteBuffer bytes) throws MalformedVector {
    if (count < 0 || count > bytes.remaining() / LEAST_BUCKET) {
      throw new MalformedVector(
          "the deletion vector claims " + count + " buckets in " + bytes.remaining() + " bytes");
    }
    return (int) count;
  }

  private long bucket(int key, ByteBuffer bytes) throws MalformedVector {
    ByteBuffer bitmap = bytes.slice();
    long rows = RoaringForm.check(bytes);
    if (rows > 0) {
      bases.add(Long.valueOf((long) key << 32));
      bitmaps.add(new ImmutableRoaringBitmap(bitmap));
    }
    return rows;
  }

  /** Returns the last row, or -1 if the vector is empty. */
  public long last() {
    int at = bases.size() - 1;
    return at < 0 ? -1 : base(at) + (bitmaps.get(at).last() & 0xffffffffL);
  }

  private long base(int at) {
    return bases.get(at);
  }

  private void restart() {
    bucket = 0;
    cursor = null;
    asked = -1;
    seek(0);
  }

  /** Moves to the first row of the vector that is not before row. */
  private void seek(long row) {
    for (; bucket < bases.size(); bucket++) {
      long base = base(bucket);
      if (cursor == null) {
        cursor = bitmaps.get(bucket).getIntIterator();
      }
      if (base < row) {
        if (row - base > 0xffffffffL) {
          cursor = null;
          continue;
        }
        cursor.advanceIfNeeded((int) (row - base));
      }
      if (cursor.hasNext()) {
        next = base + (cursor.peekNext() & 0xffffffffL);
        return;
      }
      cursor = null;
    }
    next = NONE;
  }

  /**
   * Returns the first row of the vector that is not before row, or Long.MAX_VALUE if there is none.
   */
  public long from(long row) {
    if (row < asked) {
      restart();
    }
    asked = row;
    if (next < row) {
      seek(row);
    }
    return next;
  }
}
