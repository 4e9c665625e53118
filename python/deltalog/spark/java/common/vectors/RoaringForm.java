package io.deltalog.spark;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;

/**
 * Checks 32-bit Roaring bitmaps in the portable format, because RoaringBitmap does not validate the
 * bytes that it maps.
 *
 * <p>The keys of containers and the values in each container must ascend. Arrays and bitsets must
 * have as many values as the header states; for runs, the header's number is ignored. The offsets
 * of the containers follow from their sizes, and wrong offsets in the header are corrected. Work
 * and memory are bounded by the number of bytes.
 */
public class RoaringForm {
  private static final int WITHOUT_RUNS = 12346;
  private static final int WITH_RUNS = 12347;
  private static final int MOST_IN_ARRAY = 4096;
  private static final int WORDS = 1024;

  /** A bitmap with runs has offsets if it has at least this many containers. */
  private static final int OFFSETS_FROM = 4;

  /**
   * Moves the little-endian buffer past the bitmap at its position, and returns the number of
   * values in it.
   */
  public static long check(ByteBuffer bytes) throws MalformedVector {
    try {
      return skip(bytes);
    } catch (BufferUnderflowException | IllegalArgumentException e) { // A position beyond the end.
      throw new MalformedVector("the deletion vector is truncated");
    }
  }

  private static long skip(ByteBuffer bytes) throws MalformedVector {
    int start = bytes.position();
    int cookie = bytes.getInt();
    boolean runs = (cookie & 0xffff) == WITH_RUNS;
    if (!runs && cookie != WITHOUT_RUNS) {
      throw malformed("begins with " + cookie);
    }
    int count = runs ? (cookie >>> 16) + 1 : bytes.getInt();
    if (count < 0 || count > 1 << 16) {
      throw malformed("claims " + count + " containers");
    }
    byte[] isRun = new byte[runs ? (count + 7) / 8 : 0];
    bytes.get(isRun);
    int header = bytes.position();
    bytes.position(header + 4 * count);
    int offsets = !runs || count >= OFFSETS_FROM ? bytes.position() : -1;
    if (offsets >= 0) {
      bytes.position(offsets + 4 * count);
    }
    long all = 0;
    int previous = -1;
    for (int i = 0; i < count; i++) {
      int key = bytes.getShort(header + 4 * i) & 0xffff;
      int cardinality = (bytes.getShort(header + 4 * i + 2) & 0xffff) + 1;
      if (key <= previous) {
        throw malformed("has the container " + key + " out of order");
      }
      if (offsets >= 0) {
        bytes.putInt(offsets + 4 * i, bytes.position() - start);
      }
      previous = key;
      int held;
      if (runs && (isRun[i / 8] >> (i % 8) & 1) != 0) {
        held = runs(bytes);
      } else {
        held = cardinality <= MOST_IN_ARRAY ? array(bytes, cardinality) : words(bytes);
        if (held != cardinality) {
          throw malformed("holds " + held + " values in a container that claims " + cardinality);
        }
      }
      all += held;
    }
    return all;
  }

  private static int runs(ByteBuffer bytes) throws MalformedVector {
    int held = 0;
    int last = -2;
    int count = bytes.getShort() & 0xffff;
    if (count == 0) {
      throw malformed("has a container without runs");
    }
    for (int left = count; left > 0; left--) {
      int first = bytes.getShort() & 0xffff;
      int length = bytes.getShort() & 0xffff;
      if (first <= last + 1 || first + length > 0xffff) {
        throw malformed("has runs that are out of order or not merged");
      }
      last = first + length;
      held += length + 1;
    }
    return held;
  }

  private static int array(ByteBuffer bytes, int count) throws MalformedVector {
    int last = -1;
    for (int i = 0; i < count; i++) {
      int value = bytes.getShort() & 0xffff;
      if (value <= last) {
        throw malformed("has a value out of order");
      }
      last = value;
    }
    return count;
  }

  private static int words(ByteBuffer bytes) {
    int held = 0;
    for (int i = 0; i < WORDS; i++) {
      held += Long.bitCount(bytes.getLong());
    }
    return held;
  }

  private static MalformedVector malformed(String what) {
    return new MalformedVector(
        "the deletion vector holds a malformed Roaring bitmap, which " + what);
  }
}
