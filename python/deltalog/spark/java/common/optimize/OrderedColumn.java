package io.deltalog.spark;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.math.BigInteger;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A column by which rows are ordered: the place of its values in a row, and their order, which is
 * the same as in the statistics of files. A value is a Long, a Double, bytes (the UTF-8 form of a
 * string), or the unscaled digits of a large decimal.
 */
public class OrderedColumn implements Serializable {
  /**
   * The maximum number of bytes of a value that are compared. More bytes would not help, because
   * statistics contain only a prefix of strings.
   */
  private static final int PREFIX = 128;

  private static final int NUMBER = 0;
  private static final int FRACTION = 1;
  private static final int BYTES = 2;
  private static final int DIGITS = 3;

  /** The index of each enclosing struct, and of the column itself. */
  private final int[] path;

  /** The number of fields of each of these structs. */
  private final int[] widths;

  private final DataType type;
  private final int kind;

  /**
   * Finds the column with these name parts, spelled as in the schema, in rows that begin with the
   * columns of the schema.
   */
  public OrderedColumn(StructType schema, List<String> names) {
    path = new int[names.size()];
    widths = new int[names.size()];
    DataType found = schema;
    for (int i = 0; i < path.length; i++) {
      StructType struct = (StructType) found;
      path[i] = Arrays.asList(struct.fieldNames()).indexOf(names.get(i));
      found = struct.fields()[path[i]].dataType();
      widths[i] = found instanceof StructType inner ? inner.length() : 0;
    }
    type = found;
    kind = kind(type);
  }

  private static int kind(DataType type) {
    if (type instanceof FloatType || type instanceof DoubleType) {
      return FRACTION;
    }
    if (type instanceof StringType || type instanceof BinaryType) {
      return BYTES;
    }
    boolean isLarge = type instanceof DecimalType decimalType && decimalType.precision() > 18;
    return isLarge ? DIGITS : NUMBER;
  }

  /** Returns the value in a row; null for NULL. */
  public Object value(InternalRow row) {
    InternalRow struct = row;
    int last = path.length - 1;
    for (int i = 0; i < last; i++) {
      if (struct.isNullAt(path[i])) {
        return null;
      }
      struct = struct.getStruct(path[i], widths[i]);
    }
    return struct.isNullAt(path[last]) ? null : value(struct, path[last]);
  }

  private Object value(InternalRow row, int at) {
    if (type instanceof StringType) {
      UTF8String text = row.getUTF8String(at);
      int length = Math.min(text.numBytes(), PREFIX);
      byte[] bytes = new byte[length];
      Platform.copyMemory(
          text.getBaseObject(), text.getBaseOffset(), bytes, Platform.BYTE_ARRAY_OFFSET, length);
      return bytes;
    } else if (type instanceof BinaryType) {
      byte[] bytes = row.getBinary(at);
      return bytes.length > PREFIX ? Arrays.copyOf(bytes, PREFIX) : bytes;
    } else if (type instanceof DoubleType) {
      return Double.valueOf(row.getDouble(at));
    } else if (type instanceof FloatType) {
      return Double.valueOf(row.getFloat(at));
    } else if (type instanceof DecimalType decimal) {

      org.apache.spark.sql.types.Decimal value =
          row.getDecimal(at, decimal.precision(), decimal.scale());
      return kind == NUMBER
          ? (Object) Long.valueOf(value.toUnscaledLong())
          : value.toJavaBigDecimal().unscaledValue();
    } else if (type instanceof IntegerType || type instanceof DateType) {
      return Long.valueOf(row.getInt(at));
    } else if (type instanceof ShortType) {
      return Long.valueOf(row.getShort(at));
    } else if (type instanceof ByteType) {
      return Long.valueOf(row.getByte(at));
    } else if (type instanceof BooleanType) {
      return Long.valueOf(row.getBoolean(at) ? 1 : 0);
    }
    return Long.valueOf(row.getLong(at));
  }

  /** Compares values: NULL is the first, NaN the last. */
  public static int compare(Object a, Object b) {
    if (a == null || b == null) {
      return (a == null ? 0 : 1) - (b == null ? 0 : 1);
    }
    return a instanceof byte[] array
        ? Arrays.compareUnsigned(array, (byte[]) b)
        : Unchecked.<Comparable<Object>>cast(a).compareTo(b);
  }

  /** Writes a value. */
  public void write(Object value, DataOutputStream out) throws IOException {
    out.writeBoolean(value != null);
    if (value == null) {
      return;
    }
    if (kind == NUMBER) {
      out.writeLong((Long) value);
    } else if (kind == FRACTION) {
      out.writeDouble((Double) value);
    } else {
      byte[] bytes = kind == BYTES ? (byte[]) value : ((BigInteger) value).toByteArray();
      out.writeInt(bytes.length);
      out.write(bytes);
    }
  }

  /** Reads a value that `write` has written. */
  public Object read(DataInputStream in) throws IOException {
    if (!in.readBoolean()) {
      return null;
    }
    if (kind == NUMBER) {
      return Long.valueOf(in.readLong());
    } else if (kind == FRACTION) {
      return Double.valueOf(in.readDouble());
    }
    byte[] bytes = new byte[in.readInt()];
    in.readFully(bytes);
    return kind == BYTES ? (Object) bytes : new BigInteger(bytes);
  }
}
