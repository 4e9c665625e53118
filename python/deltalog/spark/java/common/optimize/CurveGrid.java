package io.deltalog.spark;

import java.io.Serializable;
import java.util.Arrays;

/**
 * Computes the positions of cells on a Hilbert curve or the Z-order through a grid, as in the
 * core's `optimize::curve`. A position is encoded as bytes, which compare in the same order as
 * positions, followed by a number that distinguishes rows in the same cell.
 */
public class CurveGrid implements Serializable {
  private final boolean isHilbert;
  private final int dimensions;
  private final int bits;

  /** Creates the grid; each coordinate has `bits` bits. */
  public CurveGrid(boolean isHilbert, int dimensions, int bits) {
    this.isHilbert = isHilbert;
    this.dimensions = dimensions;
    this.bits = bits;
  }

  public int bits() {
    return bits;
  }

  /** Returns the position of a cell. The call overwrites the given coordinates. */
  public byte[] place(int[] cell, long tie) {
    if (isHilbert && dimensions > 1) {
      transpose(cell);
    }
    int length = (bits * dimensions + 7) / 8;
    byte[] place = new byte[length + 8];
    int at = 0;
    for (int bit = bits - 1; bit >= 0; bit--) {
      for (int i = 0; i < dimensions; i++) {
        place[at >> 3] |= (byte) ((cell[i] >> bit & 1) << (7 - (at & 7)));
        at++;
      }
    }
    for (int i = 0; i < 8; i++) {
      place[length + i] = (byte) (tie >>> (56 - 8 * i));
    }
    return place;
  }

  /**
   * Replaces the coordinates so that their interleaved bits are the position on a Hilbert curve: J.
   * Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707 (2004),
   * AxestoTranspose.
   */
  private void transpose(int[] cell) {
    for (int bit = bits - 1; bit > 0; bit--) {
      int below = (1 << bit) - 1;
      for (int i = 0; i < dimensions; i++) {
        if ((cell[i] >> bit & 1) == 1) {
          cell[0] ^= below;
        } else {
          int swapped = (cell[0] ^ cell[i]) & below;
          cell[0] ^= swapped;
          cell[i] ^= swapped;
        }
      }
    }
    for (int i = 1; i < dimensions; i++) {
      cell[i] ^= cell[i - 1];
    }
    int flipped = 0;
    for (int bit = bits - 1; bit > 0; bit--) {
      if ((cell[dimensions - 1] >> bit & 1) == 1) {
        flipped ^= (1 << bit) - 1;
      }
    }
    for (int i = 0; i < dimensions; i++) {
      cell[i] ^= flipped;
    }
  }

  /**
   * Returns the positions of all cells of the grid as hexadecimal digits. The first coordinate
   * varies fastest.
   */
  public String[] all() {
    String[] places = new String[1 << (bits * dimensions)];
    int[] cell = new int[dimensions];
    for (int number = 0; number < places.length; number++) {
      for (int i = 0; i < dimensions; i++) {
        cell[i] = number >> (i * bits) & ((1 << bits) - 1);
      }
      byte[] place = place(cell, 0);
      places[number] =
          new java.math.BigInteger(1, Arrays.copyOf(place, place.length - 8)).toString(16);
    }
    return places;
  }
}
