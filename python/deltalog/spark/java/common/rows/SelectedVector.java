package io.deltalog.spark;

import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A view of a batch's column that shows only the rows at some positions. The underlying column
 * belongs to the reader, which refills and closes it.
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

  @Override
  public void close() {}

  @Override
  public void closeIfFreeable() {}

  @Override
  public boolean hasNull() {
    return hasNulls;
  }

  @Override
  public int numNulls() {
    return all.numNulls();
  }

  @Override
  public boolean isNullAt(int row) {
    return hasNulls && all.isNullAt(positions[row]);
  }

  @Override
  public boolean getBoolean(int row) {
    return all.getBoolean(positions[row]);
  }

  @Override
  public byte getByte(int row) {
    return all.getByte(positions[row]);
  }

  @Override
  public short getShort(int row) {
    return all.getShort(positions[row]);
  }

  @Override
  public int getInt(int row) {
    return all.getInt(positions[row]);
  }

  @Override
  public long getLong(int row) {
    return all.getLong(positions[row]);
  }

  @Override
  public float getFloat(int row) {
    return all.getFloat(positions[row]);
  }

  @Override
  public double getDouble(int row) {
    return all.getDouble(positions[row]);
  }

  @Override
  public ColumnarArray getArray(int row) {
    return all.getArray(positions[row]);
  }

  @Override
  public ColumnarMap getMap(int row) {
    return all.getMap(positions[row]);
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    return all.getDecimal(positions[row], precision, scale);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    return all.getUTF8String(positions[row]);
  }

  @Override
  public byte[] getBinary(int row) {
    return all.getBinary(positions[row]);
  }

  /**
   * Returns a child column. Children of structs and variants have one value per row. Children of
   * arrays and maps do not; they are accessed only through their rows.
   */
  @Override
  public ColumnVector getChild(int ordinal) {
    if (!(type instanceof StructType) && !(type instanceof VariantType)) {
      return all.getChild(ordinal);
    }
    if (children == null) {
      children = new SelectedVector[type instanceof StructType struct ? struct.length() : 2];
    }
    if (children[ordinal] == null) {
      children[ordinal] = new SelectedVector(all.getChild(ordinal), positions);
    }
    return children[ordinal];
  }
}
