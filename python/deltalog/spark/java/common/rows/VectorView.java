package io.deltalog.spark;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A view of a column in another type. The underlying column belongs to the reader, which refills
 * and closes it.
 */
public abstract class VectorView extends ColumnVector {
  protected final ColumnVector stored;

  public VectorView(ColumnVector stored, DataType type) {
    super(type);
    this.stored = stored;
  }

  @Override
  public void close() {}

  @Override
  public void closeIfFreeable() {}

  @Override
  public boolean hasNull() {
    return stored.hasNull();
  }

  @Override
  public int numNulls() {
    return stored.numNulls();
  }

  @Override
  public boolean isNullAt(int row) {
    return stored.isNullAt(row);
  }

  @Override
  public boolean getBoolean(int row) {
    return stored.getBoolean(row);
  }

  @Override
  public byte getByte(int row) {
    return stored.getByte(row);
  }

  @Override
  public short getShort(int row) {
    return stored.getShort(row);
  }

  @Override
  public int getInt(int row) {
    return stored.getInt(row);
  }

  @Override
  public long getLong(int row) {
    return stored.getLong(row);
  }

  @Override
  public float getFloat(int row) {
    return stored.getFloat(row);
  }

  @Override
  public double getDouble(int row) {
    return stored.getDouble(row);
  }

  @Override
  public ColumnarArray getArray(int row) {
    return stored.getArray(row);
  }

  @Override
  public ColumnarMap getMap(int row) {
    return stored.getMap(row);
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    return stored.getDecimal(row, precision, scale);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    return stored.getUTF8String(row);
  }

  @Override
  public byte[] getBinary(int row) {
    return stored.getBinary(row);
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    return stored.getChild(ordinal);
  }
}
