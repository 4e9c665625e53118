package io.deltalog.spark;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A view of a column in another type. The underlying column belongs to the reader, which refills and closes
 * it.
 */
public abstract class VectorView extends ColumnVector {
  protected final ColumnVector stored;

  public VectorView(ColumnVector stored, DataType type) {
    super(type);
    this.stored = stored;
  }

  public void close() {}

  public void closeIfFreeable() {}

  public boolean hasNull() {
    return stored.hasNull();
  }

  public int numNulls() {
    return stored.numNulls();
  }

  public boolean isNullAt(int row) {
    return stored.isNullAt(row);
  }

  public boolean getBoolean(int row) {
    return stored.getBoolean(row);
  }

  public byte getByte(int row) {
    return stored.getByte(row);
  }

  public short getShort(int row) {
    return stored.getShort(row);
  }

  public int getInt(int row) {
    return stored.getInt(row);
  }

  public long getLong(int row) {
    return stored.getLong(row);
  }

  public float getFloat(int row) {
    return stored.getFloat(row);
  }

  public double getDouble(int row) {
    return stored.getDouble(row);
  }

  public ColumnarArray getArray(int row) {
    return stored.getArray(row);
  }

  public ColumnarMap getMap(int row) {
    return stored.getMap(row);
  }

  public Decimal getDecimal(int row, int precision, int scale) {
    return stored.getDecimal(row, precision, scale);
  }

  public UTF8String getUTF8String(int row) {
    return stored.getUTF8String(row);
  }

  public byte[] getBinary(int row) {
    return stored.getBinary(row);
  }

  public ColumnVector getChild(int ordinal) {
    return stored.getChild(ordinal);
  }
}
