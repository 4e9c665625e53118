package io.deltalog.spark;

import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A view of a batch's column that shows only the rows at some positions. The underlying column belongs to the
 * reader, which refills and closes it.
 */
public final class SelectedVector extends ColumnVector {
  private final ColumnVector all;
  private final int[] positions;
  private SelectedVector[] children;
  private boolean hasNulls;

  public SelectedVector(ColumnVector all, int[] positions) {
    super(all.dataType());
    this.all = all;
    this.positions = positions;
    begin();
  }

  /** Updates the view after the underlying column was refilled. */
  public void begin() {
    hasNulls = all.hasNull();
    for (int i = 0; children != null && i < children.length; i++) {
      if (children[i] != null) {
        children[i].begin();
      }
    }
  }

  public boolean shows(ColumnVector column) {
    return all == column;
  }

  public void close() {}

  public void closeIfFreeable() {}

  public boolean hasNull() {
    return hasNulls;
  }

  public int numNulls() {
    return all.numNulls();
  }

  public boolean isNullAt(int row) {
    return hasNulls && all.isNullAt(positions[row]);
  }

  public boolean getBoolean(int row) {
    return all.getBoolean(positions[row]);
  }

  public byte getByte(int row) {
    return all.getByte(positions[row]);
  }

  public short getShort(int row) {
    return all.getShort(positions[row]);
  }

  public int getInt(int row) {
    return all.getInt(positions[row]);
  }

  public long getLong(int row) {
    return all.getLong(positions[row]);
  }

  public float getFloat(int row) {
    return all.getFloat(positions[row]);
  }

  public double getDouble(int row) {
    return all.getDouble(positions[row]);
  }

  public ColumnarArray getArray(int row) {
    return all.getArray(positions[row]);
  }

  public ColumnarMap getMap(int row) {
    return all.getMap(positions[row]);
  }

  public Decimal getDecimal(int row, int precision, int scale) {
    return all.getDecimal(positions[row], precision, scale);
  }

  public UTF8String getUTF8String(int row) {
    return all.getUTF8String(positions[row]);
  }

  public byte[] getBinary(int row) {
    return all.getBinary(positions[row]);
  }

  /**
   * Returns a child column. Children of structs and variants have one value per row. Children of arrays and
   * maps do not; they are accessed only through their rows.
   */
  public ColumnVector getChild(int ordinal) {
    if (!(type instanceof StructType) && !(type instanceof VariantType)) {
      return all.getChild(ordinal);
    }
    if (children == null) {
      children = new SelectedVector[type instanceof StructType ? ((StructType) type).length() : 2];
    }
    if (children[ordinal] == null) {
      children[ordinal] = new SelectedVector(all.getChild(ordinal), positions);
    }
    return children[ordinal];
  }
}
