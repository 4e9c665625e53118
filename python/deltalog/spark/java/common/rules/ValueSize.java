package io.deltalog.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.VariantType;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/** Estimates the minimum number of bytes that a Spark value takes. */
public class ValueSize {
  /** The overhead of a value in addition to its bytes. */
  public static final long OF_EACH = 16;

  private ValueSize() {}

  /** Returns whether values of a type may differ in size. */
  public static boolean varies(DataType type) {
    return type instanceof StringType
        || type instanceof BinaryType
        || type instanceof ArrayType
        || type instanceof MapType
        || type instanceof StructType
        || type instanceof VariantType;
  }

  /** Returns the bytes of a value. Stops counting above `most`. */
  public static long of(Object value, DataType type, long most) {
    if (value instanceof UTF8String text) {
      return OF_EACH + text.numBytes();
    }
    if (value instanceof byte[] bytes) {
      return OF_EACH + bytes.length;
    }
    if (value instanceof VariantVal variant) {
      return OF_EACH + variant.getValue().length + variant.getMetadata().length;
    }
    if (value instanceof ArrayData array && type instanceof ArrayType arrayType) {
      return ofArray(array, arrayType.elementType(), most);
    }
    if (value instanceof MapData map && type instanceof MapType mapType) {
      long keys = ofArray(map.keyArray(), mapType.keyType(), most);
      return keys > most
          ? keys
          : keys + ofArray(map.valueArray(), mapType.valueType(), most - keys);
    }
    if (value instanceof InternalRow row && type instanceof StructType structType) {
      return ofRow(row, structType, most);
    }
    return OF_EACH;
  }

  private static long ofArray(ArrayData array, DataType type, long most) {
    long bytes = OF_EACH * (1 + array.numElements());
    for (int i = 0; varies(type) && i < array.numElements() && bytes <= most; i++) {
      if (!array.isNullAt(i)) {
        bytes += of(array.get(i, type), type, most - bytes);
      }
    }
    return bytes;
  }

  private static long ofRow(InternalRow row, StructType type, long most) {
    long bytes = OF_EACH;
    for (int i = 0; i < type.length() && bytes <= most; i++) {
      DataType field = type.fields()[i].dataType();
      bytes += row.isNullAt(i) ? OF_EACH : of(row.get(i, field), field, most - bytes);
    }
    return bytes;
  }
}
